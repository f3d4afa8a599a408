//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/agent"
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

// With less free than its owner keeps a site takes nothing and freezes its jobs, also if none of
// them has filled the disk. A job that stays frozen goes on elsewhere; the site itself lives, and
// goes on when there is space again.
func TestTheOwnerKeepsSomeDisk(t *testing.T) {
	t.Parallel()
	if !mayMount(t) {
		return
	}
	const keeps = twoCores + "owner: {yield: false, free-disk: 48MiB, patience: 1s}\n"
	disks := []string{"", smallDisk(t, "96m"), smallDisk(t, "96m")} // they outlive the mesh
	m := prepareMesh(t, submitOnly, keeps, keeps)
	for i, s := range m.sites[1:] {
		s.state = filepath.Join(disks[i+1], s.name)
		s.init(t)
	}
	m.acquaint(t)
	for _, s := range m.sites {
		s.start(t)
	}
	m.awaitWhole(t)
	id := m.begin(t, []string{"--disk", "8MiB"}, endlessWork)
	at, other := m.holder(t, id), m.sites[2]
	if other == at {
		other = m.sites[1]
	}
	ballast := filepath.Join(filepath.Dir(at.state), "ballast")
	writeFile(t, ballast, strings.Repeat("ballast ", 8<<20))
	eventually(t, patience, "the job goes on elsewhere", func() bool {
		task := m.tasks(t, id)[0]
		return task.Site == other.id && task.Phase == view.PhaseRunning
	})
	status := at.command(t, "status")
	if !strings.Contains(status.out, " are free, and you keep 48.0 MiB (owner.free-disk)") ||
		!strings.Contains(status.out, "keep less: siteagent config set owner.free-disk SIZE") {
		t.Errorf("status does not say what is wrong:\n%s%s", status.out, status.err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the site takes jobs again", func() bool {
		return strings.Contains(at.command(t, "status").out, "sharing     yes")
	})
	m.submit(t, "cancel", string(id)).want(t, 0)
	m.audit(t)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !mayMount(t) {
		return
	}
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
	before := m.begin(t, result, "ticks=80", "put=/out/r:result 0")
	m.awaitPhase(t, before, view.PhaseRunning)

	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	writeFile(t, filepath.Join(m.work, "big"), strings.Repeat("ballast", 1<<18))
	refused := m.submit(t, "run", "--wasm", bin.guest, "-i", "big:/in/big", "--", "exit=0")
	t.Logf("with a full disk: exit code %d, stderr %s", refused.code, refused.err)
	if refused.code != 1 {
		t.Errorf("exit code %d, want 1", refused.code)
	}
	// The data does not fit, or the job is refused if the agent has seen the disk before it comes.
	if !strings.Contains(refused.err, "disk full: free some space") &&
		!strings.Contains(refused.err, "disk is full; free some space") {
		t.Errorf("stderr does not say that the disk is full, and what helps: %s", refused.err)
	}
	status := a.command(t, "status")
	if !strings.Contains(status.out, "sharing     no: the disk is full") ||
		!strings.Contains(status.out, "free some space") {
		t.Errorf("status does not say what is wrong:\n%s%s", status.out, status.err)
	}
	// The agent gives up its ballast, for its own records. That is taken, too.
	reserve := filepath.Join(a.state, agent.BallastFile)
	eventually(t, patience, "the ballast is given up", func() bool {
		_, err := os.Stat(reserve)
		return errors.Is(err, os.ErrNotExist)
	})
	// The job goes on at the other site; what there is to write down of it does not fit here. What
	// else the agent lets go meanwhile is taken as well.
	fills := []string{ballast}
	eventually(t, patience, "something does not fit", func() bool {
		fills = append(fills, fmt.Sprint(ballast, len(fills)))
		fill(t, fills[len(fills)-1])
		log := readFile(t, a.log)
		return strings.Contains(log, "event=collect_failed") || !a.alive() ||
			strings.Contains(log, "facts cannot be written") ||
			strings.Contains(log, "the journal waits for space")
	})
	if !a.alive() {
		t.Fatalf("the agent ended:\n%s", a.tail())
	}

	for _, file := range fills {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	m.wantResults(t, before, 1)
	eventually(t, patience, "the ballast is made again", func() bool {
		info, err := os.Stat(reserve)
		return err == nil && info.Size() > 0
	})
	m.submit(t, "run", "--wasm", bin.guest, "-i", "big:/in/big", "--", "exit=0").want(t, 0)
	m.audit(t)
}
