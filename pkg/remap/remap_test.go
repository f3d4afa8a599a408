package remap

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	paper "github.com/mrsmesh/mrsmesh/pkg/papers/remap"
)

const slots = 60

// drawn are machines and what is reserved of them; the first ones have failed.
type drawn struct {
	machines     []Amount
	failed       int
	reservations []Reservation
	table        *Table
}

// draw reserves whatever fits, for jobs of as many resources as there are to be.
func draw(t *rapid.T, resources int) drawn {
	d := drawn{failed: rapid.IntRange(0, 2).Draw(t, "failed")}
	for range rapid.IntRange(d.failed+1, 5).Draw(t, "machines") {
		d.machines = append(d.machines, drawAmount(t, resources, 1, 20))
	}
	d.table = NewTable(d.machines, slots+1)
	for seq := range rapid.IntRange(0, 25).Draw(t, "reservations") {
		r := Reservation{
			Seq: int64(seq), Start: rapid.Int64Range(0, slots-1).Draw(t, "start"),
			Need: drawAmount(t, resources, 0, 12), Machine: None,
		}
		r.Stop = rapid.Int64Range(r.Start+1, slots).Draw(t, "stop")
		at := d.table.BestFit(&r, r.Start, true, nil)
		if at == None || r.Need == (Amount{}) {
			continue
		}
		d.table.Reserve(at, r.Need, r.Start, r.Stop)
		r.Machine = at
		d.reservations = append(d.reservations, r)
	}
	d.table.Fail(d.down()...)
	return d
}

func drawAmount(t *rapid.T, resources int, low, high int64) (a Amount) {
	for i := range resources {
		a[i] = rapid.Int64Range(low, high).Draw(t, "amount")
	}
	return a
}

func (d drawn) down() (failed []int) {
	for i := range d.failed {
		failed = append(failed, i)
	}
	return failed
}

// used tells how much is reserved of a resource of a machine in a slot, counted anew.
func (d drawn) used(machine, resource int, slot int64) (sum int64) {
	for _, r := range d.reservations {
		if r.Machine == machine && r.Start <= slot && slot < r.Stop {
			sum += r.Need[resource]
		}
	}
	return sum
}

// "The remapping interval is defined by the time after which all values of the weighted combined
// profile are lower than eta ... lower bound of 1" (VRM, 4.6), for any number of failed machines
// and resources: the interval is that of the resource that is busy for longest.
func TestTheIntervalIsThatOfADumbTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, rapid.IntRange(1, 2).Draw(t, "resources"))
		p := Policy{
			Weight:    rapid.Float64Range(0, 4).Draw(t, "weight"),
			Share:     rapid.Float64Range(0, 1.5).Draw(t, "share"),
			Surviving: rapid.Bool().Draw(t, "surviving"),
			Booking:   rapid.Bool().Draw(t, "booking"),
		}
		now := rapid.Int64Range(0, slots-2).Draw(t, "now")
		var booked Amount // in one slot, for any that is less than 30 slots ahead
		if p.Booking {
			booked = Amount{3, 2}
			d.table.Booking.Elapsed = 4
			d.table.Booking.Note(booked, 0, 30)
		}
		want, last := now+1, int64(0) // where nobody has reserved, nobody has to leave
		for _, r := range d.reservations {
			last = max(last, r.Stop)
		}
		for slot := now + 1; slot <= last; slot++ {
			for r := range d.machines[0] {
				var load, full float64
				for i, has := range d.machines {
					weight := 1.
					if i < d.failed {
						weight = p.Weight
					}
					load += weight * float64(d.used(i, r, slot))
					if i >= d.failed || !p.Surviving {
						full += float64(has[r])
					}
				}
				if slot-now < 30 {
					load += float64(booked[r]) / 4
				}
				if full > 0 && load/full >= p.Share {
					want = slot
				}
			}
		}
		got := p.Before(d.table, now, Outage{})
		if got != want && !d.isTie(p, now, max(got, want)) {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

// isTie reports whether a slot's load is so near to the threshold that the order of the sum
// decides.
func (d drawn) isTie(p Policy, now, slot int64) bool {
	for r := range d.machines[0] {
		l := d.table.loads(p, r)
		full := float64(d.table.full(r, p.Surviving))
		if l.all == nil || full == 0 {
			continue
		}
		load := l.weighted(slot)
		if p.Booking {
			load += d.table.Booking.mean(r, slot-now)
		}
		if math.Abs(load/full-p.Share) < 1e-9 {
			return true
		}
	}
	return false
}

// With nodes alone and one failed machine all is as the paper has it: who moves, and where to.
func TestMovesAreThePapers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 1)
		if d.failed == 0 {
			return
		}
		d.table.Fail(0)
		now := rapid.Int64Range(0, slots-1).Draw(t, "now")
		p := Policy{Weight: 2, Share: rapid.Float64Range(0.01, 1).Draw(t, "share")}
		f := paper.Failure{Machine: "0", Slot: now}
		load := paper.Load{WithoutTerminated: true}
		var machines []paper.Machine
		for i, has := range d.machines {
			machines = append(machines, paper.Machine{ID: strconv.Itoa(i), Nodes: has[0]})
			load.TotalNodes += has[0]
		}
		for i := range d.reservations { // those that were running are over
			if r := &d.reservations[i]; r.Machine == 0 && r.Start < now {
				d.table.Release(0, r.Need, r.Start, r.Stop)
				r.Machine = None
			} else {
				load.Reservations = append(load.Reservations, paper.Reservation{
					ID: strconv.Itoa(i), Seq: r.Seq, Start: r.Start, Stop: r.Stop, Nodes: r.Need[0],
					Machine: strconv.Itoa(r.Machine),
				})
			}
		}
		_, length, err := f.Interval(load, paper.Threshold{Weight: 2, Share: p.Share}, slots-now)
		if err != nil {
			t.Fatal(err)
		}
		before := p.Before(d.table, now, Outage{})
		if before != now+length {
			t.Fatalf("until slot %d, want %d", before, now+length)
		}
		leaving, err := f.Within(load.Reservations, length)
		if err != nil {
			t.Fatal(err)
		}
		want, err := f.Move(load.Reservations, leaving.Remap, machines, paper.BestFit)
		if err != nil {
			t.Fatal(err)
		}
		got := d.moveAll(now, before)
		if !slices.Equal(got, want) {
			t.Fatalf("moved %v, want %v", got, want)
		}
	})
}

