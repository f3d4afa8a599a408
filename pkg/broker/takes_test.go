package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// producing is a job each of whose tasks leaves a file.
func producing(count uint32) grid.Job {
	j := testJob(count)
	j.Spec.Outputs = []grid.Output{{Path: leftPath, To: "x.{{index}}"}}
	return j
}

// taking is a job that needs what another one leaves.
func taking(id grid.JobID, count uint32, each bool) grid.Job {
	j := testJob(count)
	j.After = []grid.JobID{id}
	j.Takes = []grid.Take{{Path: "/in/x", Job: id, Output: leftPath, Each: each}}
	return j
}

// leavesFrom lets all tasks of a job, which run on a, end well, each with an output of its own.
func (b *bench) leavesFrom(id grid.JobID) {
	b.Helper()
	for i := range b.m.jobs.all[id].tasks {
		t := &b.m.jobs.all[id].tasks[i]
		b.hear("a", protocol.Exited{
			Attempt: attemptOf(id, uint32(i), t.token),
			Exit: grid.Exit{Cause: grid.CauseExited, Outputs: []grid.Produced{{
				Path: fmt.Sprintf("/out/%d", i), CID: grid.CID(fmt.Sprintf("bleft%d", i)), Bytes: 5,
			}}},
		})
		b.do(step.Collected{Attempt: attemptOf(id, uint32(i), t.token)})
	}
	b.wantPhase(id, 0, grid.PhaseDone)
}

// placing submits a job and lets it start on a.
func (b *bench) placing(job grid.Job) grid.JobID {
	b.Helper()
	id := b.submit(job)
	b.offers(id, job.Count, "a", "b", self)
	var attempts []grid.AttemptID
	for i := range job.Count {
		attempts = append(attempts, attemptOf(id, i, b.m.jobs.all[id].tasks[i].token))
	}
	b.hear("a", protocol.Accepted{Attempts: attempts, Renewal: 1})
	return id
}

func left(path string, cid grid.CID) grid.Input {
	return grid.Input{Path: path, CID: cid, Bytes: 5}
}

func TestAJobTakesWhatOthersLeave(t *testing.T) {
	for name, c := range map[string]struct {
		tasks   uint32
		each    bool
		restart bool
		want    []grid.Input // of task 1, or of the only one
	}{
		"of one task":           {1, false, false, []grid.Input{left("/in/x", "bleft0")}},
		"of one, restarted":     {1, false, true, []grid.Input{left("/in/x", "bleft0")}},
		"one by one":            {2, true, false, []grid.Input{left("/in/x", "bleft1")}},
		"one by one, restarted": {2, true, true, []grid.Input{left("/in/x", "bleft1")}},
		"of all tasks": {2, false, false, []grid.Input{
			left("/in/x/0", "bleft0"), left("/in/x/1", "bleft1"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			first := b.placing(producing(c.tasks))
			count := uint32(1)
			if c.each {
				count = c.tasks
			}
			second := b.submit(taking(first, count, c.each))
			if announced(b.last) {
				t.Fatal("announced before what it takes is there")
			}
			b.leavesFrom(first)
			b.wantPhase(second, 0, grid.PhaseAnnounced)
			if c.restart {
				b.restart("a", "b")
				b.pass(b.m.cfg.BackoffMin)
			}
			if data := b.m.Data(second); len(data) < 2 { // the module, and what it takes
				t.Errorf("what is kept for it: %v", data)
			}
			_, award := one[protocol.Award](t, b.offers(second, count, "a", "b", self))
			last := award.Tasks[len(award.Tasks)-1]
			got := award.Spec.Expand(second, last.Index, last.Item).Inputs
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("task %d has the inputs %+v, want %+v", last.Index, got, c.want)
			}
			s, _ := b.m.Job(second)
			if len(s.Job.Takes) > 0 || s.Asked == nil || len(s.Asked.Takes) != 1 {
				t.Errorf("shown with %+v, asked for was %+v", s.Job.Takes, s.Asked)
			}
		})
	}
}

