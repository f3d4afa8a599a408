package obs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// namespace stands before every metric of the project.
const namespace = "mrs"

// Registry makes metrics and shows them. Every name it is given gets the prefix
// "mrs_". Asking for the same metric twice gives the same one. A nil Registry is
// valid: its metrics count and are shown nowhere, so no component has to ask
// whether it is observed. It is safe for concurrent use.
type Registry struct {
	reg *prometheus.Registry

	mu    sync.Mutex
	errs  []error                 // registrations that were refused
	looks []func(context.Context) // before each scrape
}

// Counter is a sum that only grows.
type Counter struct{ c prometheus.Counter }

// CounterVec is a family of counters told apart by label values.
type CounterVec struct{ v *prometheus.CounterVec }

// Histogram counts observations by their size.
type Histogram struct{ h prometheus.Histogram }

// GaugeVec is a family of values that rise and fall, told apart by label values.
type GaugeVec struct{ v *prometheus.GaugeVec }

// NewRegistry makes a registry that also shows the Go runtime's and the
// process's own metrics (go_*, process_*).
func NewRegistry() *Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Registry{reg: reg}
}

// Counter makes mrs_NAME; by convention the name ends in _total.
func (r *Registry) Counter(name, help string) Counter {
	return Counter{c: register(r, prometheus.NewCounter(
		prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}))}
}

// CounterVec makes mrs_NAME with labels. Label values must come from a small
// fixed set: never a peer, a job or a path.
func (r *Registry) CounterVec(name, help string, labels ...string) CounterVec {
	return CounterVec{v: register(r, prometheus.NewCounterVec(
		prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels))}
}

// Histogram makes mrs_NAME with the upper bounds of its buckets, ascending.
func (r *Registry) Histogram(name, help string, bounds ...float64) Histogram {
	return Histogram{h: register(r, prometheus.NewHistogram(
		prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: bounds}))}
}

// GaugeFunc makes mrs_NAME, whose value read gives whenever it is shown. The
// function is called from any goroutine and must not block.
func (r *Registry) GaugeFunc(name, help string, read func() float64) {
	register(r, prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, read))
}

// GaugeVec makes mrs_NAME, with or without labels. Label values must come from a small fixed set.
func (r *Registry) GaugeVec(name, help string, labels ...string) GaugeVec {
	return GaugeVec{v: register(r, prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels))}
}

// lookFor bounds how long all that is looked at before a scrape may take.
const lookFor = time.Second

// BeforeScrape has a function called before the metrics are shown, each time, to set gauges to
// what is so then. All of them together have a second; a gauge that is not set by then shows what
// it showed before.
func (r *Registry) BeforeScrape(look func(context.Context)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks = append(r.looks, look)
}

func (r *Registry) look(ctx context.Context) {
	r.mu.Lock()
	looks := r.looks
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	for _, look := range looks {
		look(ctx)
	}
}

// Err reports the registrations that were refused: a malformed name, or one name
// for two kinds of metric. Their metrics work but are not shown. A test of the
// wiring checks that it is nil.
func (r *Registry) Err() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

// Handler serves the metrics in the Prometheus text format.
func (r *Registry) Handler() http.Handler {
	if r == nil {
		return http.NotFoundHandler()
	}
	shown := promhttp.HandlerFor(r.reg, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.look(request.Context())
		shown.ServeHTTP(w, request)
	})
}

// register enters the collector, or finds the one already entered.
func register[C prometheus.Collector](r *Registry, c C) C {
	if r == nil {
		return c
	}
	err := r.reg.Register(c)
	if err == nil {
		return c
	}
	if already, registered := errors.AsType[prometheus.AlreadyRegisteredError](err); registered {
		if old, same := already.ExistingCollector.(C); same {
			return old
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, fmt.Errorf("register metric: %w", err))
	return c
}

// Observe counts one observation.
func (h Histogram) Observe(value float64) { h.h.Observe(value) }

// Set sets the gauge with these label values, in the order of the labels. With the wrong number of
// values it sets none.
func (v GaugeVec) Set(to float64, values ...string) {
	if g, err := v.v.GetMetricWithLabelValues(values...); err == nil {
		g.Set(to)
	}
}

// Inc adds one.
func (c Counter) Inc() { c.c.Inc() }

// Add adds n; a negative n is ignored, because a counter never falls.
func (c Counter) Add(n float64) {
	if n > 0 {
		c.c.Add(n)
	}
}

// With is the counter with these label values, in the order of the labels. With
// the wrong number of values it counts nowhere.
func (v CounterVec) With(values ...string) Counter {
	c, err := v.v.GetMetricWithLabelValues(values...)
	if err != nil {
		return Counter{c: prometheus.NewCounter(prometheus.CounterOpts{Name: "lost"})}
	}
	return Counter{c: c}
}
