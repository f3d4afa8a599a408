package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func checkpoint(n uint64) grid.Checkpoint {
	return grid.Checkpoint{
		Number: n, CID: grid.CID(fmt.Sprintf("bsaved%d", n)), Bytes: 100,
		Worked: time.Duration(n) * time.Minute, Percent: uint8(n),
	}
}

// saves lets a site tell of a checkpoint, which is then pulled.
func (b *bench) saves(from grid.SiteID, at grid.AttemptID, c grid.Checkpoint) []step.Effect {
	b.Helper()
	b.hear(from, protocol.Checkpointed{Attempt: at, Checkpoint: c})
	pulls := only[step.Pull](b.last)
	if len(pulls) != 1 || pulls[0].From != from || pulls[0].Checkpoint != c {
		b.Fatalf("checkpoint %d: pulls %+v", c.Number, pulls)
	}
	return b.do(step.Pulled{Attempt: at, Number: c.Number, CID: c.CID})
}

func only[E step.Effect](effects []step.Effect) (list []E) {
	for _, e := range effects {
		if e, is := e.(E); is {
			list = append(list, e)
		}
	}
	return list
}

func (b *bench) wantSaved(id grid.JobID, want ...uint64) {
	b.Helper()
	s, _ := b.m.Job(id)
	var have []uint64
	for _, c := range s.Tasks[0].Saved {
		have = append(have, c.Number)
	}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		b.Fatalf("checkpoints %v count, want %v", have, want)
	}
}

// A checkpoint counts when it is here: then that is durable, and its site hears of it.
func TestACheckpointCountsWhenItIsHere(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	at := attemptOf(id, 0, 1)
	b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: checkpoint(1)})
	b.wantSaved(id)
	if _, held := sent[protocol.Held](b.last); len(held) > 0 {
		t.Fatal("it is held before it is here")
	}
	if again := b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: checkpoint(1)}); len(
		only[step.Pull](again)) > 0 {
		t.Fatal("it is pulled twice at the same time")
	}
	b.do(step.Pulled{Attempt: at, Number: 1, CID: checkpoint(1).CID})
	persisted := false
	for _, e := range b.last {
		switch e := e.(type) {
		case step.Persist:
			persisted = true
		case step.Send:
			if _, is := e.Message.(protocol.Held); is && !persisted {
				t.Error("its site hears of it before it is durable")
			}
		}
	}
	to, held := one[protocol.Held](t, b.last)
	if to != "a" || held.Number != 1 || held.Reason != 0 {
		t.Errorf("%+v to %s", held, to)
	}
	b.wantSaved(id, 1)
	b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: checkpoint(1)})
	if _, held := one[protocol.Held](t, b.last); held.Reason != grid.ReasonNone {
		t.Errorf("repeated: %+v", held)
	}
}

// Two are kept; what is older is let go, and all when the task ends.
func TestTwoCheckpointsAreKept(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	at := attemptOf(id, 0, 1)
	for n := uint64(1); n <= 3; n++ {
		b.saves("a", at, checkpoint(n))
	}
	b.wantSaved(id, 3, 2)
	if gone := only[step.LetGo](b.last); len(gone) != 1 || fmt.Sprint(gone[0].CIDs) != "[bsaved1]" {
		t.Errorf("let go: %+v", gone)
	}
	kept := fmt.Sprint(b.m.Data(id))
	if kept != "[bmodule bsaved3 bsaved2]" {
		t.Errorf("kept for the job: %s", kept)
	}
	b.hear("a", protocol.Exited{Attempt: at, Exit: grid.Exit{Cause: grid.CauseExited}})
	b.wantPhase(id, 0, grid.PhaseDone)
	gone := only[step.LetGo](b.last)
	if len(gone) != 1 || fmt.Sprint(gone[0].CIDs) != "[bsaved3 bsaved2]" {
		t.Errorf("let go at the end: %+v", gone)
	}
	b.wantSaved(id)
}

// What is no checkpoint of the task, or was overtaken, does not count, and its site hears why.
func TestCheckpointsThatDoNotCount(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	at := attemptOf(id, 0, 1)
	b.saves("a", at, checkpoint(2))
	refused := func(what string, want grid.Reason) {
		t.Helper()
		_, held := one[protocol.Held](t, b.last)
		if held.Reason != want {
			t.Errorf("%s: %+v, want %s", what, held, want)
		}
		b.wantSaved(id, 2)
	}
	b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: checkpoint(1)})
	refused("an older one", grid.ReasonSavedOld)
	other := checkpoint(2)
	other.CID = "bother"
	b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: other})
	refused("another of the same number", grid.ReasonSavedOld)
	big := checkpoint(3)
	big.Bytes = 1 << 40
	b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: big})
	refused("more than the task may write", grid.ReasonDisk)
	for _, why := range []grid.Reason{
		grid.ReasonSavedDamaged, grid.ReasonSavedForeign, grid.ReasonSavedOld,
	} {
		b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: checkpoint(3)})
		b.do(step.Pulled{Attempt: at, Number: 3, CID: "bsaved3", Reason: why})
		refused("a seal", why)
	}
	b.hear("b", protocol.Checkpointed{Attempt: at, Checkpoint: checkpoint(3)})
	if len(only[step.Pull](b.last)) > 0 {
		t.Error("another site's word is taken")
	}
	b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: checkpoint(3)})
	b.do(step.Pulled{Attempt: at, Number: 3, Problem: "cut off"})
	if _, held := sent[protocol.Held](b.last); len(held) > 0 {
		t.Error("one that could not be fetched is answered")
	}
	b.saves("a", at, checkpoint(3))
	b.wantSaved(id, 3, 2)
}

