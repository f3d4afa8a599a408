package failing

import (
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// survival is the probability that a resource stays up for some seconds, by its age and a lifetime
// learned from its own past, as a site of the mesh learns it. It is learned anew when a fifth of
// that past is new.
func (w *world) survival(r *resource, all avail.Prior, seconds float64) float64 {
	watched := r.exposure + r.age(w.now)
	if watched > r.learned+r.learned/fresh || r.learned == 0 {
		lives := append(slices.Clip(r.lives), avail.Span{Week: -1, Seconds: r.age(w.now)})
		r.model = w.fit(lives, avail.Prior{Failures: 1, Exposure: 1 / all.Rate()})
		r.learned = watched
	}
	return w.stays(r, r.model, seconds)
}

func (w *world) fit(lives []avail.Span, crash avail.Prior) avail.Model {
	model, err := avail.Fit(
		avail.History{Spans: lives}, avail.Priors{Crash: crash, Leave: never()}, nil, 0,
	)
	w.note(err)
	return model
}

func (w *world) stays(r *resource, m avail.Model, seconds float64) float64 {
	age := r.age(w.now)
	p, err := m.Survival(avail.Query{Week: -1, Up: age, Free: age, For: seconds})
	w.note(err)
	return p
}

// never is once in a century: nobody wants resources back here.
func never() avail.Prior { return avail.Prior{Failures: 1, Exposure: 100 * 365 * 24 * 3600} }

// fresh is the part of a past that makes it worth to be looked at again, one by it.
const fresh = 5

// ageing holds what is known of how failure rates change with age, of all resources together.
type ageing struct {
	shape    float64 // of Weibull's law; 1 before anything is known
	unit     float64 // seconds, the mean time up of all resources when it was learned
	failures uint64  // from which it was learned
}

// operational is a time up as Weibull's law counts it, seconds.
func (a ageing) operational(seconds float64) float64 {
	return a.unit * math.Pow(seconds/a.unit, a.shape)
}

// shaped is the probability that a resource stays up for some seconds, by its age, a rate learned
// from its own past and a shape learned from all of them.
func (w *world) shaped(r *resource, all avail.Prior, seconds float64) float64 {
	if w.ageing.unit == 0 || w.up.failures > 2*w.ageing.failures {
		w.age(all)
	}
	a := w.ageing
	return w.stays(r, avail.Model{
		Crash: avail.Hazard{
			Shape: a.shape, Unit: a.unit, Failures: 1 + float64(r.failures),
			Exposure: a.unit + r.operational + a.operational(r.age(w.now)),
		},
		Leave: avail.Hazard{
			Shape: 1, Unit: never().Exposure, Failures: 1, Exposure: never().Exposure,
		},
	}, seconds)
}

// age learns the shape again. Each time up counts as a multiple of its resource's mean: the
// mixture of resources that fail often and seldom would look like one law that falls with age.
func (w *world) age(all avail.Prior) {
	var lives []avail.Span
	for _, r := range w.resources {
		for _, life := range r.lives {
			life.Seconds *= float64(r.failures) / r.exposure / all.Rate()
			if r.failures >= known {
				lives = append(lives, life)
			}
		}
	}
	model := w.fit(lives, avail.Prior{Failures: 1, Exposure: 1 / all.Rate()})
	w.ageing = ageing{
		shape: model.Crash.Shape, unit: max(1/all.Rate(), 1), failures: max(w.up.failures, 1),
	}
	for _, r := range w.resources {
		r.operational = 0
		for _, life := range r.lives {
			r.operational += w.ageing.operational(life.Seconds)
		}
	}
}

// known is the number of failures from which on a resource's mean time up is worth to be used.
const known = 4
