package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// bothRun brings a task to run at a, and another at b.
func (b *bench) bothRun() grid.JobID {
	b.Helper()
	id := b.submit(testJob(2))
	b.offers(id, 1, "a", "b")
	for _, site := range append(b.m.peers.connected(), self) {
		if site != "a" && site != "b" {
			b.refusal(id, site, false)
		}
	}
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}, Renewal: 1})
	b.hear("b", protocol.Accepted{Attempts: []grid.AttemptID{attemptOf(id, 1, 1)}, Renewal: 1})
	for index, site := range []grid.SiteID{"a", "b"} {
		at := attemptOf(id, uint32(index), 1)
		b.hear(site, protocol.Progress{Attempt: at, Phase: grid.PhaseRunning})
		b.wantPhase(id, index, grid.PhaseRunning)
	}
	return id
}

// renewsB lets time pass in which b renews its lease, and a says nothing.
func (b *bench) renewsB(id grid.JobID, seconds int) {
	for range seconds {
		b.pass(time.Second)
		b.hear("b", protocol.Renew{Renewal: 7, Attempts: []grid.AttemptID{attemptOf(id, 1, 1)}})
	}
}

func (b *bench) wantFaults(why string, want int) {
	b.Helper()
	if got := b.faultIndex("a"); got != want {
		b.Errorf("%s: a has fault index %d, want %d", why, got, want)
	}
}

func (b *bench) firesLate(name string, late time.Duration) {
	b.Helper()
	b.now = b.now.Add(late)
	for key := range b.timers {
		if key.Name == name {
			delete(b.timers, key)
			b.do(step.TimerFired{Key: key})
		}
	}
}

// A site that is silent while another is heard has failed.
func TestOneSilentSiteIsToBlame(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	b.renewsB(b.bothRun(), 5)
	b.wantFaults("one of two is silent", 1)
}

