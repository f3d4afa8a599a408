package native_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// faulty is a gVisor that goes wrong as it is told.
type faulty struct {
	*native.Adapter
	dir string
}

// faultScript starts runsc, with trouble if there is a file that asks for it: a checkpoint that
// fails before it is begun, one whose image cannot be written, one image that is spoiled before it
// is restored, either of them taking its time, a kernel that crashes, and nothing that starts at
// all.
const faultScript = `#!/bin/sh
dir=%[1]s what= image= before= crashed=
for a; do
	case $a in checkpoint|restore) what=$a;; esac
	[ "$before" = --image-path ] && image=$a
	[ "$before" = --panic-log ] && crashed=$a
	before=$a
done
if [ "$what" = checkpoint ] && [ -e $dir/refuse ]; then echo refused >&2; exit 128; fi
if [ "$what" = checkpoint ] && [ -e $dir/lose ]; then /bin/rmdir "$image"; echo x >"$image"; fi
if [ "$what" = restore ] && [ -e $dir/spoil ]; then
	printf 'xxxxxxxx' | /bin/dd of="$image/checkpoint.img" bs=1 seek=20000 conv=notrunc 2>/dev/null
	/bin/rm $dir/spoil
fi
for a; do case $a in run|restore) [ ! -e $dir/dead ] || exit 3;; esac; done
if [ -e $dir/crash ]; then
	case " $* " in *" run "*) %[2]s "$@"; echo "panic: so it ends" >"$crashed"; exit 2;; esac
fi
if [ -e $dir/tarry-$what ]; then : >$dir/now; /bin/sleep 1; fi
exec %[2]s "$@"
`

