package wasm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// looks lets a keeper look until it has done what is wanted, however long it pauses.
func (k *keeper) looks() {
	k.next, k.again = time.Time{}, time.Time{}
	k.look()
}

// How a module of steps ends is the program's own, or is said to be its mistake.
func TestEndsOfSteps(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		cause grid.ExitCause
		code  int
		text  string
	}{
		"exit":  {grid.CauseExited, 7, ""},
		"panic": {grid.CauseSignal, 6, "trap"},
		"odd":   {grid.CauseBadWork, 0, "step returned -5: want 0 (done)"},
		"none":  {grid.CauseExited, 0, ""},
	} {
		s, _, stderr := inProcess(t, stepsJob(t, stepsModule(t), nil, "3", "1", what))
		end := s.goOn(t, 1<<20)
		if end == nil || end.Cause != c.cause || end.Code != c.code ||
			!strings.Contains(end.Text, c.text) {
			t.Errorf("%s: %+v, want %+v: %s", what, end, c, stderr)
		}
	}
	s, _, _ := prepared(t, stepsJob(t, stepsModule(t), nil, "no number", "1"))
	if end := s.run(t.Context()); end.Cause != grid.CauseExited || end.Code != 1 {
		t.Errorf("one that fails in its only step: %+v", end)
	}
}

