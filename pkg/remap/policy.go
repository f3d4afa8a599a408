package remap

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

// Validate reports the first parameter that is out of its range. Errors are argument.ErrInvalid.
func (p Policy) Validate() error {
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

// Outage is a failure as a whole. LoadBased, One and All do not look at it.
type Outage struct {
	Began int64 // the slot in which the machine failed
	Ends  int64 // the slot in which it works again
}

// Before is the slot from which on reservations stay on the failed machines, above now but for an
// Estimate that is over and followed by Nothing: the remapping interval is [now, Before).
func (p Policy) Before(t *Table, now int64, o Outage) int64 {
	switch p.Rule {
	case LoadBased:
		return t.busyUntil(p, now)
	case One:
		return now + 1
	case All:
		return math.MaxInt64
	case Optimal:
		return o.Ends
	case Estimate:
	}
	return p.estimated(now, o)
}

// estimated is the end of the failure by its estimate.
func (p Policy) estimated(now int64, o Outage) int64 {
	length := max(int64(p.Factor*float64(o.Ends-o.Began)), 1)
	end := o.Began + length
	switch {
	case now < end:
		return end
	case p.After == Slot:
		return now + 1
	case p.After == Again:
		return end + ((now-end)/length+1)*length
	}
	return now
}

// busyUntil is the last slot in which the weighted load reaches the threshold, or the slot after
// the present one. What is found holds until something else is reserved, or expected.
func (t *Table) busyUntil(p Policy, now int64) int64 {
	if t.changed || p.Booking {
		t.changed, t.busy = false, 0
		for d := range t.all {
			if full := t.full(d, p.Surviving); full > 0 {
				t.busy = t.scan(p, d, now, float64(full))
			}
		}
	}
	return max(t.busy, now+1)
}

// scan looks, backwards from the last slot, for one in which so much of one resource is busy, and
// not beyond the last one found for another resource.
func (t *Table) scan(p Policy, d int, now int64, full float64) int64 {
	last := max(t.busy, now+1)
	l := t.loads(p, d)
	for slot := t.last; slot > last; slot-- {
		load := l.weighted(slot)
		if p.Booking {
			load += t.Booking.mean(d, slot-now)
		}
		if load/full >= p.Share {
			return slot
		}
	}
	return last
}

// loads are the rows of which the weighted load of one resource is the sum.
type loads struct {
	all    []int64
	failed [][]int64
	ended  []int64 // nil: it does not count
	weight float64
}

func (t *Table) loads(p Policy, d int) loads {
	l := loads{all: t.all[d], weight: p.Weight}
	for _, i := range t.failed {
		if used := t.machines[i].used[d]; used != nil {
			l.failed = append(l.failed, used)
		}
	}
	if p.Ended {
		l.ended = t.ended[d]
	}
	return l
}

// weighted is the load of a slot, that of the failed machines times the weight.
func (l *loads) weighted(slot int64) float64 {
	failed := int64(0)
	for _, used := range l.failed {
		failed += used[slot]
	}
	others := l.all[slot] - failed
	if l.ended != nil {
		failed += l.ended[slot]
	}
	return float64(others) + l.weight*float64(failed)
}
