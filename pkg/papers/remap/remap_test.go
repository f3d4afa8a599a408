package remap

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// The tests named after the paper quote the rule that they hold. Numbers computed
// by a second implementation are compared in internal/vectors.

// "The remapping interval is defined by the time after which all values of the
// weighted combined profile are lower than eta ... lower bound of 1" (VRM, 4.6).
func TestPaperInterval(t *testing.T) {
	f := Failure{"m1", 10}
	load := Load{TotalNodes: 32, Reservations: []Reservation{
		{"running", 0, 5, 14, 8, "m1"},
		{"soon", 1, 12, 20, 8, "m1"},
		{"later", 2, 25, 30, 16, "m2"},
	}}
	for _, c := range []struct {
		name   string
		limits Threshold
		change func(*Load)
		want   int64
	}{
		{"as the paper does", Threshold{2, 0.5}, func(*Load) {}, 19},
		{"without weight", Threshold{1, 0.5}, func(*Load) {}, 19},
		{"equal is not lower", Threshold{2, 1}, func(*Load) {}, 3},
		{"nothing is that high", Threshold{2, 1.1}, func(*Load) {}, 1},
		{"a threshold of nothing", Threshold{2, 0}, func(*Load) {}, 40},
		{"the terminated left out", Threshold{2, 1}, func(l *Load) { l.WithoutTerminated = true }, 1},
		{"of the nodes that are left", Threshold{2, 1}, func(l *Load) { l.NormNodes = 16 }, 19},
		{"with what will be booked", Threshold{2, 0.5}, func(l *Load) {
			l.Booking = slices.Repeat([]float64{0.5}, 31)
		}, 30},
		{"an infinite weight of nothing", Threshold{math.Inf(1), 0.6}, func(*Load) {}, 9},
	} {
		l := load
		c.change(&l)
		if _, got, err := f.Interval(l, c.limits, 40); err != nil || got != c.want {
			t.Errorf("%s: %d, %v, want %d", c.name, got, err, c.want)
		}
	}
}

// "A_all remaps all jobs at the moment the failure is detected ... A_1 remaps only
// those jobs starting in the next time slot" (VRM, 4.3).
func TestPaperReferenceAlgorithms(t *testing.T) {
	f := Failure{"m1", 10}
	reservations := []Reservation{
		{"late", 4, 50, 60, 1, "m1"},
		{"now", 3, 10, 20, 1, "m1"},
		{"running", 1, 9, 11, 1, "m1"},
		{"over", 0, 5, 10, 1, "m1"},
		{"soon", 2, 15, 20, 1, "m1"},
		{"elsewhere", 5, 10, 20, 1, "m2"},
	}
	for algorithm, want := range map[Reference][]string{
		All: {"soon", "now", "late"}, One: {"now"}, Optimal: {"soon", "now"}, Estimate: {"now"},
	} {
		got, err := f.Select(reservations, algorithm, Ends{Actual: 16, Estimated: 15})
		if diff := cmp.Diff(Affected{[]string{"running"}, want}, got); err != nil || diff != "" {
			t.Errorf("algorithm %d: %v, %s", algorithm, err, diff)
		}
	}
	got, err := f.Within(reservations, 6)
	if diff := cmp.Diff(Affected{[]string{"running"}, []string{"soon", "now"}}, got); err != nil ||
		diff != "" {
		t.Errorf("within 6 slots: %v, %s", err, diff)
	}
	if got, err := (Failure{"m1", math.MaxInt64}).Within(reservations, math.MaxInt64); err != nil ||
		len(got.Remap) > 0 {
		t.Errorf("at the end of time: %v, %v", got, err)
	}
}

// "If the remapping is not successful, the job remains on the failed system until
// its start time" (VRM, 4.2).
func TestPaperMoves(t *testing.T) {
	f := Failure{"m1", 10}
	machines := []Machine{{"m1", 99}, {"m2", 16}, {"m3", 8}, {"m4", 16}}
	reservations := []Reservation{
		{"a", 0, 20, 30, 8, "m1"},
		{"b", 1, 25, 35, 8, "m1"},
		{"c", 2, 20, 30, 17, "m1"},
		{"before", 3, 10, 20, 16, "m2"}, // touches, and does not overlap
		{"beside", 4, 20, 30, 4, "m4"},
	}
	for policy, want := range map[Policy][]Move{
		FirstFit: {{"a", "m2"}, {"b", "m2"}, {"c", ""}},
		BestFit:  {{"a", "m3"}, {"b", "m4"}, {"c", ""}},
		WorstFit: {{"a", "m2"}, {"b", "m4"}, {"c", ""}},
	} {
		got, err := f.Move(reservations, []string{"a", "b", "c"}, machines, policy)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("policy %d: %v, %s", policy, err, diff)
		}
	}
	if reservations[0].Machine != "m1" {
		t.Error("the argument was changed")
	}
}