// The record of what is needed stays, whatever the history has space for.
func TestWhatIsTakenStays(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEnded = 0 }, "a", "b")
	first := b.placing(producing(1))
	held := taking(first, 1, false)
	held.Held = true
	second := b.submit(held)
	b.leavesFrom(first)
	for _, job := range b.given() {
		if job.Job == first {
			t.Fatal("given to the history while another job is to take what it has left")
		}
	}
	if id := b.submit(taking(first, 1, false)); b.phase(id, 0) != grid.PhaseAnnounced {
		t.Error("what is there already is waited for")
	}
	b.do(step.HoldJob{Job: second, Release: true})
	b.wantPhase(second, 0, grid.PhaseAnnounced)
}

// A request that is repeated is the same one, whatever has become of its inputs.
func TestTakesAndTheKeyOfARequest(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	first := b.placing(producing(1))
	ask := step.Submit{Command: 1, Job: taking(first, 1, false), Key: "k"}
	made := func() (id grid.JobID) {
		t.Helper()
		for _, e := range b.do(ask) {
			if r, is := e.(step.Reply); is {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				id = r.Job
			}
		}
		return id
	}
	id := made()
	b.leavesFrom(first)
	if again := made(); again != id {
		t.Errorf("asked for again: job %s, before %s", again, id)
	}
}

func TestTakesThatCannotBe(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	first, bare := b.submit(producing(2)), b.submit(testJob(1))
	many := b.submit(producing(2_000))
	other := taking(first, 1, false)
	other.Takes[0].Output = "/out/y"
	unordered := taking(first, 1, false)
	unordered.After = nil
	for want, job := range map[string]grid.Job{
		"leaves no /out/y; it leaves /out/{{index}}":         other,
		"leaves no /out/{{index}}; it has no outputs":        taking(bare, 1, false),
		"has 2 tasks and this one 3":                         taking(first, 3, true),
		"has 2000 tasks, and a task has at most 1024 inputs": taking(many, 1, false),
		"job aaaaaaaaaaaaaaaa is unknown here":               taking("aaaaaaaaaaaaaaaa", 1, false),
		"which is not among those it runs after":             unordered,
	} {
		err := b.refusedBy(job)
		if !errors.Is(err, grid.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("refused by %v, want %q", err, want)
		}
	}
}

func TestAHeldJob(t *testing.T) {
	hold := func(b *bench, id grid.JobID, release bool) error {
		for _, e := range b.do(step.HoldJob{Command: 1, Job: id, Release: release}) {
			if r, is := e.(step.Reply); is {
				return r.Err
			}
		}
		return errors.New("no reply")
	}
	held := testJob(1)
	held.Held = true
	for name, job := range map[string]grid.Job{"from the beginning": held, "later": testJob(1)} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.submit(job)
			if !job.Held {
				b.hear("a", protocol.Bid{Job: id, Seq: 1, Offer: offer(1, 1, 1)})
				if err := hold(b, id, false); err != nil {
					t.Fatal(err)
				}
			}
			b.offers(id, 1, "a", "b", self)
			if announced(b.pass(b.m.cfg.BackoffMax)) ||
				announced(b.hear("a", protocol.Vacancy{Jobs: []grid.JobID{id}})) {
				t.Error("announced while it is held")
			}
			b.wantPhase(id, 0, grid.PhaseWaiting)
			b.restart("a", "b")
			if s, _ := b.m.Job(id); !s.Held || announced(b.last) {
				t.Errorf("held %v after a restart", s.Held)
			}
			if err := hold(b, id, true); err != nil || !announced(b.last) {
				t.Fatalf("released: %v, announced %v", err, announced(b.last))
			}
			b.offers(id, 1, "a", "b", self)
			b.wantPhase(id, 0, grid.PhaseAwarded)
			if err := hold(b, id, false); !errors.Is(err, step.ErrBegun) {
				t.Errorf("held when it has begun: %v", err)
			}
			b.do(step.CancelJob{Job: id})
			if err := hold(b, id, false); !errors.Is(err, step.ErrEnded) {
				t.Errorf("held when it has ended: %v", err)
			}
		})
	}
	b := newBench(t, nil, "a")
	if err := hold(b, "aaaaaaaaaaaaaaaa", true); !errors.Is(err, step.ErrNoSuchJob) {
		t.Errorf("an unknown job released: %v", err)
	}
}
