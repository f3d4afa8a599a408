package broker

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// copied submits a job whose tasks run in copies.
func (b *bench) copied(count uint32, how grid.Redundancy) grid.JobID {
	b.Helper()
	job := testJob(count)
	job.Redundancy = how
	return b.submit(job)
}

// bid lets sites offer one place each, nearest first.
func (b *bench) bid(id grid.JobID, sites ...grid.SiteID) {
	b.Helper()
	for n, s := range sites {
		j := b.m.jobs.all[id]
		o := offer(uint64(n+1), float64(n+1), 1)
		b.hear(s, protocol.Bid{Job: id, Seq: max(j.seq, 1), Offer: o})
	}
	b.pass(2 * time.Second)
}

// where lists the sites of the copies of a task, in order.
func (b *bench) where(id grid.JobID, first uint32) (sites []grid.SiteID) {
	j := b.m.jobs.all[id]
	for _, i := range j.copies(first) {
		if t := &j.tasks[i]; t.active() {
			sites = append(sites, t.site)
		}
	}
	return sites
}

// runs lets a site accept its copy of a task.
func (b *bench) runs(id grid.JobID, index uint32) grid.AttemptID {
	b.Helper()
	at := b.m.jobs.all[id].attempt(index)
	b.hear(b.m.jobs.all[id].tasks[index].site, protocol.Accepted{
		Attempts: []grid.AttemptID{at}, Renewal: 1,
	})
	return at
}

// prints lets the site of a copy end it with an output.
func (b *bench) prints(id grid.JobID, index uint32, text string) {
	b.Helper()
	t := &b.m.jobs.all[id].tasks[index]
	at, from := b.m.jobs.all[id].attempt(index), t.site
	out := grid.Produced{Path: "/stdout", CID: grid.CID(text)}
	exit := grid.Exit{Cause: grid.CauseExited, Stdout: out}
	b.hear(from, protocol.Exited{Attempt: at, Exit: exit})
	b.do(step.Collected{Attempt: at})
}

// The copies of a task are told apart by names of their own, go to different sites, and all get
// what the first one would.
func TestCopiesAreTasksOfTheirOwn(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c")
	job := testJob(2)
	job.Spec.Args = []string{"{{index}}", "{{item}}"}
	job.Items = []grid.Item{{Value: "x"}, {Value: "y"}}
	job.Redundancy = grid.Redundancy{Replicas: 2, Agreement: 2}
	id := b.submit(job)
	seen := map[uint32]protocol.Award{}
	b.m.cfg.Requote = false
	for n, s := range []grid.SiteID{"a", "b", "c"} {
		b.hear(s, protocol.Bid{Job: id, Seq: 1, Offer: offer(uint64(n+1), float64(n+1), 2)})
	}
	for _, e := range append(b.last, b.pass(2*time.Second)...) {
		if s, is := e.(step.Send); is {
			if a, is := s.Message.(protocol.Award); is {
				for _, task := range a.Tasks {
					seen[task.Index] = a
				}
			}
		}
	}
	if len(seen) != 4 {
		t.Fatalf("%d copies are awarded, want 4", len(seen))
	}
	for index, award := range seen {
		is := func(t protocol.AwardedTask) bool { return t.Index == index }
		at := slices.IndexFunc(award.Tasks, is)
		given := award.Tasks[at]
		task := award.Spec.Expand(id, index, given.Item)
		want := fmt.Sprint([]string{fmt.Sprint(index % 2), []string{"x", "y"}[index%2]})
		if fmt.Sprint(task.Args) != want {
			t.Errorf("copy %d has arguments %v, want %s", index, task.Args, want)
		}
		if want := map[bool]uint32{false: 0, true: index%2 + 1}[index >= 2]; given.CopyOf != want {
			t.Errorf("task %d is a copy of %d, want %d", index, given.CopyOf, want)
		}
		if task.WorkDigest() != b.m.jobs.all[id].work(index).WorkDigest() {
			t.Errorf("copy %d: its site and its submitter name its work otherwise", index)
		}
	}
	for first := range uint32(2) {
		if at := b.where(id, first); len(at) != 2 || at[0] == at[1] {
			t.Errorf("the copies of task %d are at %v", first, at)
		}
	}
}

// Where several owners offer, the copies of a task part them; where one does, its sites are better
// than none.
func TestCopiesPartOwners(t *testing.T) {
	for _, only := range []bool{false, true} {
		b := newBench(t, nil, "a", "b")
		for _, s := range []grid.SiteID{"a", "b"} {
			b.do(step.PeerSeen{Site: s, Name: string(s), Owner: "ann"})
		}
		owner := map[bool]string{true: "ann", false: "ben"}[only]
		b.do(step.PeerSeen{Site: "c", Name: "c", Owner: owner})
		id := b.copied(1, grid.Redundancy{Replicas: 2, Agreement: 2})
		b.bid(id, "a", "b", "c")
		want := map[bool]string{false: "[a c]", true: "[a b]"}[only]
		if got := fmt.Sprint(b.where(id, 0)); got != want {
			t.Errorf("one owner only: %t: the copies are at %s, want %s", only, got, want)
		}
	}
}

