package remap

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// maxHorizon bounds how many slots ahead Interval looks.
const maxHorizon = 1 << 20

// Load is the load that Interval weighs the failure against.
type Load struct {
	Reservations []Reservation
	TotalNodes   int64 // nodes of all machines, the failed one included; above 0

	// NormNodes is the number of nodes that counts as full load; 0 takes
	// TotalNodes, as the paper does. The paper compares with the capacity that
	// there was before the failure; the nodes that are left are the other reading.
	NormNodes int64

	// Booking is the average booking profile b(t): the share of TotalNodes that
	// the reservations arriving in one slot book for the slot t later. Beyond its
	// end it is 0. The paper takes it for the load to expect, which is rather the
	// sum of all b(s) up to t; the caller decides which of both this is.
	Booking []float64

	// WithoutTerminated leaves the reservations that the failure just ended out of
	// the profile. The paper's figure 7 ends them before it adds up the load, its
	// text does not.
	WithoutTerminated bool
}

// Threshold is the pair of parameters of the load-based algorithm. The paper has
// its best results with a weight of 2 and a threshold of 0.775 to 0.8, and in
// another place recommends at most 0.6.
type Threshold struct {
	Weight float64 // zeta, by which the failed machine's load counts more; the paper wants 1 or more
	Share  float64 // eta, the share of full load from which on the grid counts as busy, 0 to 1
}

func (l Load) validate() error {
	if l.TotalNodes <= 0 || l.NormNodes < 0 {
		return fmt.Errorf("%w: nodes of all machines: want more than 0, have %d, and %d to "+
			"count as full load", argument.ErrInvalid, l.TotalNodes, l.NormNodes)
	}
	for _, b := range l.Booking {
		if err := argument.Amount("booking profile", b); err != nil {
			return err
		}
	}
	return nil
}

// Interval returns how many slots ahead reservations should leave the failed machine, at
// least 1: the last of the next horizon slots in which the weighted load reaches the
// threshold. profile is that load for each of the slots 0 to horizon from now on, as a
// share of full load: that of the other machines, plus that of the failed one times the
// weight, plus what will be booked. VRM, section 4.6.
//
// A load equal to the threshold reaches it, so a threshold of 0 gives the whole
// horizon. The paper's figure 7 adds absolute slots into a profile of relative
// ones and forgets to divide by the number of nodes; here all slots are relative
// to the present one. The profile of the present slot is there to look at and
// decides nothing.
func (f Failure) Interval(
	load Load, limits Threshold, horizon int64,
) (profile []float64, slots int64, err error) {
	if err := errors.Join(
		f.checkAll(load.Reservations),
		load.validate(),
		argument.Amount("weight zeta", limits.Weight),
		argument.Amount("threshold eta", limits.Share),
		argument.AtLeast("horizon", 0, horizon),
	); err != nil {
		return nil, 0, err
	}
	if horizon > maxHorizon {
		return nil, 0, fmt.Errorf("%w: horizon: want at most %d slots, have %d",
			argument.ErrInvalid, maxHorizon, horizon)
	}
	profile = f.profile(load, limits.Weight, horizon)
	for slots = horizon; slots > 1 && profile[slots] < limits.Share; {
		slots--
	}
	return profile, max(slots, 1), nil
}

// profile is the weighted load of each slot up to the horizon.
func (f Failure) profile(load Load, weight float64, horizon int64) []float64 {
	// The change of the number of nodes at the beginning of each slot.
	others, own := make([]int64, horizon+2), make([]int64, horizon+2)
	for _, r := range load.Reservations {
		from, to := max(r.Start-f.Slot, 0), min(r.Stop-f.Slot, horizon+1)
		terminated := r.Machine == f.Machine && r.Start < f.Slot
		if from >= to || terminated && load.WithoutTerminated {
			continue
		}
		changes := others
		if r.Machine == f.Machine {
			changes = own
		}
		changes[from] += r.Nodes
		changes[to] -= r.Nodes
	}
	full := float64(load.TotalNodes)
	if load.NormNodes > 0 {
		full = float64(load.NormNodes)
	}
	profile := make([]float64, horizon+1)
	var nodes, failed int64
	for t := range profile {
		nodes, failed = nodes+others[t], failed+own[t]
		profile[t] = (float64(nodes) + weighted(weight, failed)) / full
		if t < len(load.Booking) {
			profile[t] += load.Booking[t] * (float64(load.TotalNodes) / full)
		}
	}
	return profile
}

// weighted keeps an infinite weight of nothing from being no number.
func weighted(weight float64, nodes int64) float64 {
	if nodes == 0 {
		return 0
	}
	return weight * float64(nodes)
}

// Within returns what to do with the failed machine's reservations when the interval is
// that many slots long: those running now end, unless somebody can migrate them, and
// those that start in the interval move. The paper writes the interval as [t0, t0+i] and
// uses start < t0+i; the latter holds here. VRM, section 4.6, figure 7.
func (f Failure) Within(reservations []Reservation, slots int64) (Affected, error) {
	err := errors.Join(f.checkAll(reservations), argument.AtLeast("interval", 0, slots))
	if err != nil {
		return Affected{}, err
	}
	return f.affected(reservations, after(f.Slot, slots)), nil
}

// Reference is one of the algorithms that the load-based one is measured by.
type Reference uint8

// The reference algorithms of VRM, section 4.3.
const (
	All Reference = iota // moves everything right away: fewest reservations lost, most moved
	// One moves what starts in the present slot: none moved for nothing, most lost.
	One
	Optimal  // moves what starts before the failure ends, which nobody knows
	Estimate // moves what starts before the failure is thought to end
)

// Ends is when the failure ends, in absolute slots.
type Ends struct {
	Actual    int64 // used by Optimal
	Estimated int64 // used by Estimate
}

// Select returns what a reference algorithm does with the failed machine's reservations.
func (f Failure) Select(
	reservations []Reservation, algorithm Reference, ends Ends,
) (Affected, error) {
	if err := errors.Join(
		f.checkAll(reservations),
		argument.AtLeast("end of the failure", 0, ends.Actual),
		argument.AtLeast("estimated end of the failure", 0, ends.Estimated),
	); err != nil {
		return Affected{}, err
	}
	var before int64
	switch algorithm {
	case All:
		before = math.MaxInt64
	case One:
		before = after(f.Slot, 1)
	case Optimal:
		before = ends.Actual
	case Estimate:
		before = ends.Estimated
	default:
		return Affected{}, fmt.Errorf("%w: no such reference algorithm: %d",
			argument.ErrInvalid, algorithm)
	}
	return f.affected(reservations, before), nil
}
