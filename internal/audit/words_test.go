package audit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Two things that are wrong do not make up for each other.
func TestNothingMakesUpForAFault(t *testing.T) {
	id := []grid.TaskID{taskOf(jobA, 0)}
	faults := []func(*Report){
		func(r *Report) { r.Lost = id }, func(r *Report) { r.Doubled = []Double{{}} },
		func(r *Report) { r.Missing = id }, func(r *Report) { r.Late = []Late{{}} },
	}
	for i, one := range faults {
		for _, other := range faults[:i] {
			var r Report
			one(&r)
			other(&r)
			if r.Clean() {
				t.Errorf("clean: %s", r.Summary())
			}
		}
	}
}

// The first begin and the last end of all runs count, in whatever order they are known.
func TestTheFirstBeginCounts(t *testing.T) {
	s := Submission{Window: grid.Window{At: clock(100), Deadline: clock(120)}}
	done := Task{Phase: grid.PhaseDone}
	early, late := ranFrom(1, 100, 110), ranFrom(2, 115, 130)
	for _, runs := range [][]Run{{early, late}, {late, early}} {
		got, is := lateness(s, done, runs)
		if !is || got.Start != 0 || got.End != 10*time.Second {
			t.Errorf("late: %+v, %t, want the end alone", got, is)
		}
	}
	for name, c := range map[string]struct {
		s    Submission
		t    Task
		runs []Run
	}{
		"a reservation": {Submission{Window: s.Window, Passive: true}, done, []Run{late}},
		"not done":      {s, Task{Phase: grid.PhaseFailed}, []Run{late}},
		"not promised":  {Submission{}, done, []Run{late}},
		"no run":        {s, done, nil},
	} {
		if got, is := lateness(c.s, c.t, c.runs); is {
			t.Errorf("%s is late: %+v", name, got)
		}
	}
}

// Each count that is not 0 has its line, and who keeps silent is told from who does not.
func TestEachCountHasItsLine(t *testing.T) {
	for _, c := range []struct {
		r    Report
		want string
	}{
		{Report{Unseen: 1}, "1 tasks are done, but no site wrote down that it ran them"},
		{Report{Unended: 1}, "1 attempts have no written end"},
		{Report{Strays: 1}, "1 attempts belong to jobs of submitters"},
		{Report{Notes: []string{"n"}}, "note: n"},
		{Report{Late: []Late{{Start: time.Second}}}, "its submitter says nothing of it"},
		{Report{Late: []Late{{End: time.Second, Said: true}}}, "ended 1s late; its submitter says so"},
	} {
		lines := c.r.details()
		if len(lines) != 1 || !strings.Contains(lines[0], c.want) {
			t.Errorf("%q, want %q", lines, c.want)
		}
	}
}

// full takes so many bytes.
type full struct{ left int }

var errFull = errors.New("full")

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// A report that cannot be written whole is an error.
func TestAReportThatIsCutOff(t *testing.T) {
	var whole strings.Builder
	r := Report{Lost: []grid.TaskID{taskOf(jobA, 0)}}
	if err := r.Write(&whole); err != nil {
		t.Fatal(err)
	}
	for left := range whole.Len() {
		if err := r.Write(&full{left}); !errors.Is(err, errFull) {
			t.Fatalf("with %d of %d bytes: %v", left, whole.Len(), err)
		}
	}
}

// All starts name one boot, or the clocks cannot be compared; other lines name none.
func TestOneBootOfAllStarts(t *testing.T) {
	start := func(boot string) runRecord {
		r := runRecord{Event: eventStarted}
		r.Supervisor.Boot = boot
		return r
	}
	other := runRecord{Event: eventEnded}
	for name, c := range map[string]struct {
		files [][]runRecord
		want  bool
	}{
		"one":          {[][]runRecord{{start("a"), other}, {other, start("a")}}, true},
		"two":          {[][]runRecord{{start("a")}, {start("b")}}, false},
		"unknown":      {[][]runRecord{{start("a"), start("")}}, false},
		"none started": {[][]runRecord{{other}}, false},
		"nothing":      {nil, false},
	} {
		if got := oneBoot(c.files); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
