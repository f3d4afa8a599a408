package supervise

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// The quick way to find a tree's processes finds what the sure way finds.
func TestNearbyIsDescendants(t *testing.T) {
	cmd := exec.Command(
		"/bin/sh", "-c",
		`((read x <&3; true) & echo 1; wait) & (read x <&3; true) & echo 2; read x <&3; true`,
	)
	hold, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	cmd.ExtraFiles = []*os.File{hold}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		release.Close()
		_ = cmd.Wait()
	}()
	if _, err := io.ReadFull(out, make([]byte, len("1\n2\n"))); err != nil {
		t.Fatal(err)
	}
	byPID := func(a, b member) int { return cmp.Compare(a.pid, b.pid) }
	sure, quick := descendants(cmd.Process.Pid), nearby(cmd.Process.Pid)
	slices.SortFunc(sure, byPID)
	slices.SortFunc(quick, byPID)
	if len(sure) != 3 || !slices.Equal(sure, quick) {
		t.Errorf("nearby = %v, descendants = %v, want the same three", quick, sure)
	}
	if grown, enough := treeMemory(sure, 0), int64(1<<40); grown <= 0 ||
		treeMemory(sure, enough) < grown {
		t.Errorf("memory = %d, roughly %d; want at least as much", grown, treeMemory(sure, enough))
	}
}
