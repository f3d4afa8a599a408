package standby

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

var noon = time.Unix(1_900_000_000, 0).UTC()

// solo is a group of one whose disk is immediately done.
type solo struct {
	*Group
	t     *testing.T
	disk  Stored
	seen  []Effect // without Save and Wake
	stuck bool     // the disk is not done
}

func newSolo(t *testing.T) *solo {
	t.Helper()
	s := &solo{t: t, disk: Founded(0, nil, 1)}
	g, err := New(Default(1), noon, s.disk.clone())
	if err != nil {
		t.Fatal(err)
	}
	s.Group = g
	s.give(Woken{})
	return s
}

func (s *solo) give(in Input) {
	s.t.Helper()
	queue := []Input{in}
	for len(queue) > 0 {
		for _, e := range s.Step(s.now, queue[0]) {
			switch e := e.(type) {
			case Save:
				s.disk.Apply(e)
				if e.Sync && !s.stuck {
					queue = append(queue, Saved{Number: e.Number})
				}
			case Wake:
			default:
				s.seen = append(s.seen, e)
			}
		}
		queue = queue[1:]
	}
	if err := s.Check(); err != nil {
		s.t.Error(err)
	}
}

// released lists the texts of reports that were let go.
func (s *solo) released() (texts []string) {
	for _, e := range s.seen {
		if r, is := e.(Release); is {
			for _, e := range r.Effects {
				if report, is := e.(step.Report); is {
					texts = append(texts, report.Text)
				}
			}
		}
	}
	return texts
}

func fact(key string) step.Persist { return step.Persist{Fact: step.NewFact("x/1", key, key)} }

func report(text string) step.Report { return step.Report{Text: text} }

// Rule 4: a group of one acts as soon as its disk has the entry of its term, and what it wants
// leaves when its disk has the facts.
func TestAGroupOfOneActsAlone(t *testing.T) {
	s := newSolo(t)
	if diff := cmp.Diff([]Effect{Boot{Term: 2, Facts: []byte("[]")}}, s.seen); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	s.stuck = true
	s.give(Stepped{Term: 2, Effects: []step.Effect{fact("a"), report("a")}})
	if got := s.released(); len(got) > 0 {
		t.Errorf("%v left before the disk was done", got)
	}
	s.stuck = false
	s.give(Saved{Number: s.saves})
	if got := s.released(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("released %v", got)
	}
	if got := string(s.disk.Table.Get("x/1", "a")); got != `"a"` {
		t.Errorf("the table has %q", got)
	}
}

