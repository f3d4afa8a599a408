package failing

import (
	"math"
	"math/rand/v2"

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
	model    avail.Model // learned from so many seconds up:
	learned  float64
	// operational sums up its times up as world.ageing counts them, seconds.
	operational float64
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

// ups sums up all spells up.
type ups struct {
	failures uint64
	exposure float64 // seconds, of those that have ended
	now      float64 // resources that are up
	since    float64 // the sum of the instants since when
}

func (u *ups) enter(s workload.Spell) {
	if s.Up {
		u.now, u.since = u.now+1, u.since+s.From
	}
}

func (u *ups) leave(s workload.Spell) {
	if s.Up {
		u.now, u.since = u.now-1, u.since-s.From
		u.failures, u.exposure = u.failures+1, u.exposure+s.To-s.From
	}
}

// all tells what is known of the resources together: a failure a day, before anything was seen.
func (w *world) all() avail.Prior {
	exposure := w.up.exposure + w.up.now*w.now - w.up.since
	belief, err := avail.DefaultPrior().Observe(w.up.failures, max(exposure, 0))
	w.note(err)
	return belief
}

// belief tells what is known of the rate of one resource: as much as of one failure, at the mean
// rate of all, and its own past.
func (w *world) belief(r *resource, all avail.Prior) avail.Prior {
	belief, err := avail.Prior{Failures: 1, Exposure: 1 / all.Rate()}.Observe(
		r.failures, r.exposure+r.age(w.now))
	w.note(err)
	return belief
}
