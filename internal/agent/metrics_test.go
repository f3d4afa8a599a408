package agent_test

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// scraped is the text that a scrape of metrics gets.
func scraped(t *testing.T, metrics *obs.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
	metrics.Handler().ServeHTTP(w, request)
	return w.Body.String()
}

// lacks lists the lines that a scrape does not have.
func lacks(text string, lines ...string) (missing []string) {
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			missing = append(missing, line)
		}
	}
	return missing
}

// A site's metrics follow its attempts and its owner, tell how long its own jobs took, and have the
// names that Prometheus wants.
func TestMetricsOfASite(t *testing.T) {
	t.Parallel()
	c := agent.Plans(t, 2)[1]
	metrics := obs.NewRegistry()
	c.Metrics, c.P2P.Registry, c.Data.Metrics = metrics, metrics, metrics
	a := start(t, c)
	a.Observe(metrics)
	offered := strconv.FormatInt(c.Capability.Total.MilliCPUs/1000, 10)
	idle := []string{
		`mrs_attempts{phase="running"} 0`, `mrs_cores{of="used"} 0`,
		`mrs_cores{of="offered"} ` + offered, "mrs_paused 0", "mrs_owner_busy 0",
		"mrs_job_placing_seconds_count 0",
	}
	if missing := lacks(scraped(t, metrics), idle...); len(missing) > 0 {
		t.Errorf("idle: %q are missing of\n%s", missing, scraped(t, metrics))
	}
	id := a.submit(t, a.job(t, "run=1s"))
	a.await(t, id, view.PhaseRunning)
	busy := []string{
		`mrs_attempts{phase="running"} 1`, `mrs_cores{of="used"} 1`,
		"mrs_job_placing_seconds_count 1", "mrs_attempt_staging_seconds_count 1",
	}
	if missing := lacks(scraped(t, metrics), busy...); len(missing) > 0 {
		t.Errorf("with a task: %q are missing of\n%s", missing, scraped(t, metrics))
	}
	a.await(t, id, view.PhaseDone)
	agent.Eventually(t, "the task's times are counted", func() bool {
		return len(lacks(scraped(t, metrics), "mrs_task_wait_seconds_count 1",
			"mrs_task_run_seconds_count 1", `mrs_attempts{phase="running"} 0`)) == 0
	})
	if err := a.Pause(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	text := scraped(t, metrics)
	if missing := lacks(text, "mrs_paused 1"); len(missing) > 0 {
		t.Errorf("paused: %q are missing", missing)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Error(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "mrs_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if err := metrics.Err(); err != nil {
		t.Error(err)
	}
}
