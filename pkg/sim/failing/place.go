package failing

import (
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/fault"
)

// place chooses one of the resources that are up and free; nil if there is none.
func (w *world) place(t *task) *resource {
	best := w.best[:0]
	least := math.Inf(1)
	all := w.all()
	for _, r := range w.resources {
		if !r.spell.Up || r.task != nil {
			continue
		}
		score := w.score(r, t, all)
		if score < least {
			best, least = best[:0], score
		}
		if score == least {
			best = append(best, r)
		}
	}
	w.best = best
	if len(best) == 0 {
		return nil
	}
	return best[w.chance.IntN(len(best))]
}

// score grows with how bad a resource is for a task, by the rule for places.
func (w *world) score(r *resource, t *task, all avail.Prior) float64 {
	switch w.policy.Place {
	case PlaceFIBR:
		return w.index(r, t)
	case PlaceRate:
		return w.belief(r, all).Rate()
	case PlaceAge:
		return 1 - w.survival(r, all, t.left())
	case PlaceShape:
		return 1 - w.shaped(r, all, t.left())
	case PlaceRisk:
		return fault.Risk(w.index(r, t), 1-w.survival(r, all, t.left()))
	default:
		return 0
	}
}
