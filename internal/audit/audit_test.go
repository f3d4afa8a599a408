package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	jobA = grid.JobID("aaaaaaaaaaaaaaaa")
	jobB = grid.JobID("bbbbbbbbbbbbbbbb")
)

func taskOf(job grid.JobID, index uint32) grid.TaskID { return grid.TaskID{Job: job, Index: index} }

func attemptOf(index uint32, token grid.Token) grid.AttemptID {
	return grid.AttemptID{Task: taskOf(jobA, index), Token: token}
}

func span(from, to int) Span {
	return Span{From: time.Duration(from) * time.Second, To: time.Duration(to) * time.Second}
}

func held(count uint32) []Submission { return []Submission{{Job: jobA, Count: count, Held: true}} }

func ran(id grid.AttemptID, site string, spans ...Span) Run {
	return Run{Attempt: id, Site: site, Spans: spans}
}

func TestWhatIsLost(t *testing.T) {
	done := Task{ID: taskOf(jobA, 0), Phase: grid.PhaseDone}
	running := Task{ID: taskOf(jobA, 1), Phase: grid.PhaseRunning}
	tests := []struct {
		name    string
		records Records
		open    int
		lost    []grid.TaskID
	}{
		{"nothing was submitted", Records{}, 0, nil},
		{"under way", Records{Submissions: held(2), Tasks: []Task{done, running}}, 1, nil},
		{"never awarded", Records{Submissions: held(2)}, 2, nil},
		{
			"the submitter forgot a running task",
			Records{Submissions: []Submission{{Job: jobA, Count: 2}}, Tasks: []Task{done, running}},
			0,
			[]grid.TaskID{taskOf(jobA, 1)},
		},
		{
			"the submitter thinks that all have ended",
			Records{
				Submissions: []Submission{{Job: jobA, Count: 2, Held: true, Closed: true}}, Tasks: []Task{done},
			},
			0,
			[]grid.TaskID{taskOf(jobA, 1)},
		},
		{
			"forgotten after its end",
			Records{Submissions: []Submission{{Job: jobA, Count: 1}}, Tasks: []Task{done}},
			0,
			nil,
		},
		{
			"an end is not taken back",
			Records{
				Submissions: []Submission{{Job: jobA, Count: 1}},
				Tasks:       []Task{done, {ID: done.ID, Phase: grid.PhaseRunning}},
			},
			0,
			nil,
		},
		{
			"known from two places",
			Records{Submissions: []Submission{{Job: jobA, Count: 1}, {Job: jobA, Count: 1, Held: true}}},
			1,
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			report := Audit(tt.records)
			if diff := cmp.Diff(tt.lost, report.Lost); diff != "" || report.Total.Open != tt.open {
				t.Errorf("%d open, want %d; lost (-want +got):\n%s", report.Total.Open, tt.open, diff)
			}
			if report.Clean() != (len(tt.lost) == 0) || report.Total.Lost != len(tt.lost) {
				t.Errorf("clean = %t, %d lost, want %d", report.Clean(), report.Total.Lost, len(tt.lost))
			}
		})
	}
}

func TestWhatIsDoubled(t *testing.T) {
	first := Run{Attempt: attemptOf(0, 1), Site: "x", Spans: []Span{span(0, 10), span(20, 30)}}
	tests := []struct {
		name  string
		other Run
		want  time.Duration
	}{
		{"while it was frozen", ran(attemptOf(0, 2), "y", span(10, 20)), 0},
		{"after its end", ran(attemptOf(0, 2), "y", span(30, 40)), 0},
		{"before its end", ran(attemptOf(0, 2), "y", span(29, 40)), time.Second},
		{"for a moment", ran(attemptOf(0, 2), "y", Span{30*time.Second - 1, time.Hour}), 1},
		{
			"on both sides of the pause",
			ran(attemptOf(0, 2), "y", span(5, 25)),
			10 * time.Second,
		},
		{"on the same site", ran(attemptOf(0, 2), "x", span(5, 6)), time.Second},
		{"the same attempt elsewhere", ran(attemptOf(0, 1), "y", span(5, 6)), time.Second},
		{"the same attempt, written twice", ran(attemptOf(0, 1), "x", span(5, 6)), 0},
		{"another task", ran(attemptOf(1, 1), "y", span(5, 6)), 0},
		{"no time at all", ran(attemptOf(0, 2), "y", span(5, 5)), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			report := Audit(Records{Submissions: held(2), Runs: []Run{first, tt.other}})
			var got time.Duration
			for _, d := range report.Doubled {
				got += d.Overlap
			}
			if got != tt.want || report.Clean() != (tt.want == 0) ||
				report.Total.Doubled != len(report.Doubled) {
				t.Errorf("doubled = %+v, total %d, want %s", report.Doubled, report.Total.Doubled, tt.want)
			}
			strays := Audit(Records{Runs: []Run{first, tt.other}})
			if strays.Total.Doubled != report.Total.Doubled || strays.Strays == 0 {
				t.Errorf("without its submitter: %d doubled, want %d",
					strays.Total.Doubled, report.Total.Doubled)
			}
		})
	}
}

