// Package remap decides which reservations leave a machine that has failed, and
// where they go: load-based remapping that does not need to know how long the
// failure will last.
//
// Who reserved a machine was promised a start and an end, so a reservation can move to
// another machine and not in time. Moving all of them together would block the other
// machines for nothing if the failure is short; moving each only when its time has come
// finds them full. So in each slot of the failure Interval works out how far ahead the
// grid is busy, and what starts within that interval is moved while it fits. Select gives
// the reference algorithms, which know more than one can know or do less than one could.
// Move finds the new machines.
//
// Source: L.-O. Burchard, C. A. F. De Rose, H.-U. Heiss, B. Linnert, J. Schneider,
// "VRM: A Failure-Aware Grid Resource Management System", sections 4.1 to 4.6.
//
// Time is counted in slots from any common beginning; a reservation holds the
// slots from its start up to, and not including, its stop. Numbers that are
// negative or no numbers are an argument.ErrInvalid, also where the result does not
// depend on them. The package keeps no plan of its own and moves nothing itself.
//
// No program calls it. Domains move reservations with pkg/remap, whose tests compare it with this;
// this is compared with a second implementation in internal/vectors.
package remap

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Reservation is a promise of some nodes of one machine for some slots.
type Reservation struct {
	ID      string
	Seq     int64  // the order in which reservations were made
	Start   int64  // first slot
	Stop    int64  // first slot after it, at least Start
	Nodes   int64  // at least 0
	Machine string // where it is now
}

func (r Reservation) validate() error {
	if r.Seq < 0 || r.Start < 0 || r.Stop < r.Start || r.Nodes < 0 {
		return fmt.Errorf(
			"%w: reservation %q: want numbers of at least 0 and no stop before the start, have %+v",
			argument.ErrInvalid, r.ID, r,
		)
	}
	return nil
}

// Failure is a machine that does not work, seen in one slot.
type Failure struct {
	Machine string
	Slot    int64 // t0: the present slot, at first the one in which the machine failed
}

// Affected is the reservations of the failed machine that need something done, by
// their IDs in the order in which they were made.
type Affected struct {
	Terminate []string // were running, and end
	Remap     []string // should move
}

// affected sorts out the reservations of the failed machine: those that run end,
// and those that start before a slot move.
func (f Failure) affected(reservations []Reservation, before int64) Affected {
	ordered := slices.Clone(reservations)
	slices.SortStableFunc(ordered, func(a, b Reservation) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	var found Affected
	for _, r := range ordered {
		switch {
		case r.Machine != f.Machine:
		case r.Start < f.Slot && f.Slot < r.Stop:
			found.Terminate = append(found.Terminate, r.ID)
		case f.Slot <= r.Start && r.Start < before:
			found.Remap = append(found.Remap, r.ID)
		}
	}
	return found
}

// checkAll validates what all algorithms share.
func (f Failure) checkAll(reservations []Reservation) error {
	for _, r := range reservations {
		if err := r.validate(); err != nil {
			return err
		}
	}
	return argument.AtLeast("slot", 0, f.Slot)
}

// after is slot + n, or the last slot that there is.
func after(slot, n int64) int64 {
	if n > math.MaxInt64-slot {
		return math.MaxInt64
	}
	return slot + n
}
