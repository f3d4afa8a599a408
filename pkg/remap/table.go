package remap

import "slices"

// Amount is so much of each resource of a machine, such as its cores and its memory; VRM has nodes
// alone. One that is 0 is not looked at.
type Amount [2]int64

// None is the index of no machine.
const None = -1

// Table knows what is reserved of each machine in each slot, and which machines have failed. A
// machine of which a part has failed is two of them.
type Table struct {
	Booking Booking // what requests have reserved; used with Policy.Booking

	// Prices of a slot of each machine; nil: they are not looked at.
	Prices []float64

	machines []machine
	all      [len(Amount{})][]int64 // of all machines, in each slot
	ended    [len(Amount{})][]int64 // what failures have ended; nil: nothing yet
	failed   []int
	last     int64 // no reservation so far reaches beyond it
	changed  bool  // since busy was worked out
	busy     int64 // see busyUntil
}

type machine struct {
	has    Amount
	used   [len(Amount{})][]int64
	failed bool
}

// NewTable returns the table of machines of which nothing is reserved, for so many slots.
func NewTable(machines []Amount, slots int64) *Table {
	t := &Table{machines: make([]machine, len(machines)), changed: true}
	for d := range t.all {
		if !slices.ContainsFunc(machines, func(has Amount) bool { return has[d] > 0 }) {
			continue
		}
		t.all[d] = make([]int64, slots)
		for i := range machines {
			t.machines[i].used[d] = make([]int64, slots)
		}
	}
	for i, has := range machines {
		t.machines[i].has = has
	}
	return t
}

// Takes reports whether a machine has so much free, in the slots from one up to another.
func (t *Table) Takes(machine int, need Amount, from, stop int64) bool {
	_, fits := t.free(machine, need, from, stop)
	return fits
}

// Fail says which machines do not work from now on, in place of those before.
func (t *Table) Fail(machines ...int) {
	for _, i := range t.failed {
		t.machines[i].failed = false
	}
	t.failed, t.changed = slices.Clone(machines), true
	for _, i := range t.failed {
		t.machines[i].failed = true
	}
	for _, ended := range t.ended {
		clear(ended)
	}
}

// Reserve reserves so much of a machine, in the slots from one up to another, whether or not
// it has that much. Some machine has each resource of which there is some in need.
func (t *Table) Reserve(machine int, need Amount, from, stop int64) {
	t.add(machine, need, from, stop, 1)
	t.last = max(t.last, stop)
}

// Release takes back what was reserved, or a part of its slots.
func (t *Table) Release(machine int, need Amount, from, stop int64) {
	t.add(machine, need, from, stop, -1)
}

func (t *Table) add(machine int, need Amount, from, stop, times int64) {
	t.changed = true
	for d, n := range need {
		if n == 0 {
			continue
		}
		n *= times
		used, all := t.machines[machine].used[d][from:stop], t.all[d][from:stop]
		for i := range used {
			used[i] += n
			all[i] += n
		}
	}
}

// End says that a failure has ended what was reserved from a slot on, which Release has taken back.
// It counts as load until it would have stopped, with Policy.Ended.
func (t *Table) End(need Amount, from, stop int64) {
	for d, n := range need {
		if n == 0 {
			continue
		}
		if t.ended[d] == nil {
			t.ended[d] = make([]int64, len(t.all[d]))
		}
		for slot := from; slot < stop; slot++ {
			t.ended[d][slot] += n
		}
	}
}

// peak is the most of one resource that is reserved of a machine in the slots from one up to
// another.
func (t *Table) peak(machine, d int, from, stop int64) int64 {
	return slices.Max(t.machines[machine].used[d][from:stop])
}

// full tells how much of a resource counts as full load.
func (t *Table) full(d int, surviving bool) int64 {
	var sum int64
	for i := range t.machines {
		if m := &t.machines[i]; !surviving || !m.failed {
			sum += m.has[d]
		}
	}
	return sum
}