// The twin marks seconds.
func TestOverlapAgreesWithCounting(t *testing.T) {
	draw := func(t *rapid.T) []Span {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Span {
			from := rapid.IntRange(0, 30).Draw(t, "from")
			return span(from, from+rapid.IntRange(0, 6).Draw(t, "length"))
		}), 0, 6).Draw(t, "spans")
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		in := func(list []Span, second int) bool {
			return slices.ContainsFunc(list, func(s Span) bool {
				return s.From <= span(second, 0).From && span(second, 0).From < s.To
			})
		}
		var want time.Duration
		for second := range 40 {
			if in(a, second) && in(b, second) {
				want += time.Second
			}
		}
		if got := overlap(union(a, nil), union(b, nil)); got != want {
			t.Fatalf("overlap(%v, %v) = %s, want %s", a, b, got, want)
		}
	})
}

func TestTheReportReadsLikeThis(t *testing.T) {
	report := Audit(Records{
		Submissions: []Submission{{Job: jobB, Count: 1}, {Job: jobA, Count: 3, Held: true}},
		Tasks: []Task{
			{ID: taskOf(jobA, 0), Phase: grid.PhaseDone},
			{ID: taskOf(jobA, 1), Phase: grid.PhaseFailed},
			{ID: taskOf(jobA, 2), Phase: grid.PhaseDone},
		},
		Runs: []Run{
			{Attempt: attemptOf(0, 1), Site: "x", Spans: []Span{span(0, 10)}, Unended: true},
			ran(attemptOf(0, 2), "y", span(8, 20)),
		},
		Notes: []string{"z: unreadable"},
	})
	var text strings.Builder
	if err := report.Write(&text); err != nil {
		t.Fatal(err)
	}
	want := "" +
		`JOB               TASKS  DONE  FAILED  CANCELLED  REFUSED  OPEN  LOST  DOUBLED  ATTEMPTS  MOVED
aaaaaaaaaaaaaaaa  3      2     1       0          0        0     0     1        2         1
bbbbbbbbbbbbbbbb  1      0     0       0          0        0     1     0        0         0
total             4      2     1       0          0        0     1     1        2         1
lost: task bbbbbbbbbbbbbbbb.0 has not ended, and its submitter does not work on it
doubled: aaaaaaaaaaaaaaaa.0#1 on x and aaaaaaaaaaaaaaaa.0#2 on y ran together for 2s
1 tasks are done, but no site wrote down that it ran them
1 attempts have no written end
note: z: unreadable
1 lost, 1 doubled
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("report differs (-want +got):\n%s", diff)
	}
	if got, want := Audit(Records{}).Summary(), "0 lost, 0 doubled"; got != want {
		t.Errorf("summary = %q, want %q", got, want)
	}
}

func TestALongReportIsCut(t *testing.T) {
	report := Audit(Records{Submissions: []Submission{{Job: jobA, Count: 100}}})
	lines := report.details()
	if want := fmt.Sprintf("... and %d more tasks lost", 100-maxLines); lines[len(lines)-1] != want {
		t.Errorf("last line %q, want %q", lines[len(lines)-1], want)
	}
}
