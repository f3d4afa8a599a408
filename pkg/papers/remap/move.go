package remap

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Policy says which of the machines with room takes a reservation.
type Policy uint8

// The policies. Among equals the machine declared first is taken.
const (
	FirstFit Policy = iota // the first in the order in which they are declared
	BestFit                // the one with the fewest free nodes
	WorstFit               // the one with the most free nodes
)

// Machine is a place for reservations.
type Machine struct {
	ID    string
	Nodes int64 // at least 0
}

// Move says to which machine one reservation goes.
type Move struct {
	ID      string
	Machine string // empty: nowhere, it stays on the failed machine until its start
}

// Move finds new machines for reservations of the failed one, one after the other in the
// order of ids: the paper takes those that were made first. A machine has capacity if its
// greatest load within the reservation's slots leaves enough nodes, those moved before
// included. A reservation that finds none stays where it is, as the failure may have
// ended when it starts. An ID that no reservation has, or that two have, is an error.
// VRM, sections 4.1 and 4.2.
func (f Failure) Move(
	reservations []Reservation, ids []string, machines []Machine, policy Policy,
) ([]Move, error) {
	if policy > WorstFit {
		return nil, fmt.Errorf("%w: no such policy: %d", argument.ErrInvalid, policy)
	}
	if err := errors.Join(f.checkAll(reservations), checkMachines(machines)); err != nil {
		return nil, err
	}
	reservations = slices.Clone(reservations) // their machines change below
	places, err := locate(reservations, ids)
	if err != nil {
		return nil, err
	}
	moves := make([]Move, 0, len(places))
	for _, at := range places {
		target, found := f.place(reservations, at, machines, policy)
		if found {
			reservations[at].Machine = target
		}
		moves = append(moves, Move{ID: reservations[at].ID, Machine: target})
	}
	return moves, nil
}

// place is the machine that takes the reservation at an index.
func (f Failure) place(
	reservations []Reservation, at int, machines []Machine, policy Policy,
) (string, bool) {
	moving := reservations[at]
	best, least, found := "", int64(0), false
	for _, m := range machines {
		if m.ID == f.Machine {
			continue
		}
		free := m.Nodes - peak(reservations, at, m.ID)
		if free < moving.Nodes {
			continue
		}
		key := free // the lowest key wins
		switch policy {
		case FirstFit:
			key = 0
		case WorstFit:
			key = -free
		case BestFit:
		}
		if !found || key < least {
			best, least, found = m.ID, key, true
		}
	}
	return best, found
}

// peak is the greatest number of nodes that a machine's reservations hold at the same
// time during the one at an index, without it.
func peak(reservations []Reservation, at int, machine string) int64 {
	type change struct{ slot, nodes int64 }
	var changes []change
	during := reservations[at]
	for i, r := range reservations {
		from, to := max(r.Start, during.Start), min(r.Stop, during.Stop)
		if i != at && r.Machine == machine && from < to {
			changes = append(changes, change{from, r.Nodes}, change{to, -r.Nodes})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { // what ends makes room first
		return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.nodes, b.nodes))
	})
	var nodes, most int64
	for _, c := range changes {
		nodes += c.nodes
		most = max(most, nodes)
	}
	return most
}

// locate is the index of the reservation that bears each ID.
func locate(reservations []Reservation, ids []string) ([]int, error) {
	byID := make(map[string]int, len(reservations))
	for i, r := range reservations {
		if _, twice := byID[r.ID]; twice {
			return nil, fmt.Errorf("%w: reservation %q: two have this ID", argument.ErrInvalid, r.ID)
		}
		byID[r.ID] = i
	}
	places := make([]int, len(ids))
	for i, id := range ids {
		at, known := byID[id]
		if !known {
			return nil, fmt.Errorf("%w: reservation %q: there is none", argument.ErrInvalid, id)
		}
		places[i] = at
	}
	return places, nil
}

func checkMachines(machines []Machine) error {
	for _, m := range machines {
		if err := argument.AtLeast("nodes of machine "+m.ID, 0, m.Nodes); err != nil {
			return err
		}
	}
	return nil
}
