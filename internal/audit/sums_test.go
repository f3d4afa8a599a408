package audit

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The total is the sum of all jobs in each number.
func TestTheTotalIsTheSumOfAll(t *testing.T) {
	var a, b, want JobReport
	for i := range reflect.TypeFor[JobReport]().NumField() {
		if reflect.ValueOf(a).Field(i).Kind() != reflect.Int {
			continue
		}
		reflect.ValueOf(&a).Elem().Field(i).SetInt(int64(i))
		reflect.ValueOf(&b).Elem().Field(i).SetInt(int64(100 * i))
		reflect.ValueOf(&want).Elem().Field(i).SetInt(int64(101 * i))
	}
	a.add(b)
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
}

// A task counts once, by its phase; one that has not ended is open while its submitter works
// on it.
func TestATaskCountsByItsPhase(t *testing.T) {
	for phase := grid.PhaseWaiting; phase <= grid.PhaseRefused; phase++ {
		for _, s := range []Submission{{Held: true}, {}, {Held: true, Closed: true}} {
			var j JobReport
			lost := j.count(phase, s)
			want := map[grid.Phase]int{
				grid.PhaseDone: j.Done, grid.PhaseFailed: j.Failed, grid.PhaseCancelled: j.Cancelled,
				grid.PhaseRefused: j.Refused,
			}
			counted, ended := want[phase]
			switch {
			case ended && (counted != 1 || lost):
				t.Errorf("%s: %+v, lost %t", phase, j, lost)
			case !ended && (s.Held && !s.Closed) != (j.Open == 1), !ended && lost != (j.Lost == 1),
				!ended && j.Open+j.Lost != 1:
				t.Errorf("%s of %+v: %+v, lost %t", phase, s, j, lost)
			}
			if j.Done+j.Failed+j.Cancelled+j.Refused+j.Open+j.Lost != 1 {
				t.Errorf("%s counts as %+v", phase, j)
			}
		}
	}
}

// Each list of what is wrong is cut at a length, and says what is behind it where it counts
// things that it alone names.
func TestEachListIsCut(t *testing.T) {
	report := func(n int) (r Report) {
		for i := range n {
			id := taskOf(jobA, uint32(i))
			r.Lost, r.Stuck, r.Missing = append(r.Lost, id), append(r.Stuck, id), append(r.Missing, id)
			r.Doubled = append(r.Doubled, Double{SiteA: "a"})
			r.Late = append(r.Late, Late{Task: id, Start: time.Second, End: 2 * time.Second})
		}
		return r
	}
	for _, n := range []int{maxLines, maxLines + 1, maxLines + 7} {
		lines := strings.Join(report(n).details(), "\n")
		for _, what := range []string{"lost: ", "doubled: ", "stuck: ", "missing: ", "late: "} {
			if got := strings.Count("\n"+lines, "\n"+what); got != maxLines {
				t.Errorf("%d of %q are written out of %d, want %d", got, what, n, maxLines)
			}
		}
		for _, more := range []string{"more tasks lost", "more pairs of attempts"} {
			want := fmt.Sprintf("... and %d %s", n-maxLines, more)
			if strings.Contains(lines, want) != (n > maxLines) {
				t.Errorf("of %d it does not say %q:\n%s", n, want, lines)
			}
		}
	}
	said := report(1)
	said.Late[0].Said = true
	if got := strings.Join(said.findings(), "\n"); !strings.Contains(
		got, "began 1s late and ended 2s late; its submitter says so") {
		t.Errorf("it says %q", got)
	}
	none := strings.Join(Report{}.details(), "\n")
	if none != "" || !(Report{}).Clean() {
		t.Errorf("nothing is wrong, and it says %q", none)
	}
}

// What is rare is in the summary where there is some, and each of it makes a report unclean
// but what is only stuck, which may be for lack of room.
func TestWhatTheSummaryNames(t *testing.T) {
	id := []grid.TaskID{taskOf(jobA, 0)}
	for _, c := range []struct {
		r     Report
		want  string
		clean bool
	}{
		{Report{}, "0 lost, 0 doubled", true},
		{Report{Lost: id, Total: JobReport{Lost: 1}}, "1 lost, 0 doubled", false},
		{
			Report{Doubled: []Double{{}, {}}, Total: JobReport{Doubled: 1}}, "0 lost, 1 doubled", false,
		},
		{Report{Stuck: id}, "1 stuck, 0 lost, 0 doubled", true},
		{Report{Missing: id}, "1 without a result, 0 lost, 0 doubled", false},
		{Report{Late: []Late{{}}}, "1 silently late, 0 lost, 0 doubled", false},
		{Report{Late: []Late{{Said: true}}}, "0 lost, 0 doubled", true},
	} {
		if got := c.r.Summary(); got != c.want || c.r.Clean() != c.clean {
			t.Errorf("%q, clean: %t, want %q, %t", got, c.r.Clean(), c.want, c.clean)
		}
	}
}

