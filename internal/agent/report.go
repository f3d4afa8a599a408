package agent

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// eventEnded names a site's report that an attempt has ended; its text is the cause,
// one of a few words.
const eventEnded = "exited"

// reporter counts, logs and shows what the machines report.
type reporter struct {
	log    *slog.Logger
	events *view.EventLog
	metric *obs.CounterVec // nil: counted, but shown nowhere
	ends   *obs.CounterVec // nil as well
	// What became of the promises of this site's own jobs, and by how many seconds those that
	// are late were; nil as well.
	promises map[string]obs.Counter
	lateness *obs.Histogram
	timings  *timings

	mu     sync.Mutex
	counts map[string]int64 // guarded by mu
}

func newReporter(metrics *obs.Registry, log *slog.Logger, events *view.EventLog) *reporter {
	r := &reporter{
		log: log, events: events, counts: make(map[string]int64), timings: newTimings(metrics),
	}
	if metrics != nil {
		metric := metrics.CounterVec("reports_total", "What the machines reported, by event.", "event")
		ends := metrics.CounterVec("attempts_ended_total", "Attempts that ended here, by cause.", "cause")
		r.metric, r.ends = &metric, &ends
		lateness := metrics.Histogram("promises_late_seconds",
			"By how much promised tasks began or ended late.", 1, 2, 5, 10, 30, 60, 300, 1800, 7200)
		r.lateness = &lateness
		r.promises = make(map[string]obs.Counter)
		for _, p := range []grid.Promise{grid.PromiseKept, grid.PromiseLate, grid.PromiseBroken} {
			r.promises["task_"+p.String()] = metrics.Counter("promises_"+p.String()+"_total",
				"Own tasks with a promised start or end that ended: "+p.String()+".")
		}
	}
	return r
}

// countPromise counts what became of a promise.
func (r *reporter) countPromise(e step.Report) {
	if counter, is := r.promises[e.Event]; is {
		counter.Inc()
		if e.Value > 0 {
			r.lateness.Observe(e.Value)
		}
	}
}

func (r *reporter) count(event string) {
	r.mu.Lock()
	r.counts[event]++
	r.mu.Unlock()
	if r.metric != nil {
		r.metric.With(event).Inc()
	}
}

// counters is a copy of all counts since the start.
func (r *reporter) counters() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

func (r *reporter) report(e step.Report) {
	r.count(e.Event)
	r.countPromise(e)
	r.timings.heed(e, time.Now())
	if e.Event == eventEnded && r.ends != nil {
		r.ends.With(e.Text).Inc()
	}
	level := [...]slog.Level{
		slog.LevelDebug, slog.LevelInfo, slog.LevelWarn,
	}[min(e.Level, step.LevelWarn)]
	if !r.log.Enabled(context.Background(), level) && e.Level < step.LevelInfo {
		return
	}
	attrs := []slog.Attr{slog.String("event", e.Event)}
	if e.Attempt.Task.Job != "" {
		attrs = append(attrs, slog.String("attempt", e.Attempt.String()))
	}
	if e.Site != "" {
		attrs = append(attrs, slog.String("site", string(e.Site)))
	}
	if e.Reason != grid.ReasonNone {
		attrs = append(attrs, slog.String("reason", e.Reason.String()))
	}
	if e.Text != "" {
		attrs = append(attrs, slog.String("text", e.Text))
	}
	if e.Value != 0 {
		attrs = append(attrs, slog.Float64("value", e.Value))
	}
	r.log.LogAttrs(context.Background(), level, "report", attrs...)
	if e.Level >= step.LevelInfo {
		r.events.Append(eventOf(e))
	}
}

// eventOf is the report as users see it.
func eventOf(e step.Report) view.Event {
	event := view.Event{
		Time: view.At(time.Now()), Kind: e.Event, Site: e.Site, Token: e.Attempt.Token.Number(),
		Text: e.Text,
	}
	if job := e.Attempt.Task.Job; job != "" {
		event.Job = job
		if e.Attempt.Token > 0 {
			event.Task = e.Attempt.Task.String()
		}
	}
	if e.Reason != grid.ReasonNone && event.Text == "" {
		event.Text = e.Reason.String()
	}
	if e.Event == "awarded" {
		distance := e.Value
		event.Distance = &distance
	}
	return event
}
