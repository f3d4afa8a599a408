package wasm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	yieldsModule = "testdata/yields/yields.wasm"
	plainModule  = "testdata/yields/plain.wasm"
)

// yieldsJob is the runner's order for a program that yields, which goes on from a state unless that
// is nil.
func yieldsJob(t testing.TB, module string, state []byte, args ...string) job {
	t.Helper()
	path, err := filepath.Abs(module)
	if err != nil {
		t.Fatal(err)
	}
	return stepsJob(t, path, state, args...)
}

// yielding prepares a program in this process, which is interrupted at each nth yield; 0: never.
func yielding(t testing.TB, work job, nth int) (y *yielder, stdout *bytes.Buffer) {
	t.Helper()
	s, stdout, _ := prepared(t, work)
	if !s.program.plan.isYielding() {
		t.Fatal("it does not yield")
	}
	y = newYielder(s.guest, s.program)
	s.guest.yielder = y
	yields := 0
	y.wanted = func() bool {
		yields++
		return nth > 0 && yields%nth == 0
	}
	ctx := experimental.WithMemoryAllocator(t.Context(), s.guest.memory)
	if end := y.begin(ctx); end != nil {
		t.Fatalf("it ends before it begins: %+v", end)
	}
	return y, stdout
}

// untouched gives the text of a program that is never interrupted.
func untouched(t testing.TB, args ...string) string {
	t.Helper()
	y, stdout := yielding(t, yieldsJob(t, yieldsModule, nil, args...), 0)
	if end := y.once(t.Context()); end == nil || end.Cause != grid.CauseExited || end.Code != 0 {
		t.Fatalf("it ends so: %+v", end)
	}
	return stdout.String()
}

// A program that is interrupted in its frames, and goes on in another instance each time, prints
// what one prints that nothing happened to.
func TestAProgramThatYieldsGoesOn(t *testing.T) {
	t.Parallel()
	want, state, moved := untouched(t), []byte(nil), 0
	if len(strings.TrimSpace(want)) == 0 {
		t.Fatal("it prints nothing")
	}
	for {
		y, stdout := yielding(t, yieldsJob(t, yieldsModule, state), 3001)
		end := y.once(t.Context())
		if end != nil {
			if stdout.String() != want {
				t.Errorf("it printed %q, want %q", stdout, want)
			}
			break
		}
		state = y.saved(t)
		moved++
	}
	if moved != 6 { // of 20,000 yields each 3,001st
		t.Errorf("it moved %d times", moved)
	}
}

// One that goes on in the same instance after its state was saved prints the same.
func TestAProgramThatYieldsIsNotDisturbed(t *testing.T) {
	t.Parallel()
	want := untouched(t)
	y, stdout := yielding(t, yieldsJob(t, yieldsModule, nil), 7)
	for end := y.once(t.Context()); end == nil; end = y.once(t.Context()) {
		if y.steps%1000 == 0 {
			y.saved(t)
		}
	}
	if stdout.String() != want {
		t.Errorf("it printed %q, want %q", stdout, want)
	}
}

// Runners that are killed, each after it has saved a state when it was asked, come to the same end.
func TestAKilledProgramThatYieldsGoesOn(t *testing.T) {
	t.Parallel()
	const long = "long"
	want, state := untouched(t, long), []byte(nil)
	for range moves {
		work := yieldsJob(t, yieldsModule, state, long)
		c := startChild(t, work, os.Args[0], ArgRun)
		state = savedBy(t, work)
		c.kill()
	}
	c := startChild(t, yieldsJob(t, yieldsModule, state, long), os.Args[0], ArgRun)
	if report := c.wait(t); report.Cause != grid.CauseExited || report.Code != 0 {
		t.Fatalf("the last attempt ended so: %+v: %s", report, c.stderr.String())
	}
	if c.stdout.String() != want {
		t.Errorf("it printed %q, want %q", c.stdout.String(), want)
	}
}

// Yielding does nothing in a program that asyncify has not prepared, and where nothing is saved.
func TestYieldingAlone(t *testing.T) {
	t.Parallel()
	want := untouched(t)
	for name, module := range map[string]string{"plain": plainModule, "unsaved": yieldsModule} {
		work := yieldsJob(t, module, nil)
		work.Saves = name == "plain"
		c := startChild(t, work, os.Args[0], ArgRun)
		if report := c.wait(t); report.Cause != grid.CauseExited || c.stdout.String() != want {
			t.Errorf("%s: %+v, printed %q, want %q", name, report, c.stdout.String(), want)
		}
	}
}

// Where there is no memory for its frames it runs to its end, and the site reads why nothing is
// saved. What is laid out and cannot be used lets it begin anew.
func TestAProgramThatYieldsAndCannotBeSaved(t *testing.T) {
	t.Parallel()
	want := untouched(t)
	work := yieldsJob(t, yieldsModule, nil)
	work.MemoryBytes = 8 * pageBytes
	y, stdout := yielding(t, work, 1)
	if !strings.Contains(y.problem, "no memory left for its frames") {
		t.Errorf("its problem is %q", y.problem)
	}
	if end := y.once(t.Context()); end == nil || stdout.String() != want {
		t.Errorf("%+v, printed %q, want %q", end, stdout, want)
	}
	work = yieldsJob(t, yieldsModule, []byte("no state"))
	y, stdout = yielding(t, work, 0)
	if y.inMemory || y.once(t.Context()) == nil || stdout.String() != want {
		t.Errorf("printed %q, want %q", stdout, want)
	}
	if why := y.states.Problem(); !strings.Contains(why, "begins anew") {
		t.Errorf("the site reads %q", why)
	}
}
