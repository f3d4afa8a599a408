package obs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/obs"
)

func TestNewLogger(t *testing.T) {
	tests := []struct {
		name, format, level string
		wantErr             bool
		wantDebug, wantInfo bool
	}{
		{name: "defaults", wantInfo: true},
		{name: "debug", level: "DEBUG", wantDebug: true, wantInfo: true},
		{name: "errors only", format: "json", level: "error"},
		{name: "unknown format", format: "xml", wantErr: true},
		{name: "unknown level", level: "loud", wantErr: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			log, err := obs.NewLogger(&out, tt.format, tt.level)
			if (err != nil) != tt.wantErr || (err != nil && !errors.Is(err, obs.ErrConfig)) {
				t.Fatalf("NewLogger(%q, %q) error = %v, want error %v", tt.format, tt.level, err, tt.wantErr)
			}
			if err != nil {
				return
			}
			log.Debug("first line")
			log.Info("second line")
			if got := strings.Contains(out.String(), "first"); got != tt.wantDebug {
				t.Errorf("debug line written = %v, want %v", got, tt.wantDebug)
			}
			if got := strings.Contains(out.String(), "second"); got != tt.wantInfo {
				t.Errorf("info line written = %v, want %v", got, tt.wantInfo)
			}
		})
	}
}

func TestJSONLoggerWritesJSON(t *testing.T) {
	var out bytes.Buffer
	log, err := obs.NewLogger(&out, "json", "info")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("placed", "job", "a")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("line is no JSON: %v", err)
	}
	if line["job"] != "a" {
		t.Errorf("job = %v, want a", line["job"])
	}
}

func TestOrNeverNil(t *testing.T) {
	obs.Or(nil).Info("goes nowhere")
	var out bytes.Buffer
	log, err := obs.NewLogger(&out, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if obs.Or(log) != log {
		t.Error("Or replaced a logger that was there")
	}
}

func scrape(t *testing.T, r *obs.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	return w.Body.String()
}

func TestRegistryShowsPrefixedMetrics(t *testing.T) {
	r := obs.NewRegistry()
	r.Counter("jobs_total", "Jobs.").Add(2)
	r.Counter("jobs_total", "Jobs.").Inc() // the same counter
	r.Counter("jobs_total", "Jobs.").Add(-5)
	r.CounterVec("refused_total", "Refusals.", "reason").With("memory").Inc()
	r.GaugeFunc("cores", "Cores.", func() float64 { return 8 })
	r.GaugeVec("attempts", "Attempts.", "phase").Set(2, "running")
	r.GaugeVec("attempts", "Attempts.", "phase").Set(9, "running", "too many")     // sets none
	r.CounterVec("refused_total", "Refusals.", "reason").With("too", "many").Inc() // counts nowhere
	if err := r.Err(); err != nil {
		t.Fatalf("Err() = %v, want nil", err)
	}
	text := scrape(t, r)
	for _, want := range []string{
		"mrs_jobs_total 3\n", `mrs_refused_total{reason="memory"} 1`,
		"mrs_cores 8\n", `mrs_attempts{phase="running"} 2`, "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %q", want)
		}
	}
	if strings.Contains(text, "lost") {
		t.Error("a counter with wrong labels is shown")
	}
}

// What is looked at before a scrape is shown by it; who does not answer holds it up for a moment.
func TestGaugesAreSetBeforeAScrape(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := obs.NewRegistry()
		gauge := r.GaugeVec("cores", "Cores.")
		scrapes := 0
		r.BeforeScrape(func(ctx context.Context) {
			if scrapes++; scrapes > 2 {
				<-ctx.Done()
				return
			}
			gauge.Set(float64(scrapes))
		})
		for i, want := range []string{"mrs_cores 1\n", "mrs_cores 2\n", "mrs_cores 2\n"} {
			began := time.Now()
			if text := scrape(t, r); !strings.Contains(text, want) {
				t.Errorf("scrape %d lacks %q", i+1, want)
			}
			if took := time.Since(began); (took != 0) != (i == 2) || took > time.Second {
				t.Errorf("scrape %d took %s", i+1, took)
			}
		}
	})
}

func TestRegistryReportsRefusedRegistrations(t *testing.T) {
	r := obs.NewRegistry()
	r.Counter("thing", "A counter.").Inc()
	r.CounterVec("thing", "A family of the same name.", "kind").With("any").Inc() // still works
	if r.Err() == nil {
		t.Error("Err() = nil after one name for two metrics")
	}
}

func TestNilRegistryCounts(t *testing.T) {
	var r *obs.Registry
	r.Counter("jobs_total", "Jobs.").Inc()
	r.GaugeFunc("cores", "Cores.", func() float64 { return 1 })
	r.GaugeVec("attempts", "Attempts.").Set(1)
	r.BeforeScrape(func(context.Context) { t.Error("it is scraped") })
	if r.Err() != nil {
		t.Error("a nil registry reports something")
	}
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 404 {
		t.Errorf("nil registry's handler answers %d, want 404", w.Code)
	}
}