// moveAll moves what leaves the first machine, in the order of booking.
func (d drawn) moveAll(now, before int64) (moves []paper.Move) {
	order := make([]*Reservation, len(d.reservations))
	for i := range order {
		order[i] = &d.reservations[i]
	}
	slices.SortFunc(order, (*Reservation).Earlier)
	for _, r := range order {
		if r.Machine != 0 || !r.Leaves(now, before) {
			continue
		}
		move := paper.Move{ID: strconv.FormatInt(r.Seq, 10)}
		for i := range d.reservations {
			if &d.reservations[i] == r {
				move.ID = strconv.Itoa(i)
			}
		}
		if d.table.Move(r, r.Start, nil) {
			move.Machine = strconv.Itoa(r.Machine)
		}
		moves = append(moves, move)
	}
	return moves
}

// Whatever moves: no working machine is promised twice, and where nothing moves there was no
// machine with space for it, in the slots in which it would be there.
func TestNothingIsPromisedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 2)
		slow := rapid.IntRange(0, len(d.machines)-1).Draw(t, "slow")
		for i := range d.reservations {
			r := &d.reservations[i]
			if r.Machine >= d.failed || !r.Leaves(0, rapid.Int64Range(0, slots).Draw(t, "before")) {
				continue
			}
			was := *r
			fit := func(machine int) (from, stop int64, ok bool) {
				if machine == slow { // a slot more for data, and twice the time
					stop = was.Start + 1 + 2*(was.Stop-was.Start)
					return was.Start + 1, stop, stop <= slots
				}
				return was.Start, was.Stop, true
			}
			moved := d.table.Move(r, r.Start, fit)
			if moved {
				r.Start, r.Stop, _ = fit(r.Machine)
			}
			d.checkMove(t, was, *r, moved, fit)
		}
	})
}

