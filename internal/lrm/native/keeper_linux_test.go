package native_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// counts is a program that knows nothing of states: it counts in memory, appends to a file that it
// holds open, reads an input line by line and prints. At every tenth step it waits behind a gate,
// with another process.
const counts = `exec 5>count.txt 6</in/lines
i=0; sum=0
while [ $i -lt 40 ]; do
	i=$((i+1)); sum=$((sum+i*i)); read -r line <&6
	echo "$i $sum $line"; echo "$sum" >&5
	while [ $((i % 10)) = 0 ] && [ ! -e /tmp/gate$i ]; do sleep 0.1; done
done
echo done >&2
cat count.txt`

// whole is an attempt at a command in a new directory, which goes on from a state if there is one.
func whole(t *testing.T, state, script string) lrm.Attempt {
	t.Helper()
	a := attempt(t, "/bin/sh", "-c", script)
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
	return needSavingAs(t, gvisorAlone)
}

func needSavingAs(t *testing.T, way string) *native.Adapter {
	t.Helper()
	adapter := need(t, way)
	if s := adapter.Probe(t.Context()); !s.Saves {
		t.Skip(strings.Join(s.Notes, "; "))
	}
	return adapter
}

// alive reports whether an attempt runs still.
func alive(p lrm.Process) bool {
	for {
		select {
		case _, open := <-p.Events():
			if !open {
				return false
			}
		default:
			return true
		}
	}
}

// until waits for a condition while an attempt runs.
func until(t *testing.T, p lrm.Process, a lrm.Attempt, what string, holds func() bool) {
	t.Helper()
	lrmtest.Until(t, what, lrmtest.Patience, func() bool {
		if holds() {
			return true
		}
		if !alive(p) && !holds() {
			r, _ := p.Wait(t.Context())
			t.Fatalf("it ended before %s: %+v; %s", what, r.Exit, text(t, a.StderrPath()))
		}
		return false
	})
}

// gate opens a gate as soon as the program can see it, and waits for what the program prints then.
func gate(t *testing.T, p lrm.Process, a lrm.Attempt, name, printed string) {
	t.Helper()
	until(t, p, a, "printed "+printed, func() bool {
		_ = os.WriteFile(filepath.Join(a.WorkDir(), "tmp", name), nil, 0o600)
		return strings.Contains(text(t, a.StdoutPath()), printed)
	})
}

// openGate opens a gate that the program can see.
func openGate(t *testing.T, a lrm.Attempt, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.WorkDir(), "tmp", name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// saved waits for a new state of a running attempt and keeps a copy of it elsewhere.
func saved(t *testing.T, a lrm.Attempt, p lrm.Process) string {
	t.Helper()
	states := a.StateDir()
	before := states.Look()
	if err := states.Ask(true); err != nil {
		t.Fatal(err)
	}
	until(t, p, a, "a state", func() bool {
		if why := states.Problem(); why != "" {
			t.Fatalf("no state: %s", why)
		}
		return !lrm.SameState(before, states.Look())
	})
	if err := states.Ask(false); err != nil {
		t.Fatal(err)
	}
	return copied(t, states)
}

// copied is a copy of a state.
func copied(t *testing.T, states lrm.StateDir) string {
	t.Helper()
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

// text has what an attempt printed.
func text(t *testing.T, path string) string {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(all)
}

// stopped kills an attempt.
func stopped(t *testing.T, p lrm.Process) {
	t.Helper()
	if err := p.Stop("moved"); err != nil {
		t.Fatal(err)
	}
	lrmtest.Wait(t, p)
}

// ended wants an attempt to end well, and gives what its end says.
func ended(t *testing.T, p lrm.Process, a lrm.Attempt) string {
	t.Helper()
	r := lrmtest.Wait(t, p)
	if r.Exit.Cause != grid.CauseExited || r.Exit.Code != 0 {
		t.Fatalf("exit = %+v; %s", r.Exit, text(t, a.StderrPath()))
	}
	return r.Exit.Text
}

// untouched has what counts prints when nobody saves it.
func untouched() string {
	var out, file strings.Builder
	for i, sum := 1, 0; i <= 40; i++ {
		sum += i * i
		fmt.Fprintf(&out, "%d %d a line of the input\n", i, sum)
		fmt.Fprintln(&file, sum)
	}
	return out.String() + file.String()
}

// A command that knows nothing of states is killed three times, each time after it was saved, and
// goes on in another directory each time: it prints what an untouched run prints.
func TestACommandIsSavedWhole(t *testing.T) {
	t.Parallel()
	adapter := needSaving(t)
	state := ""
	for _, turn := range []int{10, 20, 30} {
		a := whole(t, state, counts)
		p := lrmtest.Start(t, adapter, a)
		if turn > 10 {
			gate(t, p, a, fmt.Sprint("gate", turn-10), fmt.Sprintf("\n%d ", turn))
		}
		state = saved(t, a, p)
		if why := a.StateDir().Problem(); why != "" {
			t.Errorf("turn %d: %s", turn, why)
		}
		stopped(t, p)
	}
	last := whole(t, state, counts)
	p := lrmtest.Start(t, adapter, last)
	gate(t, p, last, "gate30", "\n40 ")
	gate(t, p, last, "gate40", untouched())
	if note := ended(t, p, last); note != "" {
		t.Errorf("its end says %q", note)
	}
	if got, want := text(t, last.StdoutPath()), untouched(); got != want {
		t.Errorf("it printed %q, want %q", got, want)
	}
	if got := text(t, last.StderrPath()); got != "done\n" {
		t.Errorf("it said %q", got)
	}
}

// A command that holds a file open which it has removed cannot be saved: the reason is told, and
// the command goes on to its end.
func TestACommandThatCannotBeSavedGoesOn(t *testing.T) {
	t.Parallel()
	adapter := needSaving(t)
	a := whole(t, "", `exec 5>gone; rm gone; echo ready
while [ ! -e /tmp/go ]; do sleep 0.1; done; echo end`)
	p := lrmtest.Start(t, adapter, a)
	until(t, p, a, "ready", func() bool { return text(t, a.StdoutPath()) == "ready\n" })
	states := a.StateDir()
	for range 2 {
		if err := states.Ask(true); err != nil {
			t.Fatal(err)
		}
		until(t, p, a, "a reason", func() bool { return states.Problem() != "" })
		if why := states.Problem(); !strings.Contains(why, "has removed") || states.Look() != nil {
			t.Errorf("why = %q", why)
		}
		if err := states.Ask(false); err != nil {
			t.Fatal(err)
		}
	}
	gate(t, p, a, "go", "ready\nend\n")
	if note := ended(t, p, a); note != "" {
		t.Errorf("its end says %q", note)
	}
}

// A state that is not whole is not used, and the task begins anew: it is told why, and so is who
// reads of its end.
func TestABadStateBeginsAnew(t *testing.T) {
	t.Parallel()
	adapter := needSaving(t)
	bad := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(bad, []byte("this is no state of gVisor's"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := whole(t, bad, "echo anew")
	p := lrmtest.Start(t, adapter, a)
	note := ended(t, p, a)
	why := a.StateDir().Problem()
	if why != note || !strings.Contains(why, "was cut; the task began anew") ||
		text(t, a.StdoutPath()) != "anew\n" {
		t.Errorf("why = %q, its end says %q", why, note)
	}
}
