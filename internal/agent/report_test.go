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
