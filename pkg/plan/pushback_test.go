package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
