package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Jobs that outlive their agent for longer than the margin run beside those that replace
// them; one that is started again ends them first.
func TestJobsOutliveTheirAgent(t *testing.T) {
	play := func(lag time.Duration, restart bool) int {
		w := New(Config{Seed: 4, Sites: fleet(4), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", elsewhere(20*time.Second))
		_ = w.Run(5 * time.Second)
		s, _ := w.Broker("s0").Job(id)
		victim := s.Tasks[0].Site
		w.Kill(victim, lag)
		if restart {
			w.At(w.elapsed+100*time.Millisecond, func() { w.Restart(victim) })
		}
		wantAllDone(t, mustEnd(t, w, 5*time.Minute, "s0", id))
		return w.Trace().overlaps()
	}
	if n := play(0, false); n != 0 {
		t.Errorf("without a lag: %d overlaps", n)
	}
	if n := play(300*time.Millisecond, false); n != 0 {
		t.Errorf("with a lag below the margin: %d overlaps", n)
	}
	if n := play(10*time.Second, true); n != 0 {
		t.Errorf("started again immediately: %d overlaps", n)
	}
	// A lease is the longest that a job lives on.
	w := New(Config{Seed: 4, Sites: fleet(4), Network: lan()})
	_ = w.Run(time.Second)
	mustSubmit(t, w, "s0", elsewhere(time.Hour))
	_ = w.Run(10 * time.Second)
	victim := w.Trace().Intervals[0].Site
	w.Kill(victim, time.Hour)
	_ = w.Run(20 * time.Second)
	for _, i := range w.Trace().Intervals {
		if i.Site == victim && (i.To < 0 || i.To > 13*time.Second) {
			t.Errorf("%+v has outlived its lease", i)
		}
	}
}

func TestATwinIsSeenByTheOverlaps(t *testing.T) {
	at := func(machine int, from, to time.Duration) Interval {
		return Interval{
			Attempt: grid.AttemptID{Task: grid.TaskID{Job: "j"}, Token: 1}, Machine: machine,
			From: from, To: to,
		}
	}
	trace := Trace{Intervals: []Interval{at(0, 0, 5), at(0, 4, 6), at(1, 5, 7)}}
	if got := trace.overlaps(); got != 1 {
		t.Errorf("%d overlaps, want the one at two machines", got)
	}
}

// Messages to an identity that two machines have reach either.
func TestATwinAnswersToo(t *testing.T) {
	w := New(Config{Seed: 4, Sites: fleet(3), Network: lan(), NoRuns: true})
	_ = w.Run(time.Second)
	w.Twin("s2")
	for range 10 {
		mustSubmit(t, w, "s0", wasmJob(1, time.Hour))
		_ = w.Run(w.elapsed + time.Second)
	}
	own, other := len(w.Site("s2").Status().Attempts), len(w.twins["s2"].site.Status().Attempts)
	if own == 0 || other == 0 {
		t.Errorf("one has %d attempts, the other %d; want some at both", own, other)
	}
	w.EndTwin("s2")
	_ = w.Run(w.elapsed + time.Minute)
	for _, i := range w.Trace().Intervals {
		if i.Machine > 0 && i.To < 0 {
			t.Errorf("%+v runs on", i)
		}
	}
}

// A second machine that was taken away is gone, so that another may take its place; the power of
// a machine on which nothing runs any more cannot be cut.
func TestTwinsAndPowerAreTakenAwayOnce(t *testing.T) {
	w := New(Config{Seed: 4, Sites: fleet(3), Network: lan(), NoRuns: true})
	_ = w.Run(time.Second)
	for n := 1; n <= 3; n++ {
		w.Twin("s2")
		if t2 := w.twins["s2"]; t2 == nil || t2.machine != n || !t2.up {
			t.Fatalf("second machine number %d: %+v", n, t2)
		}
		second := w.twins["s2"]
		w.Twin("s2") // there is one
		w.EndTwin("s2")
		if w.twins["s2"] != nil || w.machines != n || second.up {
			t.Fatalf("after the end of number %d: %+v of %d", n, w.twins["s2"], w.machines)
		}
	}
	boots := w.hosts["s1"].disk.boots
	w.PowerCut("s1")
	w.PowerCut("s1")
	if got := w.hosts["s1"].disk.boots; got != boots+1 {
		t.Errorf("power cut once: %d boots more", got-boots)
	}
}

// A copy of a machine that no honest member talks to could not be told from it: none starts.
func TestATwinNeedsAWitness(t *testing.T) {
	for name, hide := range map[string]func(w *World){
		"deaf":        func(w *World) { w.Deafen("s2") },
		"isolated":    func(w *World) { w.Isolate("s2") },
		"all silent":  func(w *World) { w.Silence("s0"); w.Lie("s1", lieSilent) },
		"all deaf":    func(w *World) { w.Deafen("s0"); w.Deafen("s1") },
		"all asleep":  func(w *World) { w.Suspend("s0"); w.Suspend("s1") },
		"all crashed": func(w *World) { w.Crash("s0"); w.Crash("s1") },
	} {
		w := New(Config{Seed: 4, Sites: fleet(3), Network: lan()})
		_ = w.Run(time.Second)
		hide(w)
		if w.Twin("s2"); w.twins["s2"] != nil {
			t.Errorf("%s: a copy starts that nobody can know of", name)
		}
	}
	w := New(Config{Seed: 4, Sites: fleet(3), Network: lan()})
	_ = w.Run(time.Second)
	w.Silence("s0")
	if w.Twin("s2"); w.twins["s2"] == nil {
		t.Error("no copy starts, though s1 hears both")
	}
}

// A machine loses its network while a copy of it starts elsewhere. The copy knows what ran, and
// says that it has ended; the first machine runs on for as long as its leases.
func TestATwinOfAMachineThatIsCutOff(t *testing.T) {
	w := New(Config{Seed: 4, Sites: fleet(4), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	id := mustSubmit(t, w, "s0", elsewhere(20*time.Second))
	_ = w.Run(5 * time.Second)
	s, _ := w.Broker("s0").Job(id)
	victim := s.Tasks[0].Site
	w.Twin(victim)
	w.Isolate(victim)
	wantAllDone(t, mustEnd(t, w, 5*time.Minute, "s0", id))
	if n := w.Trace().overlaps(); n != 0 {
		t.Errorf("%d overlaps", n)
	}
	if n := len(w.Trace().Intervals); n < 2 {
		t.Errorf("%d attempts ran, want the one that was cut off and another", n)
	}
}

// A sandbox that hangs holds its place until it answers, and nothing runs twice.
func TestASandboxThatHangs(t *testing.T) {
	for _, answer := range []time.Duration{3 * time.Second, -1} {
		w := New(Config{Seed: 4, Sites: fleet(3), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", elsewhere(10*time.Second))
		_ = w.Run(5 * time.Second)
		s, _ := w.Broker("s0").Job(id)
		victim := s.Tasks[0].Site
		w.Stick(victim, answer)
		_ = w.Run(30 * time.Second)
		if w.ended("s0", id) {
			t.Fatal("what hangs has ended")
		}
		if err := w.Cancel("s0", id); err != nil {
			t.Fatal(err)
		}
		_ = w.Run(35 * time.Second)
		left := len(w.hosts[victim].attempts)
		if (left > 0) != (answer < 0) {
			t.Errorf("stopped in %s: %d sandboxes are left", answer, left)
		}
		w.Stick(victim, 0)
		_ = w.Run(36 * time.Second)
		if left := len(w.hosts[victim].attempts); left > 0 {
			t.Errorf("%d sandboxes are left when nothing hangs", left)
		}
	}
}