// Of two results that differ neither counts; a third site decides, who lied is passed over, blamed,
// trusted no more, and gets nothing more of the task. All of that is durable.
func TestAThirdCopyDecides(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c", "d")
	id := b.copied(1, grid.Redundancy{Replicas: 2, Agreement: 2})
	b.bid(id, "a", "b")
	b.runs(id, 0)
	b.runs(id, 1)
	b.prints(id, 0, "bwrong")
	s, _ := b.m.Job(id)
	if s.Tasks[0].Copies[0].Vote != voteOpen {
		t.Errorf("one result: %+v", s.Tasks[0].Copies)
	}
	b.prints(id, 1, "bright")
	if s, _ = b.m.Job(id); !s.Ended.IsZero() || len(s.Tasks[0].Copies) != 3 {
		t.Fatalf("two results that differ: %+v", s.Tasks[0])
	}
	b.bid(id, "a", "b", "c")
	if at := fmt.Sprint(b.where(id, 0)); at != "[c]" {
		t.Fatalf("the third copy is at %s", at)
	}
	b.runs(id, 2)
	b.prints(id, 2, "bright")
	s, _ = b.m.Job(id)
	task := s.Tasks[0]
	if task.Phase != grid.PhaseDone || task.Exit.Stdout.CID != "bright" || s.Ended.IsZero() {
		t.Fatalf("%+v", task)
	}
	var votes []string
	for _, c := range task.Copies {
		votes = append(votes, c.Vote.String())
	}
	if got := strings.Join(votes, " "); got != "outvoted agrees agrees" {
		t.Errorf("votes: %s", got)
	}
	restored := New(b.m.cfg)
	if err := restored.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Machine{b.m, restored} {
		p := m.peers
		if p.faults.Index("a", b.now) != 1 || p.breaches["a"].row != 1 || p.right["a"] != 0 {
			t.Errorf("of the liar: %v, %+v, %d",
				p.faults.Index("a", b.now), p.breaches["a"], p.right["a"])
		}
		if p.right["b"] != 1 || p.right["c"] != 1 || p.faults.Index("b", b.now) != 0 {
			t.Errorf("of the honest: %v", p.right)
		}
		again, _ := m.Job(id)
		if again.Tasks[0].Copies[0].Vote != VoteOutvoted || again.Tasks[0].Site != "b" {
			t.Errorf("%+v", again.Tasks[0])
		}
	}
}

// The first copy that ends well counts, whatever the others do, and they are called off. One that
// fails by its own doing counts only when none is left.
func TestFirstFinishWins(t *testing.T) {
	for _, first := range []string{"ends well", "fails"} {
		b := newBench(t, nil, "a", "b")
		id := b.copied(1, grid.Redundancy{Replicas: 2})
		b.bid(id, "a", "b")
		at := b.runs(id, 0)
		other := b.runs(id, 1)
		if first == "fails" {
			exit := grid.Exit{Cause: grid.CauseExited, Code: 3}
			b.hear("a", protocol.Exited{Attempt: at, Exit: exit})
			if s, _ := b.m.Job(id); !s.Ended.IsZero() {
				t.Fatal("it has ended with the first failure")
			}
			b.prints(id, 1, "bout")
		} else {
			b.prints(id, 0, "bout")
			to, fence := one[protocol.Fence](t, b.last)
			below := fence.Below[0]
			if to != "b" || below.Task != other.Task || below.Token <= other.Token {
				t.Errorf("%s is told %+v", to, fence)
			}
		}
		if s, _ := b.m.Job(id); s.Tasks[0].Phase != grid.PhaseDone || s.Ended.IsZero() {
			t.Errorf("%s: %+v", first, s.Tasks[0])
		}
	}
}

