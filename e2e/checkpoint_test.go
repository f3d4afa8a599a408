//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A job whose agent is killed goes on elsewhere from its last checkpoint, and its result is that
// of a run that nothing happened to.
func TestAKilledJobGoesOn(t *testing.T) {
	t.Parallel()
	const steps = 2500 // of some milliseconds
	m := newMesh(t, submitOnly, twoCores, twoCores)
	id := m.begin(t, []string{"--checkpoint", "every 1s"}, fmt.Sprintf("chain=%d", steps))
	m.killOnceSaved(t, id)
	m.awaitPhase(t, id, view.PhaseDone)
	want := chainOf(steps)
	logs := m.submit(t, "logs", string(id))
	if got := strings.TrimSpace(logs.out); got != fmt.Sprint(want) {
		t.Errorf("the result is %q, want %d", got, want)
	}
	if from := wentOnFrom(t, logs.err); from == 0 {
		t.Error("it began anew")
	}
	m.audit(t)
	m.replay(t)
}

// So does a module of steps, which knows nothing of checkpoints.
func TestAKilledModuleOfStepsGoesOn(t *testing.T) {
	module := filepath.Join(t.TempDir(), "primes.wasm")
	build := exec.CommandContext(t.Context(),
		"go", "build", "-buildmode=c-shared", "-o", module, "../examples/steps")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	m := newMesh(t, submitOnly, twoCores, twoCores)
	flags := []string{"--checkpoint", "every 1s", "--wasm", module}
	id := m.begin(t, flags, "500000000") // of which no machine is done within a few seconds
	m.killOnceSaved(t, id)
	m.awaitPhase(t, id, view.PhaseDone)
	want := "26355867 primes below 500000000"
	if got := strings.TrimSpace(m.submit(t, "logs", string(id)).out); got != want {
		t.Errorf("the result is %q, want %q", got, want)
	}
	m.audit(t)
	m.replay(t)
}

// chainOf returns the number that the chain of the guest prints. A step is turns times
// x -> factor x + i: twice as many turns are x -> factor^2 x + (factor + 1) i, and turns is a
// power of 2.
func chainOf(steps uint64) (value uint64) {
	const doublings = 22
	factor, sum := uint64(6364136223846793005), uint64(1)
	for range doublings {
		factor, sum = factor*factor, sum*(factor+1)
	}
	for i := range steps {
		value = factor*value + sum*i
	}
	return value
}

// killOnceSaved kills the agent that runs a job when two checkpoints of the job count.
func (m *mesh) killOnceSaved(t *testing.T, id grid.JobID) {
	t.Helper()
	victim := m.holder(t, id)
	eventually(t, 3*patience, "two checkpoints count", func() bool {
		saved := m.tasks(t, id)[0].Saved
		return saved != nil && saved.Number >= 2
	})
	if text := m.submit(t, "status", string(id)).out; !strings.Contains(text, "saved ") {
		t.Errorf("status does not say so: %s", text)
	}
	killed := time.Now()
	victim.kill(t)
	eventually(t, patience, "it runs elsewhere", func() bool {
		task := m.tasks(t, id)[0]
		return task.Site != victim.id && task.Phase == view.PhaseRunning
	})
	t.Logf("running elsewhere after %s", time.Since(killed))
}

// wentOnFrom reads at which step a program said that it began.
func wentOnFrom(t *testing.T, text string) (step int) {
	t.Helper()
	_, after, _ := strings.Cut(text, "from ")
	if _, err := fmt.Sscan(after, &step); err != nil {
		t.Errorf("%q does not say where it began", text)
	}
	return step
}