// needFaulty skips the test where commands cannot be saved whole. A test that uses it runs beside
// no other, which may hold the script open for a moment, so that it cannot be run.
func needFaulty(t *testing.T, way string) faulty {
	t.Helper()
	runsc, err := exec.LookPath("runsc")
	if err != nil {
		t.Skip(err)
	}
	f := faulty{dir: t.TempDir()}
	script := filepath.Join(f.dir, "runsc")
	text := fmt.Sprintf(faultScript, f.dir, runsc)
	if err = os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	config, err := native.DefaultConfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config.Sandbox, config.NoGroups = strings.CutSuffix(way, withoutGroups)
	config.Runsc = script
	if f.Adapter, err = native.New(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if s := f.Probe(t.Context()); !s.Saves {
		t.Skip(strings.Join(s.Notes, "; "))
	}
	return f
}

// trouble makes it go wrong in that way from now on.
func (f faulty) trouble(t *testing.T, way string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, way), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A command that gVisor stopped and cannot save, or cannot go on with, goes on from the state
// before in the same attempt, with its files and what it had printed as they were then. It is saved
// no more, and its end says what has happened.
func TestACommandGoesOnFromTheStateBefore(t *testing.T) {
	f := needFaulty(t, gvisorAlone)
	for way, why := range map[string]string{
		"refuse": "gVisor cannot save the command: refused",
		"lose":   "gVisor cannot save the command: making directories",
		"spoil":  "gVisor cannot start it: ",
	} {
		t.Run(way, func(t *testing.T) {
			defer os.Remove(filepath.Join(f.dir, way))
			a := whole(t, "", counts)
			p := lrmtest.Start(t, f, a)
			until(t, p, a, "first gate", func() bool {
				return strings.Contains(text(t, a.StdoutPath()), "\n10 ")
			})
			saved(t, a, p)
			states := a.StateDir()
			before := states.Look()
			gate(t, p, a, "gate10", "\n20 ")
			f.trouble(t, way)
			if err := states.Ask(true); err != nil {
				t.Fatal(err)
			}
			until(t, p, a, "the reason", func() bool { return states.Problem() != "" })
			if told := states.Problem(); !strings.Contains(told, why) ||
				!strings.HasSuffix(told, "; it is not saved any more") {
				t.Errorf("told: %q", told)
			}
			if !lrm.SameState(before, states.Look()) {
				t.Error("the state before is another")
			}
			if out := text(t, a.StdoutPath()); strings.Contains(out, "\n20 ") {
				t.Errorf("it has gone on from %q", out)
			}
			goesOn(t, p, a)
			if note := ended(t, p, a); !strings.Contains(note, why) ||
				!strings.HasSuffix(note, "; the task went on from its state before") {
				t.Errorf("its end says %q", note)
			}
		})
	}
}

// goesOn opens all gates, and wants what an untouched run prints.
func goesOn(t *testing.T, p lrm.Process, a lrm.Attempt) {
	t.Helper()
	for turn := 10; turn < 40; turn += 10 {
		gate(t, p, a, fmt.Sprint("gate", turn), fmt.Sprintf("\n%d ", turn+10))
	}
	gate(t, p, a, "gate40", untouched())
	if got := text(t, a.StdoutPath()); got != untouched() {
		t.Errorf("it printed %q", got)
	}
}

// Without a state before it begins anew, in the same attempt, and so does one whose state, from
// another site, is spoiled.
func TestACommandBeginsAnewWithoutAStateBefore(t *testing.T) {
	f := needFaulty(t, gvisorAlone)
	a := whole(t, "", counts)
	p := lrmtest.Start(t, f, a)
	until(t, p, a, "first gate", func() bool {
		return strings.Contains(text(t, a.StdoutPath()), "\n10 ")
	})
	state := saved(t, a, p)
	stopped(t, p)

	f.trouble(t, "spoil")
	moved := whole(t, state, counts)
	p = lrmtest.Start(t, f, moved)
	goesOn(t, p, moved)
	if note := ended(t, p, moved); !strings.HasPrefix(note, "gVisor cannot start it: ") ||
		!strings.HasSuffix(note, "; the task began anew") {
		t.Errorf("its end says %q", note)
	}
	f.trouble(t, "refuse")
	a = whole(t, "", counts)
	p = lrmtest.Start(t, f, a)
	until(t, p, a, "first gate", func() bool {
		return strings.Contains(text(t, a.StdoutPath()), "\n10 ")
	})
	if err := a.StateDir().Ask(true); err != nil {
		t.Fatal(err)
	}
	until(t, p, a, "the reason", func() bool { return a.StateDir().Problem() != "" })
	goesOn(t, p, a)
	if note := ended(t, p, a); !strings.HasSuffix(note, "refused; the task began anew") {
		t.Errorf("its end says %q", note)
	}
}

// A command that cannot be saved and goes on nowhere here is no failure of its own: the attempt
// ends as one that its site has stopped, so that the task moves, and its state before is kept.
func TestACommandThatGoesOnNowhereMoves(t *testing.T) {
	f := needFaulty(t, gvisorAlone)
	a := whole(t, "", counts)
	p := lrmtest.Start(t, f, a)
	until(t, p, a, "first gate", func() bool {
		return strings.Contains(text(t, a.StdoutPath()), "\n10 ")
	})
	saved(t, a, p)
	before := a.StateDir().Look()
	f.trouble(t, "refuse")
	f.trouble(t, "dead")
	if err := a.StateDir().Ask(true); err != nil {
		t.Fatal(err)
	}
	r := lrmtest.Wait(t, p)
	const why = "not to go on here: gVisor cannot start it: it began nothing, and ended: " +
		"exit status 3"
	if r.Exit.Cause != grid.CauseStopped || !strings.HasPrefix(r.Exit.Text, why) {
		t.Errorf("exit = %+v", r.Exit)
	}
	if !lrm.SameState(before, a.StateDir().Look()) {
		t.Error("the state before is gone")
	}
	nothingLeft(t, a)
}

// Nothing is saved before a restore is done: a wish that comes earlier waits.
func TestNothingIsSavedBeforeItRuns(t *testing.T) {
	f := needFaulty(t, gvisorAlone)
	f.trouble(t, "tarry-restore")
	a := whole(t, "", counts)
	p := lrmtest.Start(t, f, a)
	for range 3 { // each is wanted while the one before is restored
		saved(t, a, p)
	}
	goesOn(t, p, a)
	if note := ended(t, p, a); note != "" {
		t.Errorf("its end says %q", note)
	}
}

// gVisor ends with code 128 when it fails; a command may, too, also immediately, and also with the
// words that gVisor says then.
func TestTheCodeThatGVisorFailsWith(t *testing.T) {
	t.Parallel()
	adapter := needSaving(t)
	for _, script := range []string{
		"exit 128", "sleep 1; exit 128",
		`echo '{"msg":"running container: x","level":"error"}' >&2; exit 128`,
	} {
		a := whole(t, "", script)
		r := lrmtest.Wait(t, lrmtest.Start(t, adapter, a))
		if r.Exit.Cause != grid.CauseExited || r.Exit.Code != 128 || r.Exit.Text != "" {
			t.Errorf("%s: exit = %+v", script, r.Exit)
		}
	}
}

// Where gVisor's own kernel crashes its exit code is none of the command's.
func TestACrashOfGVisorIsNoEndOfTheCommand(t *testing.T) {
	f := needFaulty(t, gvisorAlone)
	f.trouble(t, "crash")
	for _, saved := range []bool{false, true} {
		a := whole(t, "", "echo up")
		a.Task.Checkpoint.Whole = saved
		r := lrmtest.Wait(t, lrmtest.Start(t, f, a))
		told := !saved || strings.HasSuffix(r.Exit.Text, ": gVisor crashed: panic: so it ends")
		if r.Exit.Cause != grid.CauseSandbox || !told {
			t.Errorf("saved %v: exit = %+v, want the sandbox to blame", saved, r.Exit)
		}
		nothingLeft(t, a)
	}
}