// A task whose site is lost is awarded with what counts, also by a broker that has restarted.
func TestATaskMovesWithItsCheckpoints(t *testing.T) {
	for _, restart := range []bool{false, true} {
		b := newBench(t, nil, "a", "b")
		id := b.started(1)
		at := attemptOf(id, 0, 1)
		b.saves("a", at, checkpoint(1))
		b.saves("a", at, checkpoint(2))
		b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: checkpoint(3)})
		if restart {
			b.restart("a", "b")
			b.wantSaved(id, 2, 1)
		}
		b.hear("a", protocol.Exited{Attempt: at, Exit: grid.Exit{Cause: grid.CauseSiteRestart}})
		b.wantSaved(id, 2, 1)
		sources := b.m.asked(id).req.Sources
		last := sources[len(sources)-1]
		saved := grid.CID("bsaved2").Digest("")
		if fmt.Sprint(last.Holders) != "[submitter a]" || last.Digest != saved {
			t.Errorf("asks for %+v", sources)
		}
		if _, awards := sent[protocol.Award](b.last); len(awards) == 0 {
			b.pass(time.Second)
			b.offers(id, 1, "b")
			b.pass(time.Second)
		}
		s, _ := b.m.Job(id)
		if s.Tasks[0].Site != "b" {
			t.Fatalf("restarted %t: it is at %s", restart, s.Tasks[0].Site)
		}
		b.do(step.Pulled{Attempt: at, Number: 3, CID: "bsaved3"})
		b.wantSaved(id, 2, 1)
		if gone := only[step.LetGo](b.last); len(gone) != 1 || gone[0].CIDs[0] != "bsaved3" {
			t.Errorf("what came too late is not let go: %+v", b.last)
		}
	}
}

// The award carries them, the latest first.
func TestAnAwardCarriesCheckpoints(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	at := attemptOf(id, 0, 1)
	b.saves("a", at, checkpoint(1))
	b.saves("a", at, checkpoint(5))
	b.hear("a", protocol.Exited{Attempt: at, Exit: grid.Exit{Cause: grid.CauseSiteRestart}})
	to, award := one[protocol.Award](t, b.last)
	if want := []grid.Checkpoint{checkpoint(5), checkpoint(1)}; to != "b" ||
		fmt.Sprint(award.Tasks[0].Saved) != fmt.Sprint(want) {
		t.Errorf("awards %+v to %s", award.Tasks, to)
	}
}

// Parts that run together, and jobs that want none, have no checkpoints.
func TestJobsWithoutCheckpoints(t *testing.T) {
	cfg := Default(self)
	for name, change := range map[string]func(*grid.Job){
		"off":         func(j *grid.Job) { j.Spec.Checkpoint.Off = true },
		"split":       func(j *grid.Job) { j.Split = grid.SplitIfNeeded },
		"reservation": func(j *grid.Job) { j.Spec.Kind = grid.KindReservation },
	} {
		job := testJob(1)
		change(&job)
		j := newJob("aaaaaaaaaaaaaaaa", job, time.Unix(0, 0), &cfg)
		if why := j.refusesSaved(&j.tasks[0], checkpoint(1)); why != grid.ReasonInvalid {
			t.Errorf("%s: %s", name, why)
		}
	}
	j := newJob("aaaaaaaaaaaaaaaa", testJob(1), time.Unix(0, 0), &cfg)
	if why := j.refusesSaved(&j.tasks[0], checkpoint(1)); why != grid.ReasonNone {
		t.Errorf("any job: %s", why)
	}
}

// What an earlier state says that cannot be is left out.
func TestSavedFactsThatCannotBe(t *testing.T) {
	good := savedFact{Number: 3, CID: "b3"}
	for _, c := range []struct {
		facts []savedFact
		want  string
	}{
		{nil, "[]"},
		{[]savedFact{good, {Number: 2, CID: "b2"}}, "[3 2]"},
		{[]savedFact{good, {Number: 4, CID: "b4"}}, "[3]"},
		{[]savedFact{{Number: 4}, good}, "[3]"},
		{[]savedFact{good, {Number: 2, CID: "b2"}, {Number: 1, CID: "b1"}}, "[3 2]"},
	} {
		s := restoreSaved(c.facts)
		numbers := []uint64{}
		for _, k := range s.counted {
			numbers = append(numbers, k.Number)
		}
		if got := fmt.Sprint(numbers); got != c.want {
			t.Errorf("%+v: %s, want %s", c.facts, got, c.want)
		}
	}
}

// A task that fails by itself and runs again begins anew: its state may be why it failed.
func TestARerunBeginsAnew(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	job := testJob(1)
	job.Retries = 1
	id := b.submit(job)
	b.offers(id, 1, "a", "b", self)
	at := attemptOf(id, 0, 1)
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{at}, Renewal: 1})
	b.hear("a", protocol.Progress{Attempt: at, Phase: grid.PhaseRunning})
	b.saves("a", at, checkpoint(1))
	b.fails(id, 0)
	b.wantSaved(id)
	gone := only[step.LetGo](b.last)
	if len(gone) != 1 || fmt.Sprint(gone[0].CIDs) != "[bsaved1]" {
		t.Errorf("let go: %+v", gone)
	}
	_, award := one[protocol.Award](t, b.last)
	if len(award.Tasks[0].Saved) > 0 {
		t.Errorf("awards %+v", award.Tasks)
	}
}
