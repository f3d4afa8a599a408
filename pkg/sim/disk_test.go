package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// elsewhere is a job that the submitter's own site is too small for.
func elsewhere(run time.Duration) grid.Job {
	job := wasmJob(1, run)
	job.Spec.Need.MilliCPUs = 3000
	return job
}

func TestAFullDiskTakesNoOutputs(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(3), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	id := mustSubmit(t, w, "s0", elsewhere(2*time.Second))
	w.FillDisk("s0")
	_ = w.Run(2 * time.Minute)
	if w.ended("s0", id) {
		t.Fatal("the outputs were taken")
	}
	if more, err := w.Submit("s0", elsewhere(time.Second)); err == nil {
		t.Errorf("%s was accepted although its outputs have no space", more)
	}
	w.Crash("s0")
	w.Restart("s0")
	if _, err := w.Submit("s0", elsewhere(time.Second)); err == nil {
		t.Error("a new agent has not seen that the disk is full")
	}
	w.FreeDisk("s0")
	s := mustEnd(t, w, 3*time.Minute, "s0", id)
	wantAllDone(t, s)
	if s.Tasks[0].Token != 1 {
		t.Errorf("it took %d attempts, want the first one's outputs", s.Tasks[0].Token)
	}
}

func TestABrokenDiskEndsTheAgent(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(3), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	w.BreakDisk("s0")
	if id, err := w.Submit("s0", elsewhere(time.Second)); err == nil {
		t.Errorf("%s was accepted and cannot be remembered", id)
	}
	w.Restart("s0")
	if w.Broker("s0") != nil {
		t.Fatal("an agent that can write nothing runs")
	}
	for range 20 { // killed amid that Step it does no more of it, whatever the draw
		w.MendDisk("s0")
		w.Restart("s0")
		w.BreakDisk("s0")
		w.CrashInStep("s0")
		if id, err := w.Submit("s0", elsewhere(time.Second)); err == nil {
			t.Fatalf("%s was accepted by a dying agent and cannot be remembered", id)
		}
	}
	w.MendDisk("s0")
	w.Restart("s0")
	_ = w.Run(w.elapsed + time.Second)
	wantAllDone(t, mustEnd(t, w, time.Minute, "s0", mustSubmit(t, w, "s0", elsewhere(time.Second))))
}

// An agent with a slow disk is late with all it says, and loses nothing.
func TestASlowDiskMakesAllLate(t *testing.T) {
	took := func(slow time.Duration) time.Duration {
		w := New(Config{Seed: 1, Sites: fleet(3), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		w.SlowDisk("s1", slow)
		w.SlowDisk("s2", slow)
		s := mustEnd(t, w, 5*time.Minute, "s0", mustSubmit(t, w, "s0", elsewhere(5*time.Second)))
		wantAllDone(t, s)
		return s.Ended.Sub(s.Submitted)
	}
	if fast, slow := took(0), took(500*time.Millisecond); slow < fast+time.Second {
		t.Errorf("took %s with a slow disk, %s with a fast one", slow, fast)
	}
}

func TestALostDiskAndABackup(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(3), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	early := mustSubmit(t, w, "s0", wasmJob(1, time.Second))
	mustEnd(t, w, time.Minute, "s0", early)
	w.Backup("s0")
	late := mustSubmit(t, w, "s0", wasmJob(1, time.Second))
	knows := func(id grid.JobID) bool { _, known := w.Broker("s0").Job(id); return known }
	w.LoseDisk("s0") // it runs: nothing happens
	w.Crash("s0")
	w.Restart("s0")
	if !knows(early) || !knows(late) {
		t.Fatal("a restart lost jobs")
	}
	w.Crash("s0")
	w.RestoreBackup("s0")
	w.Restart("s0")
	if !knows(early) || knows(late) {
		t.Errorf("restored: it knows the early one %t, the late one %t", knows(early), knows(late))
	}
	again := mustSubmit(t, w, "s0", wasmJob(1, time.Second))
	w.Crash("s0")
	w.LoseDisk("s0")
	w.Restart("s0")
	if knows(early) || len(w.hosts["s0"].disk.held) > 0 {
		t.Error("a lost disk is not empty")
	}
	newest := mustSubmit(t, w, "s0", wasmJob(1, time.Second))
	if newest == early || newest == late || again == late {
		t.Errorf("a name was given twice: %s, %s, %s, %s", early, late, again, newest)
	}
}

// What is told to others is on the disk: a power cut loses nothing. It does where nobody
// syncs.
func TestAPowerCutTakesWhatIsNotSynced(t *testing.T) {
	for _, unsafe := range []bool{false, true} {
		w := New(Config{
			Seed: 1, Sites: fleet(3), Network: lan(), CheckFacts: !unsafe, NoSyncFacts: unsafe,
		})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", elsewhere(10*time.Second))
		_ = w.Run(2 * time.Second)
		w.PowerCut("s0")
		_ = w.Run(13 * time.Second)
		if members := w.Broker("s1").Members(); members[0].Connected {
			t.Error("s1 has not noticed that s0 is away")
		}
		w.Restart("s0")
		if _, known := w.Broker("s0").Job(id); known == unsafe {
			t.Errorf("no sync %t: the job is known %t", unsafe, known)
		}
	}
}

func TestRetuneCountsFromTheNextStart(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(2), Network: lan()})
	w.Retune("s1", func(s *site.Config, _ *broker.Config) { s.MaxRuntime = time.Second })
	_ = w.Run(time.Second)
	wantAllDone(t, mustEnd(t, w, time.Minute, "s0", mustSubmit(t, w, "s0", elsewhere(2*time.Second))))
	w.Crash("s1")
	w.Restart("s1")
	_ = w.Run(w.elapsed + time.Second)
	s := mustEnd(t, w, w.elapsed+time.Minute, "s0", mustSubmit(t, w, "s0", elsewhere(2*time.Second)))
	if s.Tasks[0].Phase != grid.PhaseRefused {
		t.Errorf("it is %s, want refused by the new configuration", s.Tasks[0].Phase)
	}
}
