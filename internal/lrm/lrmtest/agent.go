package lrmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// startAgent starts an agent of its own process that runs the attempt.
func (b *bench) startAgent(t *testing.T, a lrm.Attempt) *exec.Cmd {
	t.Helper()
	told, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	agent := b.h.Agent(b.record)
	agent.Stdin, agent.Stderr = bytes.NewReader(told), os.Stderr
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		if err := b.h.New(t, b.record).Recover(context.Background()); err != nil {
			t.Errorf("Recover: %v", err)
		}
	})
	return agent
}

func testAgentKilled(t *testing.T, b *bench) {
	a := b.attempt(t, "spin")
	agent := b.startAgent(t, a)
	Until(t, "the program prints", Patience, func() bool { return size(a.StdoutPath()) > 0 })
	if got := len(Processes(t, a.Dir)); got < 1 {
		t.Fatalf("%d processes of the attempt, want some", got)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	Until(t, "no process of a dead agent is left", 2*time.Second, func() bool {
		return len(Processes(t, a.Dir)) == 0
	})
	if err := b.h.New(t, b.record).Recover(t.Context()); err != nil {
		t.Errorf("Recover: %v", err)
	}
	records, err := lrm.ReadRecords(b.record)
	if err != nil {
		t.Fatal(err)
	}
	last := records[len(records)-1]
	if last.Event != lrm.RecordEnded || last.Cause != grid.CauseSiteRestart.String() {
		t.Errorf("last record = %+v, want the end by the agent's death", last)
	}
}

func testAgentStopped(t *testing.T, b *bench) {
	a := b.attempt(t, "spin")
	a.LeaseUntil = lrm.BootNow().Add(3 * time.Second)
	agent := b.startAgent(t, a)
	Until(t, "the attempt starts", Patience, func() bool { return size(b.record) > 0 })
	if err := agent.Process.Signal(stopSignal); err != nil {
		t.Skipf("cannot stop a process: %v", err)
	}
	Until(t, "the lease of a stopped agent ends", Patience, func() bool {
		records, err := lrm.ReadRecords(b.record)
		return err == nil && len(records) > 1
	})
	records, err := lrm.ReadRecords(b.record)
	if err != nil {
		t.Fatal(err)
	}
	if frozen := records[1]; frozen.Event != lrm.RecordFrozen || frozen.BootNanos < a.LeaseUntil {
		t.Errorf("record = %+v, want frozen at the lease's end %d", frozen, a.LeaseUntil)
	}
}

// suspended starts an agent that suspends its attempt, and waits until that
// is frozen.
func (b *bench) suspended(t *testing.T, a lrm.Attempt) *exec.Cmd {
	t.Helper()
	a.Task.Env = append(a.Task.Env, grid.EnvVar{Name: suspendVar, Value: "1"})
	agent := b.startAgent(t, a)
	Until(t, "the attempt is suspended", Patience, func() bool {
		records, err := lrm.ReadRecords(b.record)
		return err == nil && len(records) > 1 && records[1].Event == lrm.RecordFrozen
	})
	return agent
}

// testAgentKilledSuspended: a suspended attempt dies with its agent and does not
// run before that.
func testAgentKilledSuspended(t *testing.T, b *bench) {
	a := b.attempt(t, "tick", "10000")
	agent := b.suspended(t, a)
	printed := size(a.StdoutPath())
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	Until(t, "no process of a dead agent is left", 5*time.Second, func() bool {
		return len(Processes(t, a.Dir)) == 0
	})
	if got := size(a.StdoutPath()); got != printed {
		t.Errorf("printed %d bytes, %d of them while it was suspended", got, got-printed)
	}
	wantEvents(t, b.record, lrm.RecordStarted, lrm.RecordFrozen, lrm.RecordEnded)
}

// testAgentStoppedSuspended: an agent that hangs does not let it run on.
func testAgentStoppedSuspended(t *testing.T, b *bench) {
	a := b.attempt(t, "tick", "10000")
	a.LeaseUntil = lrm.BootNow().Add(20 * time.Second)
	agent := b.suspended(t, a)
	if err := agent.Process.Signal(stopSignal); err != nil {
		t.Skipf("cannot stop a process: %v", err)
	}
	if !stands(a.StdoutPath(), time.Second) {
		t.Error("a suspended program printed while its agent hung")
	}
	records, err := lrm.ReadRecords(b.record)
	if err != nil || len(records) != 2 {
		t.Errorf("records %+v, %v; want started and frozen", records, err)
	}
}
