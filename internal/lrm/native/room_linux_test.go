package native_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// writes is a program that writes 8 MiB of random bytes, and twice more when it is told.
const writes = `dir=/work
put() { dd if=/dev/urandom of=$dir/$1 bs=1M count=8 iflag=fullblock 2>&-; echo $1; }
await() { while [ ! -e /tmp/$1 ]; do sleep 0.1; done; }
put a; await more; put b; await most; put c; await go; echo end`

// A state counts against the task's disk: one that has no space is not taken, and that harms
// nobody; with one a command may write the less.
func TestAStateCountsAgainstTheDisk(t *testing.T) {
	t.Parallel()
	adapter := needSaving(t)
	for _, saves := range []bool{false, true} {
		a := whole(t, "", writes)
		a.Limits.DiskBytes = 30 << 20
		p := lrmtest.Start(t, adapter, a)
		until(t, p, a, "a", func() bool { return text(t, a.StdoutPath()) == "a\n" })
		if saves {
			saved(t, a, p)
		}
		gate(t, p, a, "more", "b")
		if !saves {
			refused(t, p, a, "the task's disk has no space for its state: ")
		}
		openGate(t, a, "most")
		if !saves {
			gate(t, p, a, "go", "end")
			ended(t, p, a)
			continue
		}
		r := lrmtest.Wait(t, p)
		if r.Exit.Cause != grid.CauseDisk {
			t.Errorf("exit = %+v, want too much of the disk", r.Exit)
		}
		nothingLeft(t, a)
	}
}

// refused wants a wish for a state to be refused, with a reason, and no state.
func refused(t *testing.T, p lrm.Process, a lrm.Attempt, why string) {
	t.Helper()
	states := a.StateDir()
	if err := states.Ask(true); err != nil {
		t.Fatal(err)
	}
	until(t, p, a, "a reason", func() bool { return states.Problem() != "" })
	if told := states.Problem(); !strings.Contains(told, why) || states.Look() != nil {
		t.Errorf("told: %q", told)
	}
}