func TestInvalidArguments(t *testing.T) {
	f, good := Failure{"m1", 10}, Load{TotalNodes: 1}
	limits := Threshold{1, 1}
	interval := func(l Load, th Threshold, horizon int64) error {
		_, _, err := f.Interval(l, th, horizon)
		return err
	}
	backward := []Reservation{{ID: "a", Start: 2, Stop: 1}}
	twins := []Reservation{{ID: "a"}, {ID: "a"}}
	_, eSlot := Failure{"m1", -1}.Within(nil, 1)
	_, eWithin := f.Within(nil, -1)
	_, eBackward := f.Select(backward, All, Ends{})
	_, eAlgorithm := f.Select(nil, 9, Ends{})
	_, eEnd := f.Select(nil, All, Ends{Actual: -1})
	_, ePolicy := f.Move(nil, nil, nil, 9)
	_, eUnknown := f.Move(nil, []string{"a"}, nil, FirstFit)
	_, eTwins := f.Move(twins, nil, nil, FirstFit)
	_, eMachine := f.Move(nil, nil, []Machine{{"m", -1}}, FirstFit)
	for i, err := range []error{
		interval(Load{}, limits, 1), interval(Load{TotalNodes: 1, NormNodes: -1}, limits, 1),
		interval(Load{TotalNodes: 1, Booking: []float64{math.NaN()}}, limits, 1),
		interval(Load{TotalNodes: 1, Reservations: backward}, limits, 1),
		interval(good, Threshold{-1, 1}, 1), interval(good, Threshold{1, math.NaN()}, 1),
		interval(good, limits, -1), interval(good, limits, maxHorizon+1),
		eSlot, eWithin, eBackward, eAlgorithm, eEnd, ePolicy, eUnknown, eTwins, eMachine,
	} {
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
	}
}

func reservations() *rapid.Generator[[]Reservation] {
	return rapid.Custom(func(t *rapid.T) []Reservation {
		list := make([]Reservation, rapid.IntRange(0, 12).Draw(t, "count"))
		for i := range list {
			start := rapid.Int64Range(0, 30).Draw(t, "start")
			list[i] = Reservation{
				ID: fmt.Sprintf("r%02d", i), Seq: int64(i),
				Start: start, Stop: start + rapid.Int64Range(0, 20).Draw(t, "length"),
				Nodes:   rapid.Int64Range(0, 8).Draw(t, "nodes"),
				Machine: rapid.SampledFrom([]string{"m1", "m2", "m3"}).Draw(t, "machine"),
			}
		}
		return list
	})
}

// The profile against one that looks at each slot, and the interval against its
// definition.
func TestIntervalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Failure{"m1", rapid.Int64Range(0, 30).Draw(t, "t0")}
		load := Load{
			Reservations: reservations().Draw(t, "reservations"),
			TotalNodes:   32, NormNodes: rapid.SampledFrom([]int64{0, 16}).Draw(t, "norm"),
			Booking:           rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 8).Draw(t, "booking"),
			WithoutTerminated: rapid.Bool().Draw(t, "without"),
		}
		limits := Threshold{
			rapid.Float64Range(0, 4).Draw(t, "zeta"), rapid.Float64Range(0, 1).Draw(t, "eta"),
		}
		horizon := rapid.Int64Range(0, 40).Draw(t, "horizon")
		profile, slots, err := f.Interval(load, limits, horizon)
		if err != nil || int64(len(profile)) != horizon+1 {
			t.Fatalf("%v, %v", profile, err)
		}
		want := int64(1)
		for at := range profile {
			if twin := f.dumbProfile(load, limits.Weight, int64(at)); math.Abs(twin-profile[at]) > 1e-9 {
				t.Errorf("profile[%d] = %v, want %v", at, profile[at], twin)
			}
			if at >= 1 && profile[at] >= limits.Share {
				want = int64(at)
			}
		}
		if slots != want {
			t.Errorf("interval = %d, want %d", slots, want)
		}
		load.Reservations = rapid.Permutation(load.Reservations).Draw(t, "shuffled")
		shuffled, again, _ := f.Interval(load, limits, horizon)
		if again != slots || !slices.Equal(shuffled, profile) {
			t.Errorf("order matters: %d slots and %d", slots, again)
		}
		limits.Share += 0.1
		if _, less, _ := f.Interval(load, limits, horizon); less > slots {
			t.Errorf("a higher threshold lengthens the interval from %d to %d", slots, less)
		}
	})
}

