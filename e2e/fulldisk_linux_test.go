//go:build e2e

package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// smallDisk is a file system of that many MiB, taken down at the end of the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mrsdisk") //nolint:usetesting // beside everything that is removed recursively
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		_ = os.Remove(dir)
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
			return
		}
		if err := os.Remove(dir); err != nil { // empty, or it stays
			t.Error(err)
		}
	})
	return dir
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 16 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("fill the disk: %v", err)
		}
		err = nil
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "96m")
	m := prepareMesh(t, submitOnly, twoCores)
	a := m.sites[0]
	a.state = filepath.Join(disk, "a")
	a.init(t)
	m.acquaint(t)
	for _, s := range m.sites {
		s.start(t)
	}
	m.awaitWhole(t)
	before := m.begin(t, result, "ticks=30", "put=/out/r:result 0")
	m.awaitPhase(t, before, view.PhaseRunning)

	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	writeFile(t, filepath.Join(m.work, "big"), strings.Repeat("ballast", 1<<18))
	refused := m.submit(t, "run", "--wasm", bin.guest, "-i", "big:/in/big", "--", "exit=0")
	t.Logf("with a full disk: exit code %d, stderr %s", refused.code, refused.err)
	if refused.code != 1 && refused.code != 5 {
		t.Errorf("exit code %d, want 1 (or 5, if the agent has ended)", refused.code)
	}
	if refused.code == 1 && !strings.Contains(refused.err, "disk full") {
		t.Errorf("stderr does not say that the disk is full: %s", refused.err)
	}
	if a.alive() {
		status := a.command(t, "status")
		if !strings.Contains(status.out, "sharing     no: the disk is full") ||
			!strings.Contains(status.out, "free some space") {
			t.Errorf("status does not say what is wrong:\n%s%s", status.out, status.err)
		}
	}
	// The running job ends meanwhile; what that takes to remember does not fit. The
	// agent lives and tries again, or ends; either way it names the disk.
	eventually(t, patience, "the agent ends, or the job does, or its result does not fit",
		func() bool {
			if !a.alive() || strings.Contains(readFile(t, a.log), "event=collect_failed") {
				return true
			}
			detail, err := a.client.Job(t.Context(), before)
			return err == nil && detail.Status.Phase.Ended()
		})
	if !a.alive() && !strings.Contains(a.tail(), "is the disk full?") {
		t.Errorf("the agent ended without naming the disk:\n%s", a.tail())
	}
	t.Logf("the agent lives: %t", a.alive())

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if !a.alive() {
		a.start(t)
	}
	m.wantResults(t, before, 1)
	m.submit(t, "run", "--wasm", bin.guest, "-i", "big:/in/big", "--", "exit=0").want(t, 0)
	m.audit(t)
}
