package remapping

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Rule says how far ahead reservations leave a failed machine, and new ones avoid it.
type Rule uint8

// The rules. All but LoadBased are the references of VRM, section 4.3.
const (
	LoadBased Rule = iota // up to the last slot in which the grid is busy: VRM, section 4.6
	One                   // A_1: the present slot
	All                   // A_all: all slots
	Optimal               // A_optimal: up to the end of the failure, which nobody knows
	Estimate              // up to the end as it was estimated
)

// After says what is done when a failure outlasts its estimate.
type After uint8

// What can be done: the paper does not say.
const (
	Nothing After = iota // the machine is believed to work again
	Slot                 // as One
	Again                // it is estimated to last as long again
)

// Policy is a rule with its parameters.
type Policy struct {
	Rule   Rule
	Weight float64 // zeta of LoadBased, at least 0
	Share  float64 // eta of LoadBased, the share of full load that is busy, at least 0

	// Surviving takes the nodes of the machines that work for full load. That is ours: the paper
	// takes all nodes, though those of the failed machine are lost (E24).
	Surviving bool

	// Ended counts the running jobs that the failure ended as load until they would have stopped:
	// the paper's text does so, its figure 7 does not (F1).
	Ended bool

	// Booking adds the average booking profile of LoadBased: the nodes that requests reserved in
	// one slot, for so many slots ahead, on average over all slots before (VRM, section 4.5; E22).
	Booking bool

	Factor  float64 // of Estimate: the estimate as a part of the true length, above 0
	After   After   // of Estimate
	Migrate bool    // running jobs move too, without a loss of time, as in the paper's section 5.4
}

func (p Policy) validate() error {
	if p.Rule > Estimate || p.After > Again {
		return fmt.Errorf("%w: no such rule: %+v", argument.ErrInvalid, p)
	}
	if p.Rule == Estimate && !(p.Factor > 0 && p.Factor <= 1000) {
		return fmt.Errorf("%w: estimate: want a part of the true length above 0 and at most 1000, "+
			"have %v", argument.ErrInvalid, p.Factor)
	}
	return errors.Join(argument.Amount("weight zeta", p.Weight),
		argument.Amount("threshold eta", p.Share))
}

// before is the slot from which on reservations stay on the failed machine.
func (r *run) before() int64 {
	switch r.policy.Rule {
	case LoadBased:
		return r.busyUntil()
	case One:
		return r.now + 1
	case All:
		return math.MaxInt64
	case Optimal:
		return r.ends
	case Estimate:
	}
	return r.estimated()
}

// estimated is the end of the failure by its estimate.
func (r *run) estimated() int64 {
	length := max(int64(r.policy.Factor*float64(r.model.Down)), 1)
	end := r.began + length
	switch {
	case r.now < end:
		return end
	case r.policy.After == Slot:
		return r.now + 1
	case r.policy.After == Again:
		return end + ((r.now-end)/length+1)*length
	}
	return r.now
}

// busyUntil is the last slot in which the weighted load reaches the threshold, or the slot after
// the present one. What is found holds until something else is reserved, or expected.
func (r *run) busyUntil() int64 {
	if !r.changed && r.booked == nil {
		return max(r.busy, r.now+1)
	}
	r.changed = false
	full := r.total
	if r.policy.Surviving {
		full -= r.machines[r.failed].nodes
	}
	for r.busy = r.last; r.busy > r.now+1; r.busy-- {
		if r.weighted(r.busy)/float64(full) >= r.policy.Share {
			break
		}
	}
	return max(r.busy, r.now+1)
}

// weighted is the load of a slot in nodes, that of the failed machine times the weight.
func (r *run) weighted(slot int64) float64 {
	failed := r.machines[r.failed].used[slot]
	others := r.used[slot] - failed
	if r.policy.Ended {
		failed += r.ended[slot]
	}
	load := float64(others) + r.policy.Weight*float64(failed)
	if r.booked != nil {
		load += float64(r.booked[slot-r.now]) / float64(r.now)
	}
	return load
}