// A copy goes on from what its own site has saved and from nothing else where results are compared:
// else a liar's state would be inherited, and who goes on from it accused.
func TestComparedCopiesInheritNoState(t *testing.T) {
	for _, how := range []grid.Redundancy{{Replicas: 2}, {Replicas: 2, Agreement: 2}} {
		b := newBench(t, nil, "a", "b", "c")
		id := b.copied(1, how)
		b.bid(id, "a", "b")
		at := b.runs(id, 0)
		b.runs(id, 1)
		b.saves("a", at, checkpoint(1))
		b.hear("a", protocol.Exited{Attempt: at, Exit: grid.Exit{Cause: grid.CauseSiteRestart}})
		b.bid(id, "c")
		var saved []grid.Checkpoint
		j := b.m.jobs.all[id]
		if j.tasks[0].site != "c" {
			t.Fatalf("%+v: the copy is at %s", how, j.tasks[0].site)
		}
		saved = j.tasks[0].offered()
		if got, want := len(saved), map[bool]int{true: 0, false: 1}[how.Compares()]; got != want {
			t.Errorf("%+v: it goes on from %d checkpoints of another site, want %d", how, got, want)
		}
		if other := j.tasks[1].offered(); len(other) > 0 {
			t.Errorf("%+v: the other copy has %v", how, other)
		}
	}
}

// A task whose copies never agree fails after K + 2m of them, and says who says what.
func TestNoAgreementEnds(t *testing.T) {
	names := []grid.SiteID{"a", "b", "c", "d", "e", "f", "g"}
	b := newBench(t, nil, names...)
	how := grid.Redundancy{Replicas: 2, Agreement: 2}
	id := b.copied(1, how)
	for n := uint32(0); ; n++ {
		if s, _ := b.m.Job(id); !s.Ended.IsZero() {
			if n != how.Most() || s.Tasks[0].Phase != grid.PhaseFailed {
				t.Fatalf("%d copies, want %d; %s", n, how.Most(), s.Tasks[0].Phase)
			}
			text := s.Tasks[0].Exit.Text
			if !strings.HasPrefix(text, "no 2 of 6 copies agree; copy 1 at a: ") {
				t.Errorf("it says %q", text)
			}
			if fault := b.m.peers.faults.Index("a", b.now); fault != 0 {
				t.Errorf("a is blamed %v times, and nobody agreed", fault)
			}
			return
		}
		if len(b.where(id, 0)) == 0 {
			b.bid(id, names...)
		}
		b.runs(id, n)
		b.prints(id, n, fmt.Sprintf("bout%d", n))
	}
}

// A job that is not to wait is refused where its copies find no places.
func TestCopiesThatMayNotWait(t *testing.T) {
	b := newBench(t, nil, "a")
	job := testJob(1)
	job.Redundancy = grid.Redundancy{Replicas: 2, Agreement: 2}
	b.do(step.Submit{Command: 1, Job: job, NoWait: true})
	id := b.m.Jobs()[0]
	b.hear(self, protocol.Refuse{Job: id, Seq: 1, Refusal: grid.Refusal{Reason: grid.ReasonMemory}})
	b.bid(id, "a")
	b.pass(time.Minute)
	if j := b.m.jobs.all[id]; j.tasks[0].active() {
		b.runs(id, 0)
		b.prints(id, 0, "bout")
	}
	s, _ := b.m.Job(id)
	if s.Ended.IsZero() || s.Tasks[0].Phase == grid.PhaseDone || s.Tasks[0].Exit == nil {
		t.Errorf("%+v", s.Tasks[0])
	}
}

// twin decides on a task by the rules of docs/submit.md, and knows nothing of a broker: results
// come in the order of the copies, one from each site; "" has failed.
type twin struct {
	need, most int
	digests    []string
}

// verdict is the result that counts, or "none"; "" = further copies are awaited.
func (w twin) verdict() string {
	counts := map[string]int{}
	for _, d := range w.digests {
		if counts[d]++; counts[d] == w.need {
			return d
		}
	}
	if len(w.digests) == w.most {
		return "none"
	}
	return ""
}

// wanted counts the copies that there are to be after these results: those that were asked for,
// and so many more that the most frequent one can still win.
func (w twin) wanted(have int) int {
	most := 0
	for _, d := range w.digests {
		others := func(o string) bool { return o != d }
		most = max(most, len(slices.DeleteFunc(slices.Clone(w.digests), others)))
	}
	return min(max(have, len(w.digests)+w.need-most), w.most)
}

