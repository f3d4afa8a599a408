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

// withGVisor are the settings of a site that runs commands under gVisor.
func withGVisor() string { return withCommands() + "sandbox: gvisor\n" }

// draws is a command that knows nothing of states. It draws a name when it begins, and prints it
// then and with each of its turns, so that who begins anew or loses a turn is seen. It is long
// enough to be moved twice, and has few turns: on a busy machine gVisor takes long to begin one.
var draws = fmt.Sprintf(`name=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
i=0
while [ "$i" -lt %d ]; do i=$((i + 1)); echo "$name $i"; sleep 1; done`, turns)

const turns = 20

// wantSaving skips a test where the sites do not save commands.
func (m *mesh) wantSaving(t *testing.T, sites ...*site) {
	t.Helper()
	for _, s := range sites {
		status, err := s.client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range status.Notices {
			if text := fmt.Sprint(n); strings.Contains(text, "cannot be saved") ||
				strings.Contains(text, "no commands") {
				t.Skip(text)
			}
		}
	}
}

// A command that saves nothing is moved by its user, and its next site's agent is killed once there
// is another state: each time it goes on elsewhere where it was. Sites that cannot save commands do
// not get it, and nobody is blamed for the move.
func TestACommandThatSavesNothingMoves(t *testing.T) {
	needBubblewrap(t)
	if _, err := exec.LookPath("runsc"); err != nil {
		t.Skip("runsc is not installed, without which no site saves commands: see gvisor.dev")
	}
	m := newMesh(t, submitOnly, withCommands(), withGVisor(), withGVisor())
	m.wantSaving(t, m.sites[2], m.sites[3])
	a := m.submit(
		t, "run", "--parsable", "-d", "--checkpoint", "transparent every 3s",
		"--", "sh", "-c", draws,
	)
	a.want(t, 0)
	id := grid.JobID(strings.TrimSpace(a.out))
	name := ""
	eventually(t, patience, "it prints its name", func() bool {
		name, _, _ = strings.Cut(m.submit(t, "logs", string(id)).out, " ")
		return name != ""
	})
	seen := time.Now()
	eventually(t, patience, "it was saved after that", func() bool {
		task := m.tasks(t, id)[0]
		return task.Saved != nil && task.Saved.WorkedSeconds > seen.Sub(task.Started.Time).Seconds()
	})
	first := m.holder(t, id)
	eventually(t, patience, "it was saved, and moves", func() bool {
		a = m.submit(t, "migrate", string(id))
		return a.code == 0
	})
	t.Log(a.err)
	a.want(t, 0, "moved from")
	if now := m.holder(t, id); now == first {
		t.Errorf("it is at %s still", now.name)
	}
	if status, err := m.sites[0].client.Status(t.Context()); err != nil || len(status.Faults) > 0 {
		t.Errorf("faults %+v, %v", status.Faults, err)
	}
	m.killOnceSaved(t, id)
	eventually(t, 3*patience, "it ends", func() bool { return m.job(t, id).Phase.Ended() })
	m.awaitPhase(t, id, view.PhaseDone)
	want := &strings.Builder{}
	for i := 1; i <= turns; i++ {
		fmt.Fprintln(want, name, i)
	}
	if got := m.submit(t, "logs", string(id)).out; got != want.String() {
		t.Errorf("it printed %q, want %q\n%s", got, want, m.submit(t, "describe", string(id)).out)
	}
	if why := m.submit(t, "why", string(id)); !strings.Contains(why.out, "does not save commands") {
		t.Errorf("why: %s", why.out)
	}
	m.audit(t)
}
