package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// saver draws Saves as a member makes them: terms and entries rise, what is applied is in the log.
type saver struct {
	stored standby.Stored
	number int
}

func (s *saver) draw(t *rapid.T) standby.Save {
	save := standby.Save{Sync: rapid.Bool().Draw(t, "sync")}
	last := s.stored.Base.Index + uint64(len(s.stored.Entries))
	term := s.stored.Ballot.Term + uint64(rapid.IntRange(0, 2).Draw(t, "terms"))
	ballot := standby.Ballot{Term: term, Commit: s.stored.Ballot.Commit}
	if rapid.IntRange(0, 9).Draw(t, "table") == 0 {
		ahead := uint64(rapid.IntRange(1, 9).Draw(t, "ahead"))
		at := standby.Position{Index: last + ahead, Term: term}
		ballot.Commit = at.Index
		save.Ballot, save.Replaced, save.Applied = &ballot, true, at
		save.Conf = &standby.Conf{Voters: []standby.MemberID{1, 2, 3}}
		save.Facts = s.facts(t)
		return save
	}
	from := uint64(rapid.IntRange(int(s.stored.Ballot.Commit)+1, int(last)+1).Draw(t, "from"))
	for i := range rapid.IntRange(0, 3).Draw(t, "entries") {
		at := standby.Position{Index: from + uint64(i), Term: term}
		save.Entries = append(save.Entries, standby.Entry{
			Position: at, Kind: uint8(i), Data: []byte(fmt.Sprint("entry ", s.number)),
		})
		s.number++
		last = at.Index
	}
	ballot.Commit = uint64(rapid.IntRange(int(ballot.Commit), int(last)).Draw(t, "commit"))
	save.Ballot = &ballot
	if ballot.Commit > s.stored.Applied {
		save.Applied = standby.Position{Index: ballot.Commit, Term: term}
		save.Facts = s.facts(t)
		if s.stored.Applied > s.stored.Base.Index && rapid.Bool().Draw(t, "cut") {
			save.Base = standby.Position{Index: s.stored.Applied, Term: 1}
		}
	}
	return save
}

func (s *saver) facts(t *rapid.T) (facts []step.Fact) {
	for range rapid.IntRange(0, 3).Draw(t, "facts") {
		f := step.Fact{Kind: "task/1", Key: fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "key"))}
		if rapid.Bool().Draw(t, "there") {
			f.Value = fmt.Append(nil, s.number)
			s.number++
		}
		facts = append(facts, f)
	}
	return facts
}

// A member reads from the disk, after any Saves in transactions of one or several, what its own
// copy of the disk says.
func TestMembersAreReadAsTheyWereSaved(t *testing.T) {
	all := t
	rapid.Check(t, func(t *rapid.T) {
		dir := all.TempDir()
		disk := open(all, dir)
		facts := []step.Fact{{Kind: "job/1", Key: "a", Value: []byte(`1`)}}
		founded := standby.Founded(7, facts, 1)
		if rapid.Bool().Draw(t, "joins") {
			founded = standby.Joining()
		}
		s := &saver{stored: founded}
		m := Member{Name: "broker", ID: 1, Owner: "me", Stored: founded}
		if err := disk.Enlist(m); err != nil {
			t.Fatal(err)
		}
		var batch []standby.Save
		for range rapid.IntRange(0, 20).Draw(t, "saves") {
			save := s.draw(t)
			s.stored.Apply(save)
			batch = append(batch, save)
			if rapid.Bool().Draw(t, "write") {
				if err := disk.SaveMember("broker", batch); err != nil {
					t.Fatal(err)
				}
				batch = nil
			}
		}
		if err := disk.SaveMember("broker", batch); err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "killed") {
			killed(all, disk)
		} else if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
		disk = open(all, dir)
		defer disk.Close()
		members, err := disk.Members()
		if err != nil || len(members) != 1 {
			t.Fatalf("%d members, %v", len(members), err)
		}
		got := members[0]
		if got.ID != 1 || got.Owner != "me" || got.Name != "broker" {
			t.Errorf("the member is %+v", got)
		}
		if diff := cmp.Diff(s.stored.Table.All(), got.Stored.Table.All()); diff != "" {
			t.Errorf("the table (-want +got):\n%s", diff)
		}
		want := s.stored
		want.Table, got.Stored.Table = step.Facts{}, step.Facts{}
		if len(want.Entries) == 0 {
			want.Entries = nil
		}
		if diff := cmp.Diff(want, got.Stored, cmp.AllowUnexported(step.Facts{})); diff != "" {
			t.Errorf("the log (-want +got):\n%s", diff)
		}
	})
}

// A member that is dismissed leaves nothing, or the table alone for the machine that goes on
// without a group. A name has one member: the next one takes its place, and has its table until
// it is sent one.
func TestMembersAreDismissed(t *testing.T) {
	for _, keep := range []bool{true, false} {
		disk := open(t, t.TempDir())
		facts := []step.Fact{{Kind: "job/1", Key: "a", Value: []byte(`1`)}}
		m := Member{Name: "standbyabc", ID: 1, Owner: "me", Stored: standby.Founded(0, facts, 1)}
		if err := disk.Enlist(m); err != nil {
			t.Fatal(err)
		}
		m.ID, m.Stored = 2, standby.Joining()
		if err := disk.Enlist(m); err != nil {
			t.Fatal(err)
		}
		now, err := disk.Members()
		if table, _ := disk.Load(m.Name); err != nil || len(now) != 1 || now[0].ID != 2 ||
			!now[0].Stored.Fresh || len(table) != 1 {
			t.Errorf("in place of the first member there are %+v, with %d facts, %v",
				now, len(table), err)
		}
		if disk.Enlist(Member{Name: "a/b", ID: 1}) == nil {
			t.Error("a member without a plain name is enlisted")
		}
		if err = disk.Dismiss(m.Name, keep); err != nil {
			t.Fatal(err)
		}
		members, err := disk.Members()
		left, loadErr := disk.Load(m.Name)
		if err = errors.Join(err, loadErr); err != nil || len(members) > 0 {
			t.Errorf("%d members are left, %v", len(members), err)
		}
		if want := map[bool]int{true: 1, false: 0}[keep]; len(left) != want {
			t.Errorf("%d facts are left, want %d", len(left), want)
		}
		err = disk.SaveMember(m.Name, []standby.Save{{Facts: facts}})
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("a Save of nobody: %v", err)
		}
	}
}

// A journal that was ended begins again in a higher term, as a run of its own.
func TestAJournalBeginsAgain(t *testing.T) {
	dir := t.TempDir()
	disk := open(t, dir)
	for _, term := range []uint64{3, 4} {
		j, err := disk.Begin(Header{Machine: "broker", Term: term, Config: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.End(); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := Runs(dir)
	var terms []uint64
	for _, run := range runs {
		terms = append(terms, run.Term)
	}
	if err != nil || !slices.Equal(terms, []uint64{3, 4}) {
		t.Errorf("runs of the terms %v, %v", terms, err)
	}
}
