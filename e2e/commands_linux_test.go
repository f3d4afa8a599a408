//go:build e2e

package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/scripttest"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// withCommands are the settings of a site whose owner allows commands.
func withCommands() string {
	return twoCores + "kinds: wasm,command\ncommands: " + scripttest.Commands() + "\n"
}

// needBubblewrap skips a test of commands where sites run none: their sandbox is bubblewrap, which
// a fresh machine may lack. CI installs it.
func needBubblewrap(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed")
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	m := newMesh(t, submitOnly, twoCores, withCommands())
	status, err := m.sites[2].client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(status.Kinds, " "), "command") {
		t.Skipf("commands do not work here: %+v", status.Notices)
	}
	m.submit(t, "run", "--", "sh", "-c", "exit 7").want(t, 7, "failed with code 7")
	m.submit(t, "run", "--", "no-such-command").want(t, 127)
	m.submit(t, "run", "--", "sh", "-c", "kill -9 $$").want(t, 137)

	writeFile(t, filepath.Join(m.work, "in.txt"), "content")
	a := m.submit(
		t, "run", "-i", "in.txt:/in/x", "--out", "/out/y:sub/y.txt", "--", "sh", "-c",
		"cat /in/x; tr a-z A-Z </in/x >/out/y",
	)
	a.want(t, 0)
	if a.out != "content" {
		t.Errorf("stdout = %q", a.out)
	}
	if got := readFile(t, filepath.Join(m.work, "sub", "y.txt")); got != "CONTENT" {
		t.Errorf("output = %q", got)
	}
	m.audit(t)
}

func TestCommandsNotAllowed(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores)
	m.submit(t, "run", "--", "sh", "-c", "exit 7").want(
		t, 4, "no site can run this", "does not run this kind of work",
	)
}

// A command of the shell that saves its state goes on elsewhere when its agent is killed, under
// bubblewrap.
func TestAKilledCommandGoesOn(t *testing.T) {
	needBubblewrap(t)
	m := newMesh(t, submitOnly, withCommands(), withCommands())
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
	a := m.submit(
		t, "run", "--parsable", "-d", "--checkpoint", "every 1s", "--", "sh", "-c", script,
	)
	a.want(t, 0)
	id := grid.JobID(strings.TrimSpace(a.out))
	m.killOnceSaved(t, id)
	m.awaitPhase(t, id, view.PhaseDone)
	logs := m.submit(t, "logs", string(id))
	// Two states count, and between two the script takes a step at least, however slow it is.
	if strings.TrimSpace(logs.out) != "150" || wentOnFrom(t, logs.err) < 2 {
		t.Errorf("it printed %q and %q", logs.out, logs.err)
	}
	m.audit(t)
}
