package wasm

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A job moves so often in these tests, after at least so many steps each time.
const (
	moves        = 3
	stepsBetween = 20
	// manySteps take longer than that on any machine: an attempt looks for a wish every 100 ms
	manySteps = 1500
)

// stepsArgs says how many steps there are, and how long each takes in turns of a loop.
func stepsArgs(steps, turns int) []string {
	return []string{strconv.Itoa(steps), strconv.Itoa(turns)}
}

// A job of steps that moves three times, each time to a new process after the one before was
// killed, has the result, the printed text and, at the same steps, the states of one that nothing
// happened to.
func TestAMovedJobIsTheSame(t *testing.T) {
	t.Parallel()
	moveAround(t, manySteps, 300_000, func(int) (string, []string) {
		return "child", []string{os.Args[0], ArgRun}
	}, nil)
}

// moveAround moves a job: which command runs each attempt is given by where.
func moveAround(
	t *testing.T, steps, turns int, where func(attempt int) (string, []string),
	change func(int, *job),
) {
	t.Helper()
	module, args := stepsModule(t), stepsArgs(steps, turns)
	var state []byte
	var states [][]byte
	var last *child
	for attempt := range moves + 1 {
		work := stepsJob(t, module, state, args...)
		if change != nil {
			change(attempt, &work)
		}
		name, command := where(attempt)
		last = startChild(t, work, command...)
		if attempt == moves {
			break
		}
		for least := doneIn(t, state) + stepsBetween; doneIn(t, state) < least; {
			state = savedBy(t, work)
		}
		last.kill()
		states = append(states, state)
		t.Logf("attempt %d on %s was killed after step %d", attempt, name, doneIn(t, state))
	}
	if report := last.wait(t); report.Cause != grid.CauseExited || report.Code != 0 {
		t.Fatalf("the last attempt ended so: %+v: %s", report, last.stderr.String())
	}
	still, stdout, stderr := inProcess(t, stepsJob(t, module, nil, args...))
	for i, state := range states {
		at := describeState(t, state).Steps
		if end := still.goOn(t, at); end != nil {
			t.Fatalf("it ends before step %d: %+v", at, end)
		}
		if got := still.saved(t); !bytes.Equal(got, state) {
			t.Errorf("state %d, at step %d, differs from that of a job that was not moved%s", i, at,
				firstDifference(got, state))
		}
	}
	still.goOn(t, 1<<30)
	if got, want := last.stdout.String(), stdout.String(); got != want ||
		!strings.Contains(want, "result ") {
		t.Errorf("moved, it has printed\n%s\nnot moved\n%s", got, want)
	}
	if got, want := last.stderr.String(), stderr.String(); got != want {
		t.Errorf("moved, it has printed to stderr\n%s\nnot moved\n%s", got, want)
	}
}

// doneIn counts the steps that are done in a state.
func doneIn(t *testing.T, state []byte) uint64 {
	t.Helper()
	if state == nil {
		return 0
	}
	return describeState(t, state).Steps
}

func firstDifference(a, b []byte) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return ", first in byte " + strconv.Itoa(i) + " of " + strconv.Itoa(len(a))
		}
	}
	return ": " + strconv.Itoa(len(a)) + " and " + strconv.Itoa(len(b)) + " bytes"
}

// It is the same with the interpreter for every second attempt, as between machines with other
// compilers.
func TestAJobMovesBetweenEngines(t *testing.T) {
	t.Parallel()
	moveAround(t, manySteps, 100_000, func(attempt int) (string, []string) {
		return [2]string{"the interpreter", "the compiler"}[attempt%2], []string{os.Args[0], ArgRun}
	}, func(attempt int, work *job) { work.Interpret = attempt%2 == 0 })
}

// And between amd64 and arm64, where an emulator of that is installed.
func TestAJobMovesBetweenArchitectures(t *testing.T) {
	arm := emulated(t)
	moveAround(t, manySteps, 300_000, func(attempt int) (string, []string) {
		if attempt%2 == 0 {
			return "emulated arm64", arm
		}
		return "this machine", []string{os.Args[0], ArgRun}
	}, nil)
}

// emulated is the command of a runner on the other architecture.
func emulated(t *testing.T) []string {
	t.Helper()
	emulator, err := exec.LookPath("qemu-aarch64-static")
	switch {
	case err != nil:
		t.Skip("no arm64 here: install qemu-user-static to emulate one")
	case testing.Short():
		t.Skip("building and emulating takes a minute")
	case runtime.GOOS != "linux" || runtime.GOARCH == "arm64":
		t.Skip("this is no other architecture")
	}
	runner, err := armRunner()
	if err != nil {
		t.Fatal(err)
	}
	return []string{emulator, runner}
}

// armRunner is a runner for arm64, built once.
var armRunner = sync.OnceValues(func() (string, error) {
	return buildGo("runner-arm64", "./testdata/runner", "-buildmode=exe", "linux", "arm64")
})

// A result that is no number has a sign and a payload that WebAssembly leaves to the machine, and
// so does wazero. What prints it says NaN; what looks at its bits sees the machine. docs/submit.md
// says so: this test finds the day on which it may be left out.
func TestResultsThatAreNoNumbers(t *testing.T) {
	bits := func(change func(*job), command ...string) string {
		work := stepsJob(t, stepsModule(t), nil, "1", "1", "nan")
		change(&work)
		c := startChild(t, work, command...)
		if report := c.wait(t); report.Cause != grid.CauseExited || report.Code != 0 {
			t.Fatalf("%+v: %s", report, c.stderr.String())
		}
		return c.stdout.String()
	}
	here := bits(func(*job) {}, os.Args[0], ArgRun)
	interpreted := bits(func(work *job) { work.Interpret = true }, os.Args[0], ArgRun)
	if strings.Count(here, " NaN\n") != 6 {
		t.Errorf("they are not all NaN:\n%s", here)
	}
	if here != interpreted {
		t.Errorf("compiled\n%s\ninterpreted\n%s", here, interpreted)
	}
	arm := bits(func(*job) {}, emulated(t)...)
	if t.Logf("amd64\n%s\narm64\n%s", here, arm); here == arm {
		t.Error("they have become the same: docs/submit.md need not warn of them any more")
	}
}
