package failing

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// resource is a machine: its spells as they come, and what is known of those that have been.
type resource struct {
	id    grid.SiteID
	mean  float64 // time up, which nobody knows
	turns workload.Turns
	rng   *rand.Rand
	spell workload.Spell // in which it is
	task  *task          // that runs there; nil: free

	failures uint64
	exposure float64 // seconds up, without the spell in which it is
	last     float64 // when it failed last; at first when watching it began
	lives    []avail.Span
	model    avail.Model // learned from so many lives:
	learned  int
}

// change ends the spell in which a resource is.
func (r *resource) change() {
	if s := r.spell; s.Up {
		r.failures++
		r.exposure += s.To - s.From
		r.last = s.To
		r.lives = append(r.lives, avail.Span{Week: -1, Seconds: s.To - s.From, End: avail.EndCrash})
	}
	r.spell = r.turns.Next(r.spell, r.rng)
}

// age is for how long it has been up, seconds.
func (r *resource) age(now float64) float64 {
	if !r.spell.Up {
		return 0
	}
	return now - r.spell.From
}

// interval is the mean time between its failures so far, infinite before the first one.
func (r *resource) interval(now float64) float64 {
	if r.failures == 0 {
		return math.Inf(1)
	}
	return (r.exposure + r.age(now)) / float64(r.failures)
}

// all is what is known of the resources together: a failure a day, before anything was seen.
func (w *world) all() avail.Prior {
	failures, exposure := uint64(0), 0.0
	for _, r := range w.resources {
		failures, exposure = failures+r.failures, exposure+r.exposure+r.age(w.now)
	}
	belief, err := avail.Prior{
		Failures: 1, Exposure: (24 * time.Hour).Seconds(),
	}.Observe(failures, exposure)
	w.note(err)
	return belief
}

// belief is what is known of the rate of one resource: as much as of one failure, at the mean
// rate of all, and its own past.
func (w *world) belief(r *resource, all avail.Prior) avail.Prior {
	belief, err := avail.Prior{Failures: 1, Exposure: 1 / all.Rate()}.Observe(
		r.failures, r.exposure+r.age(w.now))
	w.note(err)
	return belief
}

// survival is how probably a resource stays up for some seconds, by its age and a lifetime
// learned from its own past. It is learned anew when a fifth of its past is new.
func (w *world) survival(r *resource, all avail.Prior, seconds float64) float64 {
	if r.learned == 0 || len(r.lives) > r.learned+r.learned/fresh {
		never := avail.Prior{Failures: 1e-9, Exposure: avail.WeekSeconds}
		model, err := avail.Fit(avail.History{Spans: r.lives}, avail.Priors{
			Crash: avail.Prior{Failures: 1, Exposure: 1 / all.Rate()}, Leave: never,
		}, nil, 0)
		w.note(err)
		r.model, r.learned = model, max(len(r.lives), 1)
	}
	age := r.age(w.now)
	p, err := r.model.Survival(avail.Query{Week: -1, Up: age, Free: age, For: seconds})
	w.note(err)
	return p
}

// fresh is the part of a past that makes it worth to be looked at again, one by it.
const fresh = 5