func (d drawn) checkMove(t *rapid.T, was, is Reservation, moved bool, fit Fit) {
	for i, has := range d.machines {
		from, stop, ok := fit(i)
		fits := ok && i >= d.failed
		for resource := range has {
			for slot := range int64(slots) {
				used := d.used(i, resource, slot)
				if row := d.table.machines[i].used[resource]; row[slot] != used {
					t.Fatalf("machine %d, slot %d: %d, want %d", i, slot, row[slot], used)
				}
				if used > has[resource] {
					t.Fatalf("machine %d, slot %d: %d promised", i, slot, used)
				}
				if from <= slot && slot < stop && used+was.Need[resource] > has[resource] {
					fits = false
				}
			}
		}
		if !moved && fits {
			t.Fatalf("%+v stays, and machine %d has space for it", was, i)
		}
	}
	if moved && is.Machine < d.failed {
		t.Fatalf("%+v moves to a machine that has failed", was)
	}
}

// "A_all ... A_1 ... A_optimal" (VRM, 4.3), and estimates that are over.
func TestReferences(t *testing.T) {
	o := Outage{Began: 10, Ends: 30}
	table := NewTable([]Amount{{4}, {4}}, 100)
	for _, c := range []struct {
		p    Policy
		now  int64
		want int64
	}{
		{Policy{Rule: All}, 12, math.MaxInt64},
		{Policy{Rule: One}, 12, 13},
		{Policy{Rule: Optimal}, 12, 30},
		{Policy{Rule: Estimate, Factor: .5}, 12, 20},
		{Policy{Rule: Estimate, Factor: .5}, 20, 20},
		{Policy{Rule: Estimate, Factor: .5, After: Slot}, 20, 21},
		{Policy{Rule: Estimate, Factor: .5, After: Again}, 20, 30},
		{Policy{Rule: Estimate, Factor: .5, After: Again}, 29, 30},
		{Policy{Rule: Estimate, Factor: .001, After: Again}, 20, 21},
		{Policy{Weight: 2, Share: .5}, 20, 21},
	} {
		if got := c.p.Before(table, c.now, o); got != c.want {
			t.Errorf("%+v in slot %d: %d, want %d", c.p, c.now, got, c.want)
		}
	}
}

// What failures have ended counts as load of the failed machine until it would have stopped.
func TestWhatHasEndedCountsIfItIsToCount(t *testing.T) {
	p := Policy{Weight: 2, Share: .5, Ended: true}
	table := NewTable([]Amount{{4}, {4}}, 100)
	table.Fail(0)
	table.Reserve(0, Amount{2}, 5, 40)
	table.End(Amount{2}, 10, 40)
	table.Release(0, Amount{2}, 10, 40)
	if got := p.Before(table, 10, Outage{}); got != 39 {
		t.Errorf("until slot %d, want 39", got)
	}
	p.Ended = false
	table.changed = true
	if got := p.Before(table, 10, Outage{}); got != 11 {
		t.Errorf("not counted: until slot %d, want 11", got)
	}
	p.Ended = true
	table.Fail(0)
	if got := p.Before(table, 10, Outage{}); got != 11 {
		t.Errorf("after another failure: until slot %d, want 11", got)
	}
}

func TestPoliciesThatAreRefused(t *testing.T) {
	for _, p := range []Policy{
		{Rule: Estimate},
		{Rule: Estimate, Factor: 1001},
		{Rule: Estimate + 1},
		{After: Again + 1},
		{Weight: -1},
		{Share: math.NaN()},
	} {
		if err := p.Validate(); !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if err := (Policy{Rule: Estimate, Factor: 1000, After: Again}).Validate(); err != nil {
		t.Error(err)
	}
}

// With prices the machine that costs the lowest sum takes a reservation, and of equal ones the best
// fit: a dear machine on which it takes less time may be the cheaper one.
func TestTheCheapestMachineTakesIt(t *testing.T) {
	fit := func(machine int) (from, stop int64, ok bool) {
		return 2, 2 + []int64{0, 8, 2, 8}[machine], true
	}
	for name, c := range map[string]struct {
		prices []float64
		want   int
	}{
		"no prices": {nil, 1},
		"cheapest":  {[]float64{0, 4, 20, 3}, 3},
		"fastest":   {[]float64{0, 4, 5, 3}, 2},
		"equal":     {[]float64{0, 1, 4, 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			table := NewTable([]Amount{{4}, {4}, {8}, {6}}, 20)
			table.Prices = c.prices
			table.Fail(0)
			r := Reservation{Start: 2, Stop: 4, Need: Amount{2}}
			if got := table.BestFit(&r, 2, false, fit); got != c.want {
				t.Errorf("machine %d, want %d", got, c.want)
			}
		})
	}
}
