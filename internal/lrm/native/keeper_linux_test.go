package native_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// counts is a program that knows nothing of states: it counts in memory, appends to a file that it
// holds open, reads an input line by line and prints.
const counts = `exec 5>count.txt 6</in/lines
i=0; sum=0
while [ $i -lt 60 ]; do
	i=$((i+1)); sum=$((sum+i*i)); read -r line <&6
	echo "$i $sum $line"; echo "$sum" >&5
	n=0; while [ $n -lt 5000 ]; do n=$((n+1)); done
done
echo done >&2
cat count.txt`

// whole is an attempt at a command in a new directory, which goes on from a state if there is one.
func whole(t *testing.T, state string, args ...string) lrm.Attempt {
	t.Helper()
	a := attempt(t, args...)
	a.Task.Checkpoint.Whole, a.StatePath, a.Limits.DiskBytes = true, state, 256<<20
	input := filepath.Join(t.TempDir(), "lines")
	text := strings.Repeat("a line of the input\n", 60)
	if err := os.WriteFile(input, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Inputs = append(a.Inputs, lrm.Bind{SandboxPath: "/in/lines", HostPath: input})
	return a
}

// needSaving skips the test where commands cannot be saved whole.
func needSaving(t *testing.T) *native.Adapter {
	t.Helper()
	adapter := need(t, gvisorAlone)
	if s := adapter.Probe(t.Context()); !s.Saves {
		t.Skip(strings.Join(s.Notes, "; "))
	}
	return adapter
}

// saved waits for a state of a running attempt and keeps a copy of it elsewhere.
func saved(t *testing.T, a lrm.Attempt, p lrm.Process) string {
	t.Helper()
	states := a.StateDir()
	if a.StatePath != "" {
		before := states.Look()
		defer func() {
			if lrm.SameState(before, states.Look()) {
				t.Error("no new state")
			}
		}()
		if err := states.Ask(true); err != nil {
			t.Fatal(err)
		}
		return copied(t, states, func() bool { return !lrm.SameState(before, states.Look()) }, p)
	}
	if err := states.Ask(true); err != nil {
		t.Fatal(err)
	}
	return copied(t, states, func() bool { return states.Look() != nil }, p)
}

func copied(t *testing.T, states lrm.StateDir, there func() bool, p lrm.Process) string {
	t.Helper()
	for !there() {
		if why := states.Problem(); why != "" {
			t.Fatalf("no state: %s", why)
		}
		select {
		case _, open := <-p.Events():
			if !open {
				r, _ := p.Wait(t.Context())
				t.Fatalf("it ended before it was saved: %+v; %s", r.Exit, text(t, r.Stderr.HostPath))
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	from, err := states.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}

// text is what an attempt printed.
func text(t *testing.T, path string) string {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// A command that knows nothing of states is killed three times, each time after it was saved, and
// goes on in another directory each time: it prints what an untouched run prints.
func TestACommandIsSavedWhole(t *testing.T) {
	t.Parallel()
	adapter := needSaving(t)
	untouched := whole(t, "", "/bin/sh", "-c", counts)
	if r := lrmtest.Wait(t, lrmtest.Start(t, adapter, untouched)); r.Exit.Cause != grid.CauseExited ||
		r.Exit.Code != 0 {
		t.Fatalf("untouched: %+v", r.Exit)
	}
	state := ""
	for range 3 {
		a := whole(t, state, "/bin/sh", "-c", counts)
		p := lrmtest.Start(t, adapter, a)
		state = saved(t, a, p)
		if err := p.Stop("moved"); err != nil {
			t.Fatal(err)
		}
		lrmtest.Wait(t, p)
		if now := len(text(t, a.StdoutPath())); now >= len(text(t, untouched.StdoutPath())) {
			t.Fatalf("it had printed %d bytes, all, before it was killed", now)
		}
	}
	last := whole(t, state, "/bin/sh", "-c", counts)
	p := lrmtest.Start(t, adapter, last)
	if r := lrmtest.Wait(t, p); r.Exit.Cause != grid.CauseExited || r.Exit.Code != 0 {
		t.Fatalf("the last: %+v", r.Exit)
	}
	if why := last.StateDir().Problem(); why != "" {
		t.Errorf("the last began anew: %s", why)
	}
	for name, pair := range map[string][2]string{
		"stdout": {last.StdoutPath(), untouched.StdoutPath()},
		"stderr": {last.StderrPath(), untouched.StderrPath()},
	} {
		if got, want := text(t, pair[0]), text(t, pair[1]); got != want || want == "" {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A command that holds a file open which it has removed cannot be saved: it is told why, and goes on
// to its end.
func TestACommandThatCannotBeSavedGoesOn(t *testing.T) {
	t.Parallel()
	adapter := needSaving(t)
	a := whole(t, "", "/bin/sh", "-c", `exec 5>gone; /bin/rm gone
i=0; while [ ! -e /work/enough ] && [ $i -lt 2000000 ]; do i=$((i+1)); done; echo end`)
	p := lrmtest.Start(t, adapter, a)
	states := a.StateDir()
	if err := states.Ask(true); err != nil {
		t.Fatal(err)
	}
	why := ""
	for why == "" {
		select {
		case _, open := <-p.Events():
			if !open {
				t.Fatal("it ended before it was asked")
			}
		case <-time.After(20 * time.Millisecond):
		}
		why = states.Problem()
	}
	if !strings.Contains(why, "has removed") || states.Look() != nil {
		t.Errorf("why = %q", why)
	}
	if r := lrmtest.Wait(t, p); r.Exit.Cause != grid.CauseExited || text(t, a.StdoutPath()) != "end\n" {
		t.Errorf("exit = %+v, printed %q", r.Exit, text(t, a.StdoutPath()))
	}
}

// A state that is not whole is not used, and the task begins anew: it is told why.
func TestABadStateBeginsAnew(t *testing.T) {
	t.Parallel()
	adapter := needSaving(t)
	bad := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(bad, []byte("this is no state of gVisor's"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := whole(t, bad, "/bin/sh", "-c", "echo anew")
	if r := lrmtest.Wait(t, lrmtest.Start(t, adapter, a)); r.Exit.Cause != grid.CauseExited ||
		text(t, a.StdoutPath()) != "anew\n" {
		t.Errorf("exit = %+v", r.Exit)
	}
	if why := a.StateDir().Problem(); !strings.Contains(why, "begins anew") {
		t.Errorf("why = %q", why)
	}
}