// Rule 2: effects leave in their order, those without facts after the facts before them. Timers
// do not wait.
func TestEffectsKeepTheirOrder(t *testing.T) {
	s := newSolo(t)
	s.stuck, s.seen = true, nil
	s.give(Stepped{Term: 2, Effects: []step.Effect{fact("a"), report("a")}})
	s.give(Stepped{Term: 2, Effects: []step.Effect{report("b")}})
	s.give(Stepped{Term: 2, Effects: []step.Effect{fact("c"), report("c"), step.SetTimer{}}})
	if diff := cmp.Diff([]Effect{
		Release{Term: 2, Effects: []step.Effect{step.SetTimer{}}},
	}, s.seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range 3 {
		s.give(Saved{Number: s.saves})
	}
	if got := s.released(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("released %v", got)
	}
}

// Rule 3: what a machine of another term wants is dropped.
func TestEffectsOfAnotherTermAreDropped(t *testing.T) {
	s := newSolo(t)
	for _, term := range []uint64{0, 1, 3} {
		s.give(Stepped{Term: term, Effects: []step.Effect{fact("a"), report("a")}})
	}
	if got := s.released(); len(got) > 0 || s.disk.Table.Get("x/1", "a") != nil {
		t.Errorf("released %v", got)
	}
}

// Rule 2: inputs stop when too much waits, and go on when it is committed.
func TestInputsAreHeld(t *testing.T) {
	holds := func(s *solo) (on []bool) {
		for _, e := range s.seen {
			if h, is := e.(Hold); is {
				on = append(on, h.On)
			}
		}
		return on
	}
	for name, wait := range map[string]func(*solo){
		"time": func(s *solo) {
			s.give(Stepped{Term: 2, Effects: []step.Effect{fact("a")}})
			s.now = s.now.Add(s.cfg.MaxWaiting)
			s.give(Woken{})
		},
		"bytes": func(s *solo) {
			long := step.NewFact("x/1", "a", strings.Repeat("x", s.cfg.MaxWaitingBytes))
			s.give(Stepped{Term: 2, Effects: []step.Effect{step.Persist{Fact: long}}})
		},
	} {
		s := newSolo(t)
		s.stuck = true
		wait(s)
		if got := holds(s); !slices.Equal(got, []bool{true}) {
			t.Errorf("%s: holds %v, want one", name, got)
		}
		s.stuck = false
		s.give(Saved{Number: s.saves})
		if got := holds(s); !slices.Equal(got, []bool{true, false}) {
			t.Errorf("%s: holds %v, want it to end", name, got)
		}
	}
}

// A panic of raft ends the member, with its machine, and leaves no half-done effects.
func TestAPanicEndsTheMemberAlone(t *testing.T) {
	s := newSolo(t)
	s.seen = nil
	// A leader that claims to have committed what this member does not have.
	data, err := proto.Marshal(&pb.Message{
		Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)),
		Term: new(uint64(9)), Commit: new(uint64(99)),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.give(Received{From: 2, Data: data})
	if len(s.seen) != 2 {
		t.Fatalf("effects %v", s.seen)
	}
	if d, is := s.seen[0].(Discard); !is || d.Term != 2 {
		t.Errorf("first %#v, want the machine to be discarded", s.seen[0])
	}
	if e, is := s.seen[1].(Ended); !is || !strings.Contains(e.Err.Error(), "out of range") {
		t.Errorf("then %#v, want the end", s.seen[1])
	}
	if more := s.Step(noon, Woken{}); more != nil {
		t.Errorf("after its end it wants %v", more)
	}
}

// Rule 12 and damaged disks: no member starts without the log that its ID stands for.
func TestADiskThatIsNotWhole(t *testing.T) {
	entries := func(s *Stored, from, n uint64) {
		for i := range n {
			s.Entries = append(s.Entries, Entry{Position: Position{Index: from + i, Term: 1}})
		}
	}
	for name, break_ := range map[string]func(*Stored){
		"empty":                  func(s *Stored) { *s = Stored{} },
		"a gap":                  func(s *Stored) { entries(s, 3, 2) },
		"committed, not there":   func(s *Stored) { s.Ballot.Commit = 2 },
		"applied, not committed": func(s *Stored) { entries(s, 2, 3); s.Applied = 4 },
		"applied before the log": func(s *Stored) { s.Applied = 0 },
	} {
		disk := Founded(0, nil, 1, 2, 3)
		break_(&disk)
		if g, err := New(Default(1), noon, &disk); !errors.Is(err, errNoLog) || g != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What raft itself refuses is an error of New, no panic.
func TestADiskThatRaftRefuses(t *testing.T) {
	disk := Founded(0, nil, 1, 2, 3)
	disk.Conf.Learners = []MemberID{1} // and a voter
	_, err := New(Default(1), noon, &disk)
	if err == nil || !strings.Contains(err.Error(), "start member 1") {
		t.Errorf("got %v", err)
	}
}

func TestConfigsThatAreWrong(t *testing.T) {
	if err := Default(1).Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"member ID":        func(c *Config) { c.ID = 0 },
		"member ID:":       func(c *Config) { c.ID = ^MemberID(0) },
		"heartbeat":        func(c *Config) { c.Heartbeat = c.ElectionTimeout },
		"heartbeat:":       func(c *Config) { c.Heartbeat = 0 },
		"rest":             func(c *Config) { c.Rest = -1 },
		"election spread":  func(c *Config) { c.ElectionSpread = 0 },
		"transfer timeout": func(c *Config) { c.TransferTimeout = 0 },
		"resign after":     func(c *Config) { c.ResignAfter = c.ElectionTimeout },
		"snapshot timeout": func(c *Config) { c.SnapshotTimeout = -1 },
		"most that waits":  func(c *Config) { c.MaxWaiting = 0 },
		"batch bytes":      func(c *Config) { c.BatchBytes = c.MaxWaitingBytes + 1 },
		"kept entries":     func(c *Config) { c.KeepBytes = -1 },
		"longest message":  func(c *Config) { c.MaxMessage = c.MaxWaitingBytes },
	} {
		c := Default(1)
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// An entry comes back as it was; what is cut or of another kind is refused.
func TestEntriesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := batch{term: rapid.Uint64().Draw(t, "term"), number: rapid.Uint64().Draw(t, "number")}
		b.facts = make([]step.Fact, 0)
		for i := range rapid.IntRange(0, 4).Draw(t, "facts") {
			f := step.NewFact("x/1", rapid.String().Draw(t, "key"), i)
			if rapid.Bool().Draw(t, "removed") {
				f.Value = nil
			}
			b.facts = append(b.facts, f)
		}
		back, err := decodeBatch(b.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, back, cmp.AllowUnexported(batch{})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
	whole := batch{term: 300, number: 2, facts: []step.Fact{step.NewFact("x/1", "a", 1)}}.encode()
	for n := range len(whole) {
		if n == 4 {
			continue // no facts: an entry like any other
		}
		if b, err := decodeBatch(whole[:n]); !errors.Is(err, errBadEntry) {
			t.Errorf("%d of %d bytes: %v, %v", n, len(whole), b, err)
		}
	}
	if _, err := decodeBatch(append([]byte{9}, whole[1:]...)); !errors.Is(err, errBadEntry) {
		t.Errorf("another kind: %v", err)
	}
}

// An owner who goes on without the others has all that is in the log, committed or not, and
// nothing of a machine that had lost its term.
func TestTheWholeTableHasTheLog(t *testing.T) {
	row := func(key string) step.Fact {
		return step.Fact{Kind: "task/1", Key: key, Value: []byte(`1`)}
	}
	disk := Founded(6, []step.Fact{row("founded")}, 1, 2, 3)
	entry := func(index, term, machine uint64, key string) Entry {
		b := batch{term: machine, number: 1, facts: []step.Fact{row(key)}}
		return Entry{Position: Position{Index: index, Term: term}, Data: b.encode()}
	}
	disk.Entries = []Entry{
		{Position: Position{Index: 2, Term: 7}}, // raft's own
		entry(3, 7, 7, "committed"), entry(4, 7, 7, "open"), entry(5, 8, 7, "late"),
	}
	var keys []string
	for _, f := range disk.Whole() {
		keys = append(keys, f.Key)
	}
	if want := []string{"committed", "founded", "open"}; !slices.Equal(keys, want) {
		t.Errorf("the whole table has %v, want %v", keys, want)
	}
	if n := len(disk.Table.All()); n != 1 {
		t.Errorf("the table itself has %d rows now", n)
	}
}