// Each trouble of the submitter's own, by itself: nobody is blamed.
func TestOwnTroubleIsNobodysFault(t *testing.T) {
	for name, trouble := range map[string]func(*bench, grid.JobID){
		"all are silent": func(b *bench, _ grid.JobID) { b.pass(10 * time.Second) },
		"this machine slept": func(b *bench, _ grid.JobID) {
			b.do(step.PeerGone{Site: "b", Refusing: true}) // so that it does not count as silent
			b.firesLate(timerLease, time.Minute)
		},
		"this machine has just slept": func(b *bench, id grid.JobID) {
			b.m.peers.awoke = b.now
			b.renewsB(id, 5)
		},
		"its disk was full": func(b *bench, id grid.JobID) {
			b.do(step.SpaceChanged{Full: true})
			b.renewsB(id, 5)
		},
		"the links to most went a moment before": func(b *bench, id grid.JobID) {
			b.do(step.PeerGone{Site: "c"})
			b.do(step.PeerGone{Site: "d"})
			b.do(step.PeerGone{Site: "e"})
			b.renewsB(id, 5)
		},
		"the links to most go a moment after": func(b *bench, id grid.JobID) {
			b.renewsB(id, 5)
			b.wantFaults("before", 1)
			b.do(step.PeerGone{Site: "c"})
			b.do(step.PeerGone{Site: "d"})
			b.do(step.PeerGone{Site: "a"})
			b.wantPardoned()
		},
		"nobody answers a moment after": func(b *bench, id grid.JobID) {
			b.renewsB(id, 5)
			b.wantFaults("before", 1)
			b.now = b.now.Add(b.m.cfg.Lease)
			b.m.now, b.m.peers.cutOff = b.now, false
			b.m.peers.noteSilence(&round{explain: true, complete: true, sample: 1})
			for _, e := range b.m.out.Take() {
				if p, is := e.(step.Persist); is {
					b.facts.Apply(p.Fact)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b", "c", "d", "e")
			trouble(b, b.bothRun())
			b.wantFaults(name, 0)
			if n := b.m.peers.faults.Record("a").Counts; len(n.InWords()) > 0 {
				t.Errorf("it is counted as %v", n.InWords())
			}
		})
	}
}

func (b *bench) wantPardoned() {
	b.Helper()
	if !slices.ContainsFunc(b.last, func(e step.Effect) bool {
		r, is := e.(step.Report)
		return is && r.Event == eventPardoned && r.Site == "a"
	}) {
		b.Error("it is not said that the fault is taken back")
	}
}

// What is no matter of the link, or of which a host has told, counts whatever else is silent, and
// a clock that is set changes nothing.
func TestOtherFaultsCountInTrouble(t *testing.T) {
	for name, c := range map[string]struct {
		want    int
		trouble func(*bench, grid.JobID)
	}{
		"its agent died, and it says so": {1, func(b *bench, id grid.JobID) {
			b.m.peers.alone = b.now
			b.hear("a", protocol.Exited{
				Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{Cause: grid.CauseSiteRestart},
			})
		}},
		"its host refuses": {1, func(b *bench, _ grid.JobID) {
			b.do(step.PeerGone{Site: "a", Refusing: true})
			b.pass(10 * time.Second)
		}},
		"the clock is set": {0, func(b *bench, id grid.JobID) {
			for _, by := range []time.Duration{time.Hour, -30 * time.Hour} {
				b.do(step.ClockStepped{By: by})
				b.renew("a", id, 1)
				b.renewsB(id, 2)
			}
		}},
		"the clock is set, and it is silent": {1, func(b *bench, id grid.JobID) {
			b.do(step.ClockStepped{By: time.Hour})
			b.renewsB(id, 5)
		}},
		"trouble is over": {1, func(b *bench, id grid.JobID) {
			b.m.peers.alone = b.now.Add(-time.Minute)
			b.renewsB(id, 5)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b", "c")
			c.trouble(b, b.bothRun())
			b.wantFaults(name, c.want)
		})
	}
}

// An attempt counts once, however often it is lost, and its late result does not make up for it,
// also after a restart.
func TestAnAttemptCountsOnce(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		b := newBench(t, nil, "a", "b")
		id := b.bothRun()
		for range 3 {
			b.renewsB(id, 5)
			b.wantFaults("silent", 1)
			b.renew("a", id, 1)
			b.wantPhase(id, 0, grid.PhaseRunning)
			if restarts {
				b.restart("a", "b")
				b.renew("a", id, 1)
			}
		}
		b.hear("a", protocol.Exited{
			Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{Cause: grid.CauseExited},
		})
		b.wantPhase(id, 0, grid.PhaseDone)
		b.wantFaults("late, and done", 1)
		b.hear("b", protocol.Exited{
			Attempt: attemptOf(id, 1, 1), Exit: grid.Exit{Cause: grid.CauseExited},
		})
		if r := b.m.peers.faults.Record("a"); r.Tried != 1 || r.Counts.InWords()[0].Times != 1 {
			t.Errorf("restarts %t: %+v", restarts, r)
		}
	}
}

// A fault fades over a restart as it would without one, by the wall clock; what an earlier version
// has kept fades from now on.
func TestFaultsOverARestart(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	b.renewsB(b.bothRun(), 5)
	before := b.m.peers.faults.Record("a")
	b.facts.Apply(step.NewFact(factFault, "b", map[string]int{"index": 4}))
	b.m.out.Facts().Apply(step.NewFact(factFault, "b", map[string]int{"index": 4}))
	b.restart("a", "b")
	after := b.m.peers.faults.Record("a")
	if after.Index != before.Index || after.Counts != before.Counts ||
		after.At.Sub(before.At).Abs() > time.Millisecond {
		t.Errorf("after a restart %+v, want %+v", after, before)
	}
	b.now = b.now.Add(b.m.cfg.FaultHalfLife)
	if got := b.m.peers.faults.Index("b", b.now); got != 2 {
		t.Errorf("of an earlier version's 4 a half-life leaves %v", got)
	}
}
