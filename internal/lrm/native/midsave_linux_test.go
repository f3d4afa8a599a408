package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
)

// inSave is an attempt that was saved once, went on, and is in the middle of another save: before
// its image is written, or before it goes on from that.
func (f faulty) inSave(t *testing.T, step string) (lrm.Attempt, lrm.Process) {
	t.Helper()
	a := whole(t, "", counts)
	p := lrmtest.Start(t, f, a)
	until(t, p, a, "first gate", func() bool {
		return strings.Contains(text(t, a.StdoutPath()), "\n10 ")
	})
	saved(t, a, p)
	gate(t, p, a, "gate10", "\n20 ")
	f.trouble(t, "tarry-"+step)
	if err := a.StateDir().Ask(true); err != nil {
		t.Fatal(err)
	}
	now := filepath.Join(f.dir, "now")
	until(t, p, a, step, func() bool { return os.Remove(now) == nil })
	if err := os.Remove(filepath.Join(f.dir, "tarry-"+step)); err != nil {
		t.Fatal(err)
	}
	return a, p
}

// of lists the processes that were started for an attempt, by their command lines.
func of(t *testing.T, a lrm.Attempt) (left []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if words := strings.ReplaceAll(string(line), "\x00", " "); err == nil &&
			strings.Contains(words, a.Dir) {
			left = append(left, words)
		}
	}
	return left
}

// nothingLeft wants an attempt that ended to leave no process and no mount.
func nothingLeft(t *testing.T, a lrm.Attempt) {
	t.Helper()
	lrmtest.Until(t, "no process is left", 2*time.Second, func() bool {
		return len(of(t, a)) == 0 && len(lrmtest.Processes(t, a.Dir)) == 0
	})
	if mounts := text(t, "/proc/self/mountinfo"); strings.Contains(mounts, a.Dir) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	if err := lrm.RemoveTree(a.Dir); err != nil {
		t.Errorf("RemoveTree: %v", err)
	}
}

// inEachSave tests the middle of a save at each of its steps, with and without control groups.
func inEachSave(t *testing.T, test func(t *testing.T, f faulty, step string)) {
	t.Helper()
	for _, way := range []string{gvisorAlone, withGVisor} {
		f := needFaulty(t, way)
		for _, step := range []string{"checkpoint", "restore"} {
			t.Run(way+", "+step, func(t *testing.T) { test(t, f, step) })
		}
	}
}

// A command that is frozen in the middle of a save is saved and goes on when it may run again; it
// loses nothing. Meanwhile no state appears.
func TestAFreezeInTheMiddleOfASave(t *testing.T) {
	inEachSave(t, func(t *testing.T, f faulty, step string) {
		a, p := f.inSave(t, step)
		states := a.StateDir()
		if err := p.Suspend(true); err != nil {
			t.Fatal(err)
		}
		for e := range p.Events() {
			if e.Kind == lrm.Frozen {
				break
			}
		}
		before := states.Look()
		<-time.After(2 * time.Second) // longer than it tarries
		if !lrm.SameState(before, states.Look()) || states.Problem() != "" {
			t.Errorf("saved while it was frozen; %q", states.Problem())
		}
		if err := p.Suspend(false); err != nil {
			t.Fatal(err)
		}
		until(t, p, a, "a state", func() bool { return !lrm.SameState(before, states.Look()) })
		goesOn(t, p, a)
		if note := ended(t, p, a); note != "" {
			t.Errorf("its end says %q", note)
		}
		nothingLeft(t, a)
	})
}

// A command that is killed in the middle of a save leaves no process and no mount, and its state
// before, from which it goes on elsewhere.
func TestAKillInTheMiddleOfASave(t *testing.T) {
	inEachSave(t, func(t *testing.T, f faulty, step string) {
		a, p := f.inSave(t, step)
		if len(of(t, a)) == 0 {
			t.Error("none of its processes is seen")
		}
		before := a.StateDir().Look()
		stopped(t, p)
		if !lrm.SameState(before, a.StateDir().Look()) {
			t.Error("the state before is another")
		}
		state := copied(t, a.StateDir())
		nothingLeft(t, a)
		moved := whole(t, state, counts)
		p = lrmtest.Start(t, f, moved)
		goesOn(t, p, moved)
		if note := ended(t, p, moved); note != "" {
			t.Errorf("its end says %q", note)
		}
		nothingLeft(t, moved)
	})
}
