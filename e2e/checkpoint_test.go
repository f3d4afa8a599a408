//go:build e2e

package e2e_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A job whose agent is killed goes on elsewhere from its last checkpoint, and its result is that
// of a run that nothing happened to.
func TestAKilledJobGoesOn(t *testing.T) {
	const steps = 1500 // of 10 ms
	m := newMesh(t, submitOnly, twoCores, twoCores)
	id := m.begin(t, []string{"--checkpoint", "every 1s"}, fmt.Sprintf("chain=%d", steps))
	m.killOnceSaved(t, id)
	m.awaitPhase(t, id, view.PhaseDone)
	want := uint64(0)
	for i := range uint64(steps) {
		want = want*6364136223846793005 + i
	}
	logs := m.submit(t, "logs", string(id))
	if got := strings.TrimSpace(logs.out); got != fmt.Sprint(want) {
		t.Errorf("the result is %q, want %d", got, want)
	}
	if from := wentOnFrom(t, logs.err); from < 100 {
		t.Errorf("it went on from step %d", from)
	}
	m.audit(t)
	m.replay(t)
}

// A command of the shell does the same, under bubblewrap.
func TestAKilledCommandGoesOn(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed")
	}
	m := newMesh(t, submitOnly, withCommands, withCommands)
	const script = `
i=$(cat "$MRS_CKPT_DIR/state" 2>/dev/null || echo 0)
echo "from $i" >&2
while [ "$i" -lt 150 ]; do
	i=$((i + 1)); sleep 0.1
	if [ -e "$MRS_CKPT_DIR/wanted" ]; then
		echo "$i" >"$MRS_CKPT_DIR/next" && mv "$MRS_CKPT_DIR/next" "$MRS_CKPT_DIR/state"
	fi
done
echo "$i"`
	a := m.submit(t, "run", "--parsable", "-d", "--checkpoint", "every 1s", "--", "sh", "-c", script)
	a.want(t, 0)
	id := grid.JobID(strings.TrimSpace(a.out))
	m.killOnceSaved(t, id)
	m.awaitPhase(t, id, view.PhaseDone)
	logs := m.submit(t, "logs", string(id))
	if strings.TrimSpace(logs.out) != "150" || wentOnFrom(t, logs.err) < 10 {
		t.Errorf("it printed %q and %q", logs.out, logs.err)
	}
	m.audit(t)
}

// killOnceSaved kills the agent that runs a job when two checkpoints of the job count.
func (m *mesh) killOnceSaved(t *testing.T, id grid.JobID) {
	t.Helper()
	victim := m.holder(t, id)
	eventually(t, patience, "two checkpoints count", func() bool {
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
