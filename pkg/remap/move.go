package remap

import "cmp"

// Reservation is a promise of a part of one machine for some slots.
type Reservation struct {
	Seq         int64 // the order in which reservations were made
	Start, Stop int64
	Need        Amount
	Machine     int // where it is; None: nowhere
}

// Earlier compares two reservations: who booked first is served first. VRM, section 4.2.
func (r *Reservation) Earlier(o *Reservation) int { return cmp.Compare(r.Seq, o.Seq) }

// Leaves reports whether a reservation of a failed machine is to move: it starts inside the
// interval. The paper writes the interval as [t0, t0+i] and uses start < t0+i; the latter holds.
func (r *Reservation) Leaves(now, before int64) bool { return now <= r.Start && r.Start < before }

// Fit tells the slots of a reservation on another machine, on which its jobs run faster or slower,
// and where their data has to be first. ok: it can be there in time. nil stands for one that is the
// same everywhere.
type Fit func(machine int) (from, stop int64, ok bool)

// Move gives a reservation, from a slot on, the machine that fits best of those that work. It
// reports false if there is none: the reservation stays where it is, as the failure may be over
// when it starts. VRM, sections 4.1 and 4.2.
func (t *Table) Move(r *Reservation, from int64, fit Fit) bool {
	to := t.BestFit(r, from, false, fit)
	if to == None {
		return false
	}
	if r.Machine != None {
		t.Release(r.Machine, r.Need, from, r.Stop)
	}
	r.Machine = to
	if fit != nil {
		from, r.Stop, _ = fit(to)
	}
	t.Reserve(to, r.Need, from, r.Stop)
	return true
}

// BestFit is the machine with the fewest free nodes that can take a reservation from a slot on, the
// first one of equals; None if there is no such machine. The nodes are those of the first resource
// of which the reservation needs some. With Prices it is the one that costs the lowest sum for the
// slots there, and of equal ones the best fit; that is ours, VRM has none.
func (t *Table) BestFit(r *Reservation, from int64, failed bool, fit Fit) int {
	best, least, lowest := None, int64(0), 0.
	start, stop := from, r.Stop
	for i := range t.machines {
		if t.machines[i].failed && !failed {
			continue
		}
		if fit != nil {
			var ok bool
			if start, stop, ok = fit(i); !ok {
				continue
			}
		}
		free, fits := t.free(i, r.Need, start, stop)
		cost := t.cost(i, stop-start)
		if fits && (best == None || cost < lowest || cost == lowest && free < least) {
			best, least, lowest = i, free, cost
		}
	}
	return best
}

// cost is the sum for so many slots of a node of a machine.
func (t *Table) cost(machine int, slots int64) float64 {
	if t.Prices == nil {
		return 0
	}
	return t.Prices[machine] * float64(slots)
}

// free tells how much is left of the first resource of which there is some in need, and whether
// all of it fits.
func (t *Table) free(machine int, need Amount, from, stop int64) (least int64, fits bool) {
	m, first := &t.machines[machine], true
	for d, n := range need {
		if n == 0 {
			continue
		}
		if m.has[d] < n {
			return 0, false
		}
		free := m.has[d] - t.peak(machine, d, from, stop)
		if free < n {
			return 0, false
		}
		if first {
			least, first = free, false
		}
	}
	return least, true
}
