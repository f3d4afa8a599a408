package obs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each line of a log is there as it was said; only the one after some that were left out says how
// many these were. Lines of one message and another event are another cause, wherever the event
// stands; so are those of another level.
func TestEachLineOfALog(t *testing.T) {
	for format, line := range map[string]string{
		"text": "time=2026-03-01T12:00:%02d.000Z level=%s msg=m room=r g.a=1 g.event=%s%s\n",
		"json": `{"time":"2026-03-01T12:00:%02dZ","level":"%s","msg":"m","room":"r",` +
			`"g":{"a":1,"event":"%s"%s}}` + "\n",
	} {
		var out strings.Builder
		log, err := NewLogger(&out, format, "debug")
		if err != nil {
			t.Fatal(err)
		}
		h := log.With("room", "r").WithGroup("g").Handler()
		var want strings.Builder
		say := func(second int, level slog.Level, event, more string, lines int) {
			for i := range lines {
				at := time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC)
				r := slog.NewRecord(at, level, "m", 0)
				r.AddAttrs(slog.Int("a", 1), slog.String("event", event))
				if err := h.Handle(context.Background(), r); err != nil {
					t.Error(err)
				}
				if more != "left out" && (i == 0 || more == "") {
					fmt.Fprintf(&want, line, second, level, event, more)
				}
			}
		}
		left := map[string]string{"text": " g.left_out=3", "json": `,"left_out":3`}[format]
		say(0, slog.LevelInfo, "x", "", calmBurst)
		say(0, slog.LevelInfo, "x", "left out", 3)
		say(0, slog.LevelInfo, "y", "", 1)
		say(0, slog.LevelWarn, "x", "", calmBurst)
		say(0, slog.LevelDebug, "x", "", calmBurst+1)
		say(1, slog.LevelInfo, "x", left, 1)
		say(2, slog.LevelInfo, "x", "", 1)
		if diff := cmp.Diff(want.String(), out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

// A cause that may write nothing tells nothing of what was left out before.
func TestWhatIsLeftOutIsToldWithALine(t *testing.T) {
	cs := &causes{all: map[cause]*volume{}}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range calmBurst + 5 {
		left, ok := cs.take(cause{}, now)
		if left != 0 || ok != (i < calmBurst) {
			t.Errorf("line %d: %d were left out, written %t", i, left, ok)
		}
	}
	for second, want := range []int{5, 0, 0} {
		at := now.Add(time.Duration(second+1) * calmPause)
		if left, ok := cs.take(cause{}, at); left != want || !ok {
			t.Errorf("after %d s: %d were left out, written %t, want %d", second+1, left, ok, want)
		}
	}
}

// Levels have their names, however these are written; what is none is told with those there are.
func TestWhatIsToldOfALoggersConfiguration(t *testing.T) {
	for text, want := range map[string]slog.Level{
		"": slog.LevelInfo, "info": slog.LevelInfo, "Debug": slog.LevelDebug, "WARN": slog.LevelWarn,
		"error": slog.LevelError,
	} {
		if got, err := ParseLevel(text); got != want || err != nil {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
	for _, c := range []struct{ format, level, want string }{
		{"", "", ""},
		{"TEXT", "", ""},
		{"Json", "", ""},
		{
			"text", "loud",
			`invalid logging configuration: log level "loud": want debug, info, warn or error`,
		},
		{"xml", "", `invalid logging configuration: log format "xml": want text or json`},
	} {
		log, err := NewLogger(&strings.Builder{}, c.format, c.level)
		if text := fmt.Sprint(err); err == nil != (c.want == "") || err != nil && text != c.want ||
			(log == nil) == (err == nil) || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%q, %q: %v, %v, want %q", c.format, c.level, log, err, c.want)
		}
	}
	if level, err := ParseLevel("x"); level != 0 || err == nil {
		t.Errorf("%s, %v", level, err)
	}
}

// Metrics are shown with their help, their labels and their values; those that were refused count
// and are not shown, and each is told.
func TestWhatARegistryShows(t *testing.T) {
	r := NewRegistry()
	c := r.Counter("c_total", "A sum.")
	c.Inc()
	c.Add(2)
	c.Add(-9)
	family := r.CounterVec("f_total", "A family.", "a", "b")
	family.With("1", "2").Inc()
	family.With("1", "2").Add(.5)
	family.With("3").Inc()
	h := r.Histogram("h", "Sizes.", 1, 2)
	for _, v := range []float64{1, 1.5, 9} {
		h.Observe(v)
	}
	r.Histogram("h", "Sizes.", 1, 2).Observe(2)
	r.GaugeFunc("g", "A value.", func() float64 { return 8 })
	r.GaugeFunc("f_total", "Another kind.", func() float64 { return 9 })
	r.Histogram("c_total", "A sum.", 1).Observe(1)
	const want = `# HELP mrs_c_total A sum.
# TYPE mrs_c_total counter
mrs_c_total 3
# HELP mrs_f_total A family.
# TYPE mrs_f_total counter
mrs_f_total{a="1",b="2"} 1.5
# HELP mrs_g A value.
# TYPE mrs_g gauge
mrs_g 8
# HELP mrs_h Sizes.
# TYPE mrs_h histogram
mrs_h_bucket{le="1"} 1
mrs_h_bucket{le="2"} 3
mrs_h_bucket{le="+Inf"} 4
mrs_h_sum 13.5
mrs_h_count 4
`
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	text := w.Body.String()
	from := strings.Index(text, "# HELP mrs_")
	to := strings.Index(text, "# HELP process_")
	if from < 0 || !strings.Contains(text, "\ngo_goroutines ") {
		t.Fatalf("shown is\n%s", text)
	}
	if to < from { // not told on every system
		to = len(text)
	}
	if diff := cmp.Diff(want, text[from:to]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range 2 { // asking changes nothing
		err := r.Err()
		if err == nil || strings.Count(err.Error(), "register metric: ") != 2 {
			t.Errorf("refused: %v", err)
		}
	}
	if err := NewRegistry().Err(); err != nil {
		t.Errorf("nothing was refused: %v", err)
	}
}