// The columns that are seldom wanted are there where one of them counts something.
func TestTheColumns(t *testing.T) {
	for _, c := range []struct {
		total JobReport
		wide  bool
	}{
		{JobReport{}, false},
		{JobReport{Lost: 1}, false},
		{JobReport{Stuck: 1}, true},
		{JobReport{Missing: 1}, true},
		{JobReport{Late: 1}, true},
	} {
		var out strings.Builder
		if err := (Report{Jobs: []JobReport{{Job: jobA}}, Total: c.total}).Write(&out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if strings.Contains(lines[0], "STUCK") != c.wide {
			t.Errorf("%+v: %q", c.total, lines[0])
		}
		for _, line := range lines[:3] {
			if len(strings.Fields(line)) != len(strings.Fields(lines[0])) {
				t.Errorf("%q has not a cell for each of %q", line, lines[0])
			}
		}
	}
}

// Each phase that there is can be read, and none beyond; the first end that is noted stays,
// with its results.
func TestPhasesThatAreRead(t *testing.T) {
	for phase := range grid.PhaseRefused + 2 {
		h := newHistory()
		err := h.note(taskRow(taskOf(jobA, 0), phase))
		known := phase >= grid.PhaseWaiting && phase <= grid.PhaseRefused
		if (err == nil) != known || known && h.tasks[taskOf(jobA, 0)].Phase != phase {
			t.Errorf("phase %d: %v, %+v", phase, err, h.tasks)
		}
	}
	h := newHistory()
	for _, phase := range []grid.Phase{grid.PhaseRunning, grid.PhaseFailed, grid.PhaseDone} {
		if err := h.note(taskRow(taskOf(jobA, 0), phase)); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.tasks[taskOf(jobA, 0)].Phase; got != grid.PhaseFailed {
		t.Errorf("the last word is %s", got)
	}
	for count, want := range map[uint32]bool{
		0: false, 1: true, grid.MaxTasks: true, grid.MaxTasks + 1: false,
	} {
		if err := newHistory().note(jobRow(jobA, count, 0)); (err == nil) != want {
			t.Errorf("a job of %d tasks: %v", count, err)
		}
	}
	for kind, want := range map[string]bool{
		"job/2": false, "task/2": false, "jobs": true, "other/1": true,
	} {
		if err := newHistory().note(step.NewFact(kind, "x", 1)); (err == nil) != want {
			t.Errorf("a fact of kind %s: %v", kind, err)
		}
	}
}

// All that is known of a job is one: the most of it, and the last that was seen.
func TestSubmissionsAreMerged(t *testing.T) {
	early, late := clock(1), clock(2)
	got := mergeSubmissions([]Submission{
		{Job: jobB, Count: 1},
		{Job: jobA, Count: 3, Seen: late},
		{Job: jobA, Count: 5, Held: true},
		{Job: jobA, Count: 2, Closed: true, Seen: early},
	})
	want := []Submission{
		{Job: jobA, Count: 5, Held: true, Closed: true, Seen: late}, {Job: jobB, Count: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Two records of one attempt on one site are one run: it began with the first and ended with
// the last of them, whichever was read first.
func TestRunsOfOneAttemptAreOne(t *testing.T) {
	first, second := ranFrom(1, 0, 10), ranFrom(1, 5, 7)
	first.Spans, second.Spans = []Span{span(0, 4)}, []Span{span(3, 9)}
	second.Unended = true
	for _, list := range [][]Run{{first, second}, {second, first}} {
		got := groupRuns(list)[taskOf(jobA, 0)]
		want := []Run{{
			Attempt: first.Attempt, Site: "x", Spans: []Span{span(0, 9)}, Began: clock(0), Ended: clock(10),
			Unended: true,
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A task is late that is later than clocks may differ, by all of it.
func TestHowLate(t *testing.T) {
	bound := clock(100)
	for by, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, lateAfter: 0, lateAfter + 1: lateAfter + 1, time.Hour: time.Hour,
	} {
		if got := beyond(bound.Add(by), bound); got != want {
			t.Errorf("%s behind counts as %s, want %s", by, got, want)
		}
	}
	if got := beyond(bound, time.Time{}); got != 0 {
		t.Errorf("without a bound it is %s late", got)
	}
	open := Submission{Job: jobA, Count: 1, Held: true, Submitted: clock(0)}
	for _, c := range []struct {
		seen float64
		want bool
	}{{stuckAfter.Seconds(), false}, {stuckAfter.Seconds() + .001, true}} {
		open.Seen = clock(c.seen)
		if got := isStuck(open, Task{}, nil); got != c.want {
			t.Errorf("seen after %v s: stuck is %t", c.seen, got)
		}
	}
	open.Held = false
	if isStuck(open, Task{}, nil) {
		t.Error("stuck though its submitter does not hold it")
	}
}