func (f Failure) dumbProfile(load Load, weight float64, at int64) float64 {
	nodes, full := 0.0, float64(load.TotalNodes)
	for _, r := range load.Reservations {
		failed := r.Machine == f.Machine
		slot := f.Slot + at
		switch {
		case slot < r.Start || slot >= r.Stop || failed && load.WithoutTerminated && r.Start < f.Slot:
		case failed:
			nodes += weight * float64(r.Nodes)
		default:
			nodes += float64(r.Nodes)
		}
	}
	if at < int64(len(load.Booking)) {
		nodes += load.Booking[at] * full
	}
	if load.NormNodes > 0 {
		full = float64(load.NormNodes)
	}
	return nodes / full
}

// Whatever the order of arrival, each reservation is in one list at most, and a
// longer interval only adds.
func TestAffectedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Failure{"m1", rapid.Int64Range(0, 30).Draw(t, "t0")}
		list := reservations().Draw(t, "reservations")
		slots := rapid.Int64Range(0, 30).Draw(t, "interval")
		got, err := f.Within(list, slots)
		if err != nil {
			t.Fatal(err)
		}
		shuffled, _ := f.Within(rapid.Permutation(list).Draw(t, "shuffled"), slots)
		if diff := cmp.Diff(got, shuffled); diff != "" {
			t.Error(diff)
		}
		longer, _ := f.Within(list, slots+1)
		all, _ := f.Select(list, All, Ends{})
		for _, id := range got.Remap {
			if slices.Contains(got.Terminate, id) || !slices.Contains(longer.Remap, id) ||
				!slices.Contains(all.Remap, id) {
				t.Errorf("%q: %v, a slot longer %v, all %v", id, got, longer, all)
			}
		}
	})
}

// No machine is ever promised more than it has, and what stays fits nowhere.
func TestMoveNeverOverbooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Failure{"m1", 0}
		list := reservations().Draw(t, "reservations")
		machines := []Machine{
			{"m1", 64},
			{"m2", rapid.Int64Range(0, 40).Draw(t, "m2")},
			{"m3", rapid.Int64Range(0, 40).Draw(t, "m3")},
		}
		var ids []string
		for _, r := range list {
			if r.Machine == f.Machine {
				ids = append(ids, r.ID)
			}
		}
		policy := rapid.SampledFrom([]Policy{FirstFit, BestFit, WorstFit}).Draw(t, "policy")
		moves, err := f.Move(list, ids, machines, policy)
		if err != nil || len(moves) != len(ids) {
			t.Fatalf("%v, %v", moves, err)
		}
		for i, m := range moves {
			at := slices.IndexFunc(list, func(r Reservation) bool { return r.ID == m.ID })
			for _, machine := range machines[1:] {
				fits := dumbPeak(list, list[at], machine.ID)+list[at].Nodes <= machine.Nodes
				if m.Machine == machine.ID && !fits || m.Machine == "" && fits {
					t.Fatalf("move %d, %+v of %+v: fits on %s is %v", i, m, list[at], machine.ID, fits)
				}
			}
			if m.Machine != "" {
				list[at].Machine = m.Machine
			}
		}
	})
}

func dumbPeak(list []Reservation, during Reservation, machine string) int64 {
	most := int64(0)
	for slot := during.Start; slot < during.Stop; slot++ {
		nodes := int64(0)
		for _, r := range list {
			if r.Machine == machine && r.ID != during.ID && r.Start <= slot && slot < r.Stop {
				nodes += r.Nodes
			}
		}
		most = max(most, nodes)
	}
	return most
}

// After the last of all slots there is none.
func TestSlotsHaveAnEnd(t *testing.T) {
	for _, c := range []struct{ slot, n, want int64 }{
		{0, 0, 0},
		{3, 4, 7},
		{math.MaxInt64 - 1, 1, math.MaxInt64},
		{math.MaxInt64, 0, math.MaxInt64},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64 - 3, 9, math.MaxInt64},
		{5, math.MaxInt64, math.MaxInt64},
	} {
		if got := after(c.slot, c.n); got != c.want {
			t.Errorf("%d after slot %d: %d, want %d", c.n, c.slot, got, c.want)
		}
	}
}
