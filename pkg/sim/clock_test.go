package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A time that a machine waits for has come when the true time is that of trueTime, and not
// much earlier, whatever the rate is and was.
func TestATimerIsNeverEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New(Config{Sites: fleet(1)})
		h := w.hosts["s0"]
		for range 3 {
			w.elapsed += time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "later"))
			hour := int64(time.Hour)
			h.clock.wall += time.Duration(rapid.Int64Range(-hour, hour).Draw(t, "step"))
			before := h.now()
			w.Drift("s0", rapid.Int64Range(-50_000, 50_000).Draw(t, "drift"))
			if !h.now().Equal(before) {
				t.Fatalf("a new rate moved the clock by %s", h.now().Sub(before))
			}
		}
		want := h.now().Add(time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "in")))
		w.elapsed = h.trueTime(want)
		if early := want.Sub(h.now()); early > 0 || early < -10 {
			t.Errorf("%s early", early)
		}
	})
}

// A host whose clock is fast renews its leases more often.
func TestDriftIsOfTheHostsOwnClock(t *testing.T) {
	renewals := func(millionths int64) int {
		w := New(Config{Seed: 5, Sites: fleet(2), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		w.Drift("s1", millionths)
		job := wasmJob(1, 10*time.Minute)
		job.Spec.Need.MilliCPUs = 3000 // s1
		wantAllDone(t, mustEnd(t, w, 20*time.Minute, "s0", mustSubmit(t, w, "s0", job)))
		return w.Trace().Sent["Renew"]
	}
	slow, fast := renewals(-50_000), renewals(50_000)
	if ratio := float64(fast) / float64(slow); ratio < 1.08 || ratio > 1.13 {
		t.Errorf("%d renewals with a fast clock, %d with a slow one, want 1.05/.95", fast, slow)
	}
}

func TestAStepOfTheClockIsToldAndMovesNoTimer(t *testing.T) {
	w := New(Config{Seed: 5, Sites: fleet(2), Network: lan()})
	_ = w.Run(time.Second)
	before := w.hosts["s0"].now()
	id := mustSubmit(t, w, "s0", wasmJob(1, 30*time.Second))
	w.StepClock("s0", time.Hour)
	w.StepClock("s1", -time.Hour)
	if !w.hosts["s0"].now().Equal(before) {
		t.Error("now has stepped with the wall clock")
	}
	if got := w.Clock("s0").Sub(w.Clock("s1")); got != 2*time.Hour {
		t.Errorf("the wall clocks differ by %s, want 2 h", got)
	}
	s := mustEnd(t, w, w.elapsed+time.Minute, "s0", id)
	if took := s.Ended.Sub(s.Submitted); took > 32*time.Second {
		t.Errorf("a job of 30 s took %s", took)
	}
	w.Crash("s0")
	w.Restart("s0")
	if ahead := w.hosts["s0"].now().Sub(w.now()); ahead != time.Hour {
		t.Errorf("a new agent is %s ahead, want what its wall clock says, 1 h", ahead)
	}
}

// jobAtS2 submits a job of 20 s that s2 alone can run.
func jobAtS2(t *testing.T) (*World, grid.JobID) {
	t.Helper()
	w := New(Config{Seed: 5, Sites: fleet(3), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	job := wasmJob(1, 20*time.Second)
	job.Spec.Need.MilliCPUs = 4000 // s2
	return w, mustSubmit(t, w, "s0", job)
}

func TestClockOfASuspendedHostGoesOn(t *testing.T) {
	w, id := jobAtS2(t)
	_ = w.Run(5 * time.Second)
	w.Suspend("s2")
	w.Input("s2", step.Pause{}) // comes late
	_ = w.Run(7 * time.Second)
	if w.Site("s2").Status().Paused || len(w.hosts["s2"].missed) == 0 {
		t.Error("a suspended host has worked")
	}
	w.Wake("s2")
	if !w.Site("s2").Status().Paused {
		t.Error("what came meanwhile was not delivered")
	}
	s := mustEnd(t, w, time.Minute, "s0", id)
	wantAllDone(t, s)
	if took := s.Ended.Sub(s.Submitted); s.Tasks[0].Token != 1 || took < 22*time.Second {
		t.Errorf("token %d after %s, want the same attempt, 2 s later", s.Tasks[0].Token, took)
	}
}

// A sandbox that is being made when its machine goes to sleep is not begun after its lease.
func TestNothingBeginsAfterASleepLongerThanItsLease(t *testing.T) {
	w, id := jobAtS2(t)
	h := w.hosts["s2"]
	attempt := func() *attempt {
		return h.attempts[grid.AttemptID{Task: grid.TaskID{Job: id}, Token: 1}]
	}
	for attempt() == nil || attempt().staging {
		_ = w.Run(w.elapsed + time.Millisecond)
	}
	a := attempt()
	w.Suspend("s2")
	_ = w.Run(a.leaseUntil + time.Second)
	w.Wake("s2")
	if a.begun {
		t.Error("it began after its lease")
	}
	wantAllDone(t, mustEnd(t, w, 3*time.Minute, "s0", id))
}

// A laptop that sleeps for longer than its lease finds its task moved, and its own attempt
// does not run for a moment when it wakes.
func TestALongSleepMovesTheTask(t *testing.T) {
	for _, lag := range []time.Duration{0, 100 * time.Millisecond} {
		sites := fleet(4)
		sites[3].WakeLag = lag
		w := New(Config{Seed: 5, Sites: sites, Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		job := wasmJob(2, 60*time.Second)
		job.Spec.Need.MilliCPUs = 4000 // s2 and s3
		id := mustSubmit(t, w, "s0", job)
		_ = w.Run(5 * time.Second)
		w.Crash("s2")
		w.Suspend("s3")
		_ = w.Run(20 * time.Second)
		if members := w.Broker("s0").Members(); members[2].Connected {
			t.Errorf("%s is connected although it sleeps", members[2].Site)
		}
		w.Restart("s2") // has space for the task of s3
		_ = w.Run(30 * time.Second)
		w.Wake("s3")
		wantAllDone(t, mustEnd(t, w, 5*time.Minute, "s0", id))
		if n := w.Trace().overlaps(); (n > 0) != (lag > 0) {
			t.Errorf("a lag of %s: %d overlaps", lag, n)
		}
	}
}

// A host that slept for so long that its connections ended finds its peers gone, and then meets
// those that it can reach.
func TestAWokenHostMeetsItsPeersAnew(t *testing.T) {
	w := New(Config{Seed: 5, Sites: fleet(4), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	w.Suspend("s2")
	w.Part([]grid.SiteID{"s3"})
	_ = w.Run(30 * time.Second)
	w.Wake("s2")
	if peers := w.Site("s2").Status().Peers; len(peers) > 0 {
		t.Errorf("it believes to be connected to %v", peers)
	}
	_ = w.Run(w.elapsed + time.Second)
	if peers := w.Site("s2").Status().Peers; !slices.Equal(peers, []grid.SiteID{"s0", "s1"}) {
		t.Errorf("it is connected to %v, want those that it can reach", peers)
	}
	w.heal()
	_ = w.Run(w.elapsed + time.Second)
	for _, id := range w.order {
		if n := len(w.Site(id).Status().Peers); n != 3 {
			t.Errorf("%s has %d peers in the end", id, n)
		}
	}
}