// One state is saved for each wish, with how much is done, and none without.
func TestAStateForEachWish(t *testing.T) {
	t.Parallel()
	work := stepsJob(t, stepsModule(t), nil, "50", "1")
	s, _, _ := inProcess(t, work)
	k := newKeeper(s)
	var last os.FileInfo
	for i := range 3 {
		k.looks()
		if !lrm.SameState(s.states.Look(), last) {
			t.Fatal("a state that was not wanted")
		}
		if err := s.states.Ask(true); err != nil {
			t.Fatal(err)
		}
		s.goOn(t, uint64(10*i+4))
		k.look() // too early after the last look
		if k.looks(); lrm.SameState(s.states.Look(), last) {
			t.Fatalf("no state for wish %d: %s", i, s.states.Problem())
		}
		last = s.states.Look()
		if k.looks(); !lrm.SameState(s.states.Look(), last) {
			t.Error("two states for one wish")
		}
		if got, want := s.states.Percent(), uint8(2*(10*i+4)); got != want {
			t.Errorf("%d %% are done, want %d", got, want)
		}
		if d := describeState(t, stateOf(t, work)); d.Steps != s.steps {
			t.Errorf("a state of step %d at %d", d.Steps, s.steps)
		}
		if err := s.states.Ask(false); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(work.WorkDir, "ckpt")); err != nil || len(left) != 2 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// A program that has a file open is saved when it has closed it; until then it is said why not.
func TestOpenFilesAreWaitedFor(t *testing.T) {
	t.Parallel()
	s, _, _ := inProcess(t, stepsJob(t, stepsModule(t), nil, "9", "1", "hold"))
	k := newKeeper(s)
	for n := uint64(1); n <= 5; n++ {
		s.goOn(t, n)
		if err := s.states.Ask(true); err != nil {
			t.Fatal(err)
		}
		k.looks()
		open := n == 2 || n == 3
		if got := s.states.Problem(); strings.Contains(got, "open between two steps") != open {
			t.Errorf("after step %d: %q", n, got)
		}
		if saved := s.states.Look() != nil; saved == open {
			t.Errorf("after step %d a state is there: %v", n, saved)
		}
		if err := s.states.Drop(); err != nil {
			t.Fatal(err)
		}
		if err := s.states.Ask(false); err != nil {
			t.Fatal(err)
		}
	}
}

// The guest sees nothing of its states: no directory, no variable.
func TestStatesAreHiddenFromTheGuest(t *testing.T) {
	t.Parallel()
	work := stepsJob(t, stepsModule(t), nil, "2", "1", "look")
	if len(work.Variables) == 0 {
		t.Fatal("a job of which nothing is saved")
	}
	s, stdout, _ := inProcess(t, work)
	if end := s.goOn(t, 1); end != nil {
		t.Fatalf("%+v", end)
	}
	s.saved(t)
	s.goOn(t, 2)
	const look = "[d made/ d out/] <nil> stat /ckpt/wanted: Operation not permitted " +
		"mkdir /ckpt: Operation not permitted open /ckpt/state: Operation not permitted\n"
	if want := "begins with [2 1 look] 0 variables\n" + look + look; stdout.String() != want {
		t.Errorf("it sees %q, want %q", stdout, want)
	}
}

// A state takes what the guest leaves of the disk, and yields when the guest needs that, so that
// what it can write does not depend on when it was saved.
func TestStatesYieldToFiles(t *testing.T) {
	t.Parallel()
	work := stepsJob(t, stepsModule(t), nil, "40", "1", "fill")
	work.DiskBytes = 20 << 20
	s, _, _ := inProcess(t, work)
	s.goOn(t, 2)
	k, q := newKeeper(s), s.guest.jail.quota
	if err := s.states.Ask(true); err != nil {
		t.Fatal(err)
	}
	k.looks()
	if s.states.Look() == nil || q.saved < 2<<20 || q.used != 2<<20 {
		t.Fatalf("%d bytes are saved, %d used: %s", q.saved, q.used, s.states.Problem())
	}
	size := q.saved
	for s.states.Look() != nil && s.steps < 20 {
		s.goOn(t, s.steps+1)
	}
	if want := (work.DiskBytes-size)>>20 + 1; q.saved != 0 || s.steps != uint64(want) {
		t.Errorf("the state was removed in step %d, want %d", s.steps, want)
	}
	k.looks() // the wish is still there
	if got := s.states.Problem(); s.states.Look() != nil ||
		!strings.Contains(got, "no space for its state") {
		t.Errorf("saved nevertheless: %q", got)
	}
	end := s.goOn(t, 1<<20)
	if got := s.guest.blame(*end); got.Cause != grid.CauseDisk || s.steps != 20 {
		t.Errorf("after %d steps: %+v", s.steps, got)
	}
}

// A state replaces the one before where both would not fit.
func TestAStateTakesThePlaceOfTheOneBefore(t *testing.T) {
	t.Parallel()
	work := stepsJob(t, stepsModule(t), nil, "40", "1")
	s, _, _ := inProcess(t, work)
	s.saved(t)
	q := s.guest.jail.quota
	q.limit = q.used + q.saved + q.saved/2
	s.goOn(t, 3)
	if d := describeState(t, s.saved(t)); d.Steps != 3 {
		t.Errorf("the state of step %d", d.Steps)
	}
	if q.saved > q.limit-q.used {
		t.Errorf("%d bytes are saved, %d used, of %d", q.saved, q.used, q.limit)
	}
}

// With a state that is not its own a task begins anew, and it is said why.
func TestAStateOfAnotherTaskIsLeft(t *testing.T) {
	t.Parallel()
	module := stepsModule(t)
	s, _, _ := inProcess(t, stepsJob(t, module, nil, "20", "1"))
	s.goOn(t, 5)
	good := s.saved(t)
	foreign := bytes.Replace(good, []byte(`"Module":"`), []byte(`"Module":"f`), 1)
	large := describeState(t, good)
	large.Pages += 100
	less := stepsJob(t, module, stateOfParts(large, large.size()), "20", "1")
	less.MemoryBytes = int64(large.Pages-1) * pageBytes
	for name, c := range map[string]struct {
		work job
		want string
	}{
		"another program's": {stepsJob(t, module, []byte("step 5"), "20", "1"), "too short"},
		"damaged":           {stepsJob(t, module, good[pageBytes:], "20", "1"), "has not the size"},
		"a longer module":   {stepsJob(t, module, foreign, "20", "1"), "description"},
		"with less memory":  {less, "more than the task may have"},
	} {
		other, stdout, _ := inProcess(t, c.work)
		if got := other.states.Problem(); other.steps != 0 || !strings.Contains(got, c.want) ||
			!strings.HasSuffix(got, "begins anew") {
			t.Errorf("%s: at step %d: %q, want %q", name, other.steps, got, c.want)
		}
		if other.goOn(t, 3); stdout.String() != "begins with [20 1] 0 variables\n" {
			t.Errorf("%s: it has printed %q", name, stdout)
		}
	}
	s, _, _ = inProcess(t, stepsJob(t, module, good, "20", "1"))
	if s.steps != 5 || s.states.Problem() != "" {
		t.Errorf("the good one: step %d, %q", s.steps, s.states.Problem())
	}
}

// A module whose states cannot be saved runs, and it is said why.
func TestAModuleThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(path, withAll("\x00\x26\x00").bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	work := stepsJob(t, path, nil)
	s, _, _ := prepared(t, work)
	if err := s.states.Ask(true); err != nil {
		t.Fatal(err)
	}
	// Its step traps: by then it was asked for its state.
	if end := s.run(t.Context()); end.Cause != grid.CauseSignal {
		t.Errorf("it ends so: %+v", end)
	}
	if got := s.states.Problem(); s.states.Look() != nil ||
		!strings.Contains(got, "changes a table") {
		t.Errorf("it says %q", got)
	}
}
