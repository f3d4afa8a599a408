package agent

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// logged is a log without times, of a level.
func logged(to *sentence, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// A report is logged at its level with all that it says, and nothing that it does not say.
func TestReportsAreLogged(t *testing.T) {
	t.Parallel()
	attempt := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: 4}, Token: 2}
	for _, c := range []struct {
		report step.Report
		want   string
	}{
		{step.Report{Event: "e"}, "level=DEBUG msg=report event=e\n"},
		{step.Report{Event: "e", Level: step.LevelInfo}, "level=INFO msg=report event=e\n"},
		{step.Report{Event: "e", Level: step.LevelWarn}, "level=WARN msg=report event=e\n"},
		{step.Report{Event: "e", Level: step.LevelWarn + 1}, "level=WARN msg=report event=e\n"},
		{
			step.Report{
				Event: "e", Level: step.LevelWarn, Attempt: attempt, Site: "b", Reason: grid.ReasonPaused,
				Text: "words", Value: .5,
			},
			"level=WARN msg=report event=e attempt=" + attempt.String() + " site=b reason=" +
				`"` + grid.ReasonPaused.String() + `"` + " text=words value=0.5\n",
		},
	} {
		var said sentence
		newReporter(nil, logged(&said, slog.LevelDebug), view.NewEventLog(8, 1)).report(c.report)
		if got := strings.ReplaceAll(said.String(), `"`, ""); got != strings.ReplaceAll(c.want, `"`, "") {
			t.Errorf("it says %q, want %q", got, c.want)
		}
	}
	var said sentence
	r := newReporter(nil, logged(&said, slog.LevelWarn), view.NewEventLog(8, 1))
	for _, level := range []step.Level{step.LevelDebug, step.LevelInfo, step.LevelWarn} {
		r.report(step.Report{Event: "e", Level: level})
	}
	if got, want := said.String(), "level=WARN msg=report event=e\n"; got != want {
		t.Errorf("a log of warnings says %q, want %q", got, want)
	}
}

// Users see what concerns a job's or the site's life, also where the log takes only warnings,
// and are spared the tracing, also where the log takes that.
func TestReportsThatUsersSee(t *testing.T) {
	t.Parallel()
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelError} {
		var said sentence
		events := view.NewEventLog(8, 1)
		r := newReporter(nil, logged(&said, level), events)
		for _, l := range []step.Level{step.LevelDebug, step.LevelInfo, step.LevelWarn} {
			r.report(step.Report{Event: "e", Level: l})
		}
		if got := events.Last(); got != 2 {
			t.Errorf("with a log of %s users see %d events, want 2", level, got)
		}
		if diff := cmp.Diff(map[string]int64{"e": 3}, r.counters()); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}
}

// What users see of a report: the job and, where it is about an attempt, the task; the reason
// where no text says more; the distance of an award, also if it is 0, and of nothing else.
func TestEventsOfReports(t *testing.T) {
	t.Parallel()
	task := grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: 4}
	none, some := 0.0, 0.25
	for _, c := range []struct {
		report step.Report
		want   view.Event
	}{
		{step.Report{Event: "e", Site: "b", Text: "x"}, view.Event{Kind: "e", Site: "b", Text: "x"}},
		{
			step.Report{Event: "e", Attempt: grid.AttemptID{Task: task}, Value: 3},
			view.Event{Kind: "e", Job: task.Job},
		},
		{
			step.Report{Event: "e", Attempt: grid.AttemptID{Task: task, Token: 1}},
			view.Event{Kind: "e", Job: task.Job, Task: task.String(), Token: 1},
		},
		{
			step.Report{Event: "e", Reason: grid.ReasonPaused},
			view.Event{Kind: "e", Text: grid.ReasonPaused.String()},
		},
		{
			step.Report{Event: "e", Reason: grid.ReasonPaused, Text: "more"},
			view.Event{Kind: "e", Text: "more"},
		},
		{step.Report{Event: "awarded", Value: .25}, view.Event{Kind: "awarded", Distance: &some}},
		{step.Report{Event: "awarded"}, view.Event{Kind: "awarded", Distance: &none}},
	} {
		got := eventOf(c.report)
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(view.Event{}, "Time")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.report, diff)
		}
		if got.Time.IsZero() {
			t.Errorf("%+v: the event has no time", c.report)
		}
	}
}

// Each event is counted, for metrics as well; a promise that was not late has no lateness, and
// without metrics nothing breaks.
func TestReportsAreCounted(t *testing.T) {
	t.Parallel()
	metrics := obs.NewRegistry()
	with := newReporter(metrics, obs.Or(nil), view.NewEventLog(8, 1))
	without := newReporter(nil, obs.Or(nil), view.NewEventLog(8, 1))
	for _, r := range []*reporter{with, without} {
		r.report(step.Report{Event: "task_kept"})
		r.report(step.Report{Event: "task_late", Value: .5})
		r.report(step.Report{Event: "other", Value: 7})
		r.report(step.Report{Event: eventEnded, Text: "exited"})
		r.count("other")
		want := map[string]int64{"task_kept": 1, "task_late": 1, "other": 2, eventEnded: 1}
		if diff := cmp.Diff(want, r.counters()); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		r.counters()["other"] = 9
		if got := r.counters()["other"]; got != 2 {
			t.Errorf("a reader changed a count to %d", got)
		}
	}
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for _, want := range []string{
		`mrs_reports_total{event="other"} 2`, `mrs_reports_total{event="task_kept"} 1`,
		"mrs_promises_late_seconds_count 1", "mrs_promises_late_seconds_sum 0.5",
		`mrs_promises_late_seconds_bucket{le="1"} 1`, "mrs_promises_kept_total 1",
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, bound := range []string{"1", "2", "5", "10", "30", "60", "300", "1800", "7200"} {
		if !strings.Contains(w.Body.String(), `mrs_promises_late_seconds_bucket{le="`+bound+`"}`) {
			t.Errorf("lateness has no bound at %s s", bound)
		}
	}
}