// Whatever results come, the broker decides as its twin does, begins as many copies, and would do
// the same had it been restarted before any of them.
func TestComparingIsWhatItsTwinDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		how := grid.Redundancy{Replicas: rapid.Uint32Range(2, 4).Draw(t, "replicas")}
		how.Agreement = rapid.Uint32Range(2, how.Replicas).Draw(t, "agreement")
		job := testJob(1)
		job.Redundancy = how
		cfg := Default(self)
		m := New(cfg)
		m.Step(time.Unix(1e9, 0), step.Boot{Incarnation: 1})
		m.Step(time.Unix(1e9, 0), step.Submit{Command: 1, Job: job})
		id := m.Jobs()[0]
		w := twin{need: int(how.Agreement), most: int(how.Most())}
		copies := int(how.Replicas)
		for n := 0; ; n++ {
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				m = restarted(t, m)
			}
			j := m.jobs.all[id]
			if got := len(j.copies(0)); got != copies {
				t.Fatalf("%v: %d copies, want %d", w.digests, got, copies)
			}
			d := rapid.SampledFrom([]string{"bone", "btwo", "bthree", "bfour"}).Draw(t, "result")
			endCopy(m, j, uint32(n), d)
			w.digests = append(w.digests, d)
			s, _ := m.Job(id)
			switch want := w.verdict(); {
			case want == "":
				if copies = w.wanted(copies); !s.Ended.IsZero() {
					t.Fatalf("%v: it has ended: %+v", w.digests, s.Tasks[0])
				}
				continue
			case s.Ended.IsZero():
				t.Fatalf("%v: it goes on", w.digests)
			case want == "none" && s.Tasks[0].Phase != grid.PhaseFailed,
				want != "none" && (s.Tasks[0].Phase != grid.PhaseDone ||
					s.Tasks[0].Exit.Stdout.CID != grid.CID(want)):
				t.Fatalf("%v: %+v, want %s", w.digests, s.Tasks[0], want)
			}
			wantVotes(t, s.Tasks[0], w)
			return
		}
	})
}

// endCopy ends a copy as finish does, with a result of a site of its own.
func endCopy(m *Machine, j *job, index uint32, digest string) {
	tk := &j.tasks[index]
	j.seat(index)
	tk.token, tk.site = 1, grid.SiteID(fmt.Sprintf("site%d", index))
	tk.exit = &grid.Exit{Cause: grid.CauseExited, Stdout: grid.Produced{CID: grid.CID(digest)}}
	m.endTask(j, index, grid.PhaseDone)
	tk.vote()
	m.drainLooks()
}

// wantVotes wants exactly those outvoted, and blamed, that gave another result than the one on
// which several agreed.
func wantVotes(t *rapid.T, task TaskState, w twin) {
	for i, d := range w.digests {
		want := voteAgrees
		switch {
		case w.verdict() == "none":
			want = voteDiffers
		case d != w.verdict():
			want = VoteOutvoted
		}
		if got := task.Copies[i].Vote; got != want {
			t.Fatalf("%v: copy %d %s, want %s", w.digests, i+1, got, want)
		}
	}
}

func restarted(t *rapid.T, m *Machine) *Machine {
	again := New(m.cfg)
	if err := again.Restore(m.Snapshot()); err != nil {
		t.Fatalf("restore: %v", err)
	}
	if !bytes.Equal(again.Snapshot(), m.Snapshot()) {
		t.Fatalf("a restored machine has other facts")
	}
	again.Step(time.Unix(1e9+1, 0), step.Boot{Incarnation: m.incarnation + 1})
	return again
}

// The chance of a comparison falls with the results that were confirmed, as BOINC's does: always
// for a site that is not trusted, then 1/n, not below the floor; of this very machine never.
func TestDoubtfulnessFalls(t *testing.T) {
	m := New(Default(self))
	for n := range uint32(1000) {
		m.peers.right["a"] = n
		got := m.peers.doubtfulness("a", .02)
		want := 1.0
		if n >= trustedFrom {
			want = max(.02, 1/float64(n))
		}
		if got != want {
			t.Fatalf("after %d right results: %v, want %v", n, got, want)
		}
	}
	if m.peers.doubtfulness(self, 1) != 0 {
		t.Error("the owner doubts its own machine")
	}
}

// What is drawn depends on task and site and on nothing else, and is drawn as often as it should.
func TestDoubtIsDrawnByTaskAndSite(t *testing.T) {
	m := New(Default(self))
	m.peers.right["a"], m.peers.right["b"] = 1000, 1000
	count, same := 0, 0
	for i := range uint32(4000) {
		id := grid.TaskID{Job: "aaaaaaaaaaaaaaaa", Index: i}
		rule := grid.Redundancy{Verify: .1}
		a := m.peers.doubts(id, "a", rule)
		if a != m.peers.doubts(id, "a", rule) {
			t.Fatal("drawn twice, and not the same")
		}
		if a {
			count++
		}
		if a == m.peers.doubts(id, "b", rule) {
			same++
		}
	}
	if count < 320 || count > 480 { // 400, +- four standard deviations
		t.Errorf("%d of 4000 are drawn, want about 400", count)
	}
	if same == 4000 {
		t.Error("the site does not count")
	}
}

// Nothing is new in what is written down of a job without copies.
func TestFactsWithoutCopiesAreAsBefore(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.started(1)
	text := string(b.m.Snapshot())
	words := []string{"outvoted", "chosen", "doubted", "ruling", "Redundancy", "right"}
	for _, word := range words {
		if strings.Contains(text, word) {
			t.Errorf("the facts of job %s name %s", id, word)
		}
	}
}
