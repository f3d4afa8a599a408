package agent

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// TestPromisesAreCounted wants what became of promises to be counted, and how late they were.
func TestPromisesAreCounted(t *testing.T) {
	t.Parallel()
	metrics := obs.NewRegistry()
	r := newReporter(metrics, slog.New(slog.DiscardHandler), view.NewEventLog(8, 1))
	for _, e := range []step.Report{
		{Event: "task_kept"},
		{Event: "task_late", Value: 26},
		{Event: "task_kept"},
		{Event: "task_broken"},
		{Event: "task_late", Value: 9},
	} {
		r.report(e)
	}
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for _, want := range []string{
		"mrs_promises_kept_total 2", "mrs_promises_late_total 2", "mrs_promises_broken_total 1",
		`mrs_promises_late_seconds_bucket{le="10"} 1`, "mrs_promises_late_seconds_sum 35",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// TestEndsAreCounted wants how attempts end to be counted by cause.
func TestEndsAreCounted(t *testing.T) {
	t.Parallel()
	metrics := obs.NewRegistry()
	r := newReporter(metrics, slog.New(slog.DiscardHandler), view.NewEventLog(8, 1))
	for _, cause := range []grid.ExitCause{grid.CauseMemory, grid.CauseDisk, grid.CauseMemory} {
		r.report(step.Report{Event: eventEnded, Text: cause.String()})
	}
	r.report(step.Report{Event: "other", Text: "out of memory"})
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for _, want := range []string{
		`mrs_attempts_ended_total{cause="out of memory"} 2`,
		`mrs_attempts_ended_total{cause="out of disk"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}