// Where the site's disk has no space for a state none is taken, and the command goes on unharmed.
func TestAFullDiskHarmsNoCommand(t *testing.T) {
	adapter := needSaving(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("a small disk cannot be mounted here: ", err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	a := whole(t, "", writes)
	a.Dir = filepath.Join(dir, "attempt")
	if err := os.Mkdir(a.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p := lrmtest.Start(t, adapter, a)
	gate(t, p, a, "more", "b")
	refused(t, p, a, "the site's disk has no space")
	if err := os.Remove(filepath.Join(a.WorkDir(), "work", "a")); err != nil {
		t.Fatal(err)
	}
	gate(t, p, a, "most", "c")
	gate(t, p, a, "go", "end")
	if note := ended(t, p, a); note != "" {
		t.Errorf("its end says %q", note)
	}
}

// holds is a program of two processes: one has 64 MiB in memory and waits for a pipe to take them,
// the other takes them when it is told.
const holds = `dd if=/in/lines bs=64M count=1 iflag=fullblock 2>/dev/null |
{ echo ready; while [ ! -e /tmp/go ]; do sleep 0.1; done; sha256sum | cut -c1-64; }
while [ ! -e /tmp/more ]; do sleep 0.1; done
dd if=/dev/zero of=/dev/null bs=512M count=1`

// holding is an attempt that has 64 MiB of an input in memory, or goes on with them.
func holding(t *testing.T, adapter lrm.Adapter, input, state string) (lrm.Attempt, lrm.Process) {
	t.Helper()
	a := whole(t, state, holds)
	a.Limits.MemoryBytes, a.Limits.MilliCPUs = 96<<20, 500
	a.Inputs[0].HostPath = input
	p := lrmtest.Start(t, adapter, a)
	if state == "" {
		until(t, p, a, "ready", func() bool { return text(t, a.StdoutPath()) == "ready\n" })
		until(t, p, a, "all is in memory", func() bool { return idle(t, p) })
	}
	return a, p
}

// A command with 64 MiB in memory is saved within its limits on memory and processor, goes on
// elsewhere with all of it, and is held by its limits there.
func TestLimitsHoldForWhatIsSaved(t *testing.T) {
	t.Parallel()
	input, digest := random(t, 64<<20)
	for _, way := range []string{gvisorAlone, withGVisor} {
		t.Run(way, func(t *testing.T) {
			adapter := needSavingAs(t, way)
			a, p := holding(t, adapter, input, "")
			state := savedWithin(t, a, p)
			stopped(t, p)
			nothingLeft(t, a)

			a, p = holding(t, adapter, input, state)
			gate(t, p, a, "go", digest)
			if got := text(t, a.StdoutPath()); got != "ready\n"+digest+"\n" {
				t.Errorf("it printed %q, want the digest %s", got, digest)
			}
			saved(t, a, p)
			openGate(t, a, "more")
			if r := lrmtest.Wait(t, p); r.Exit.Cause != grid.CauseMemory {
				t.Errorf("exit = %+v, want too much memory; %s", r.Exit, text(t, a.StderrPath()))
			}
			nothingLeft(t, a)
		})
	}
}

// savedWithin saves an attempt, and wants it to use no more of a core meanwhile than it may.
func savedWithin(t *testing.T, a lrm.Attempt, p lrm.Process) string {
	t.Helper()
	meter := p.(lrm.Meter)
	began := time.Now()
	before, _ := meter.CPUTime()
	state := saved(t, a, p)
	took := time.Since(began)
	after, known := meter.CPUTime()
	info, err := os.Stat(state)
	if err != nil {
		t.Fatal(err)
	}
	share := (after - before).Seconds() / took.Seconds()
	t.Logf("saved %d MiB in %s with %.2f of a core, of which it may use 0.50",
		info.Size()>>20, took, share)
	// the same margins as for what is not saved, and what was not used before
	if most := .5*1.15 + .2 + .1/took.Seconds(); !known || share > most {
		t.Errorf("it used %.2f of a core, want at most %.2f", share, most)
	}
	return state
}

// A command that is frozen while its image is being written, and killed while another is, loses
// nothing of its 64 MiB.
func TestAFreezeWhileAnImageIsWritten(t *testing.T) {
	t.Parallel()
	adapter := needSaving(t)
	input, digest := random(t, 64<<20)
	a, p := holding(t, adapter, input, "")
	t.Logf("frozen at %d KiB of its image", writing(t, a, p)>>10)
	if err := p.Suspend(true); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	if err := p.Suspend(false); err != nil {
		t.Fatal(err)
	}
	until(t, p, a, "a state", func() bool { return a.StateDir().Look() != nil })
	if err := a.StateDir().Ask(false); err != nil {
		t.Fatal(err)
	}
	before := a.StateDir().Look()
	t.Logf("killed at %d KiB of its image", writing(t, a, p)>>10)
	stopped(t, p)
	if !lrm.SameState(before, a.StateDir().Look()) {
		t.Error("the state before is another")
	}
	state := copied(t, a.StateDir())
	nothingLeft(t, a)
	a, p = holding(t, adapter, input, state)
	gate(t, p, a, "go", "ready\n"+digest+"\n")
}

// writing asks for a state, and waits until its image is being written. It gives its size then.
func writing(t *testing.T, a lrm.Attempt, p lrm.Process) (size int64) {
	t.Helper()
	if err := a.StateDir().Ask(true); err != nil {
		t.Fatal(err)
	}
	until(t, p, a, "an image is written", func() bool {
		images, err := filepath.Glob(filepath.Join(a.Dir, "image-*", "checkpoint.img"))
		if err != nil || len(images) == 0 {
			return false
		}
		info, err := os.Stat(images[0])
		if err != nil {
			return false
		}
		size = info.Size()
		return size > 0
	})
	return size
}

// idle reports whether an attempt uses hardly any processor time, over a quarter of a second.
func idle(t *testing.T, p lrm.Process) bool {
	t.Helper()
	meter, ok := p.(lrm.Meter)
	if !ok {
		t.Skip("the adapter does not tell what an attempt uses")
	}
	before, _ := meter.CPUTime()
	<-time.After(250 * time.Millisecond)
	after, known := meter.CPUTime()
	return known && after-before < 50*time.Millisecond
}

// random is a file of so many bytes that nothing makes smaller, with its digest.
func random(t *testing.T, bytes int) (path, digest string) {
	t.Helper()
	all := make([]byte, bytes)
	x := uint64(1)
	for i := range all {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		all[i] = byte(x >> 32)
	}
	path = filepath.Join(t.TempDir(), "random")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(all)
	return path, hex.EncodeToString(sum[:])
}
