//go:build e2e

package e2e_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// result is the flag that keeps what the guest puts to /out/r.
var result = []string{"--out", "/out/r:r-{{index}}.txt"}

// wantResults waits for a job's end and compares what it left.
func (m *mesh) wantResults(t *testing.T, id grid.JobID, tasks int) {
	t.Helper()
	m.submit(t, "wait", string(id)).want(t, 0)
	m.submit(t, "get", string(id), "--to", string(id)).want(t, 0)
	for i := range tasks {
		name := filepath.Join(m.work, string(id), "r-"+string(rune('0'+i))+".txt")
		if got, want := readFile(t, name), "result "+string(rune('0'+i)); got != want {
			t.Errorf("task %d left %q, want %q", i, got, want)
		}
	}
}

func TestSiteKilled(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores, twoCores)
	id := m.begin(t, result, "ticks=40", "put=/out/r:result 0")
	victim := m.holder(t, id)
	eventually(
		t, patience, "the job's processes run", func() bool { return len(victim.processes()) > 0 },
	)
	victim.kill(t)
	victim.awaitNoProcess(t)
	m.wantResults(t, id, 1)
	task := m.tasks(t, id)[0]
	if task.Site == victim.id || len(task.Attempts) != 2 || task.Token != 2 {
		t.Errorf("the task did not move: %+v", task)
	}
	if moves := m.job(t, id).Moves; moves != 1 {
		t.Errorf("the job says that %d tasks moved, want 1", moves)
	}
	m.audit(t)
	victim.start(t)
	m.awaitWhole(t)
	m.run(t, "exit=0").want(t, 0)
	m.audit(t)
	m.replay(t)
}

func TestSubmitterKilled(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores)
	id := m.begin(
		t, append([]string{"--count", "2"}, result...), "ticks=40", "put=/out/r:result {{index}}",
	)
	holder := m.sites[1]
	eventually(
		t, patience, "both tasks run", func() bool { return m.job(t, id).Tasks[view.PhaseRunning] == 2 },
	)
	m.sites[0].kill(t)
	counter := func(name string) int64 {
		status, err := holder.client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Counters[name]
	}
	eventually(t, patience, "the leases end and both tasks freeze", func() bool {
		status, err := holder.client.Status(t.Context())
		frozen := 0
		for _, r := range status.Running {
			if r.Phase == view.PhaseFrozen {
				frozen++
			}
		}
		return err == nil && frozen == 2
	})
	m.sites[0].start(t)
	m.wantResults(t, id, 2)
	for _, task := range m.tasks(t, id) {
		if len(task.Attempts) != 1 || task.Token != 1 {
			t.Errorf("a frozen task was not renewed but begun again: %+v", task)
		}
	}
	if counter("attempt_resumed") == 0 && counter("resumed") == 0 {
		status, _ := holder.client.Status(t.Context())
		t.Logf("counters of the holder: %v", status.Counters)
	}
	m.audit(t)
	m.replay(t)
}

func TestAllKilled(t *testing.T) {
	t.Parallel()
	m := newMesh(t, twoCores, twoCores, twoCores)
	id := m.begin(
		t, append([]string{"--count", "8", "--cpus", "0.5"}, result...), "ticks=15",
		"put=/out/r:result {{index}}",
	)
	m.awaitPhase(t, id, view.PhaseRunning)
	moment := time.Duration(rand.IntN(2000)) * time.Millisecond
	t.Logf("killing all %s after the first start", moment)
	<-time.After(moment)
	for _, s := range m.sites {
		if err := s.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range m.sites {
		<-s.ended
		s.awaitNoProcess(t)
	}
	for _, s := range m.sites {
		s.launch(t)
	}
	for _, s := range m.sites {
		eventually(t, patience, "the agent "+s.name+" answers", func() bool {
			_, err := s.client.Status(t.Context())
			return err == nil
		})
	}
	m.wantResults(t, id, 8)
	m.audit(t)
	m.replay(t)
}

func TestOwner(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores, twoCores)
	b, c := m.sites[1], m.sites[2]
	c.command(t, "pause").want(t, 0, "siteagent resume")
	running := m.begin(t, result, "ticks=100", "put=/out/r:result 0")
	if at := m.holder(t, running); at != b {
		t.Fatalf("the job runs at %s, which is paused", at.name)
	}
	b.command(t, "pause").want(t, 0)
	waiting := m.begin(t, nil, "print=at last")
	m.awaitPhase(t, waiting, view.PhaseWaiting)
	if phase := m.job(t, running).Phase; phase != view.PhaseRunning {
		t.Errorf("the pause made a running job %s", phase)
	}

	c.terminate(t)
	c.start(t)
	m.awaitWhole(t)
	if status, err := c.client.Status(t.Context()); err != nil || !status.Paused {
		t.Errorf("after a restart: paused = %t, %v; want true", status.Paused, err)
	}
	if phase := m.job(t, waiting).Phase; phase.Ended() || phase == view.PhaseRunning {
		t.Errorf("a job is %s while every site is paused", phase)
	}
	c.command(t, "resume").want(t, 0)
	m.submit(t, "wait", string(waiting)).want(t, 0)

	b.command(t, "stop", "--now").want(t, 0, "stopping")
	select {
	case <-b.ended:
	case <-time.After(patience):
		t.Fatal("the agent did not end after stop --now")
	}
	if code := b.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("a stopped agent ends with %d, want 0", code)
	}
	b.awaitNoProcess(t)
	eventually(t, patience, "the job moves", func() bool {
		task := m.tasks(t, running)[0]
		return task.Site == c.id && task.Phase == view.PhaseRunning
	})

	c.command(t, "stop").want(t, 0, "stopping")
	late := m.begin(t, nil, "print=nowhere")
	m.awaitPhase(t, late, view.PhaseWaiting)
	if !c.alive() {
		t.Error("the agent did not wait for its job")
	}
	m.wantResults(t, running, 1)
	select {
	case <-c.ended:
	case <-time.After(patience):
		t.Fatal("the agent did not end after its last job")
	}
	if moves := m.job(t, running).Moves; moves != 1 {
		t.Errorf("the job moved %d times, want once", moves)
	}
	eventually(t, patience, "a job that nobody takes has a hint between two rounds", func() bool {
		return m.job(t, late).Hint != ""
	})
	m.submit(t, "cancel", string(late)).want(t, 0)
	m.audit(t)
	m.replay(t)
}

// TestResumeCallsOffStop resumes a site that was told to stop while something
// runs there.
func TestResumeCallsOffStop(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, oneCore)
	id := m.begin(t, nil, "ticks=20")
	m.awaitPhase(t, id, view.PhaseRunning)
	b := m.sites[1]
	b.command(t, "stop").want(t, 0)
	b.command(t, "resume").want(t, 0)
	m.submit(t, "wait", string(id)).want(t, 0)
	m.run(t, "print=still here").want(t, 0)
	if status := b.command(t, "status"); !strings.Contains(status.out, "sharing     yes\n") {
		t.Errorf("status after stop and resume:\n%s", status.out)
	}
}
