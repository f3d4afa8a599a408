package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The slack of deadline commitments that were made after it lets a promised task go on
// past its estimate. It stands aside when that is used up, and best effort when half of
// it is.
func TestSlackIsUsedBeforeAnOverrunStandsAside(t *testing.T) {
	due := func(n int) func(*Commitment) { return func(c *Commitment) { c.Deadline = at(n) } }
	for name, c := range map[string]struct {
		class     Class
		deadline  int // of the one behind it, which takes 10
		pushed    int // where that begins after the overrun
		suspended []int
	}{
		"slack":                       {ClassDeadline, 90, 56, nil},
		"no slack":                    {ClassDeadline, 62, 50, []int{1}},
		"best effort":                 {ClassVarTime, 90, 50, []int{1}},
		"best effort, due in an hour": {ClassVarTime, 3600, 56, nil},
	} {
		p := New(Config{Total: cores(4)})
		first := task(1, c.class, 4, 0, 50)
		if c.class == ClassDeadline {
			first = first.with(due(200))
		}
		put(t, p, 0, first)
		put(t, p, 1, task(2, ClassDeadline, 4, 50, 60).with(due(c.deadline)))
		changes := p.Advance(at(50))
		check(t, p)
		if !cmp.Equal(numbers(changes.Suspended), c.suspended) {
			t.Errorf("%s: suspended %v", name, numbers(changes.Suspended))
		}
		if overran, _ := p.Commitment(attempt(1)); !overran.Overran || overran.promised() {
			t.Errorf("%s: %+v has had its time", name, overran)
		}
		second, _ := p.Commitment(attempt(2))
		if c.suspended == nil &&
			(second.Running || second.Start.Before(at(c.pushed)) || second.End.After(at(c.deadline))) {
			t.Errorf("%s: the next begins at %s and ends at %s", name, second.Start, second.End)
		}
		if c.suspended != nil && !second.Running {
			t.Errorf("%s: the next does not begin", name)
		}
	}
}

// Of those that are pushed back the policy says which gets the first place.
func TestThePolicyOrdersWhoIsPushedBack(t *testing.T) {
	for policy, want := range map[grid.Policy][]int{
		grid.PolicyFCFS: {56, 58}, grid.PolicySJF: {56, 58}, grid.PolicyLJF: {59, 56},
	} {
		due := func(c *Commitment) { c.Deadline = at(400) }
		p := New(Config{Total: cores(4), Policy: policy})
		put(t, p, 0, task(1, ClassDeadline, 2, 0, 50).with(due))
		put(t, p, 0, task(4, ClassFixTime, 2, 40, 100))
		put(t, p, 1, task(2, ClassDeadline, 2, 50, 52).with(due))
		put(t, p, 2, task(3, ClassDeadline, 2, 52, 55).with(due))
		p.Advance(at(40))
		changes := p.Advance(at(50)) // goes on for an eighth of 50 s, 6.25 s
		wantStarts(t, p, want, 2, 3)
		if len(changes.Suspended) > 0 || len(changes.Moved) != 2 {
			t.Errorf("%s: %+v", policy, changes)
		}
	}
}

// Where one of them has no place within its bounds, all keep theirs, and the overrun yields.
func TestAllOrNobodyIsPushedBack(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassDeadline, 4, 0, 50).with(func(c *Commitment) { c.Deadline = at(400) }))
	put(t, p, 1, task(2, ClassDeadline, 2, 50, 52).with(func(c *Commitment) { c.Deadline = at(400) }))
	put(t, p, 2, task(3, ClassDeadline, 2, 50, 55).with(func(c *Commitment) { c.Deadline = at(56) }))
	changes := p.Advance(at(50))
	check(t, p)
	wantStarts(t, p, []int{50, 50}, 2, 3)
	if !cmp.Equal(numbers(changes.Suspended), []int{1}) || len(changes.Moved) > 0 ||
		!cmp.Equal(numbers(changes.Started), []int{2, 3}) {
		t.Errorf("%+v", changes)
	}
}
