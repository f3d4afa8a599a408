package native_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
)

// strayIn leaves a sandbox in a directory that waits at its gate when nobody knows it any more,
// and gives a mark of its processes.
func strayIn(t *testing.T, dir string) (mark string) {
	t.Helper()
	root := filepath.Join(dir, "attempt", "work")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	gate, opens, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		gate.Close()
		opens.Close() // one that is left goes on, and ends
	})
	cmd := exec.CommandContext(
		t.Context(), "bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid",
		"--bind", root, "/", "--block-fd", "3", "--", "/true",
	)
	cmd.ExtraFiles = []*os.File{gate}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lrmtest.Until(t, "it is made", lrmtest.Patience, func() bool { return living(root) == 2 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return root
}

// A sandbox whose supervisor was killed before its command began is ended by the next agent, and
// that of another agent is not.
func TestASandboxThatNobodyKnows(t *testing.T) {
	way, _ := here(t)
	t.Parallel()
	mine, others := t.TempDir(), t.TempDir()
	adapter, err := newAdapter(t.Context(), filepath.Join(mine, "runs.jsonl"), way)
	if err != nil {
		t.Fatal(err)
	}
	own, strange := strayIn(t, mine), strayIn(t, others)
	before := living(strange)
	if err := adapter.Recover(t.Context()); err != nil {
		t.Error(err)
	}
	if n := living(own); n != 0 {
		t.Errorf("%d of its processes are left", n)
	}
	if n := living(strange); n != before {
		t.Errorf("of %d processes of another agent's %d are left", before, n)
	}
}
