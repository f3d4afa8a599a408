package member

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxPolicyTasks is the largest number of tasks at a time that a policy can allow.
const maxPolicyTasks = 4096

// LinkPolicy holds the decisions of the administrator of this domain about a linked one.
type LinkPolicy struct {
	// Give is the part of this domain's capacity that the other one may use at a time, 0 to
	// 100 percent.
	Give int `json:"give"`
	// Take bounds what the other one does for this domain at a time, in percent of this domain's
	// own capacity, 0 to 100.
	Take   int      `json:"take"`
	Kinds  []string `json:"kinds"`  // of work taken from the other one: wasm, command; ascending
	Tasks  int      `json:"tasks"`  // of the other one that may be here at a time, 1 to 4096
	Closed bool     `json:"closed"` // nothing new is given or taken until it is opened again
	// Beside: the other one is asked together with the members of this domain, not after them.
	Beside bool `json:"beside,omitempty"`
	// Onward says how many borders more what it is asked for may cross, 0 to 3.
	Onward int `json:"onward,omitempty"`
}

// defaultPolicy is that of a fresh link: a fifth, in the sandbox that all sites have.
func defaultPolicy() LinkPolicy {
	const give, take, tasks = 20, 100, 64
	return LinkPolicy{Give: give, Take: take, Tasks: tasks, Kinds: []string{grid.KindWasm.String()}}
}

// Validate reports the first field that is out of its range, by the name of its flag.
func (p LinkPolicy) Validate() error {
	const whole = 100
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{grid.ErrInvalid}, args...)...)
	}
	switch {
	case p.Give < 0 || p.Give > whole:
		return bad("give: want 0%% to 100%%, have %d%%", p.Give)
	case p.Take < 0 || p.Take > whole:
		return bad("take: want 0%% to 100%%, have %d%%", p.Take)
	case p.Tasks < 1 || p.Tasks > maxPolicyTasks:
		return bad("tasks: want 1 to %d, have %d; to take none, close the link",
			maxPolicyTasks, p.Tasks)
	case p.Onward < 0 || p.Onward >= protocol.MaxHops:
		return bad("onward: want 0 to %d, have %d", protocol.MaxHops-1, p.Onward)
	case len(p.Kinds) == 0:
		return bad("kinds: want wasm, command or both; to take none, close the link")
	case !slices.IsSorted(p.Kinds) || len(slices.Compact(slices.Clone(p.Kinds))) != len(p.Kinds):
		return bad("kinds: want each once, ascending")
	}
	for _, k := range p.Kinds {
		if k != grid.KindWasm.String() && k != grid.KindCommand.String() {
			return bad("kinds: want wasm or command, have %q", k)
		}
	}
	return nil
}

// PolicyChange is an order of the administrator: what is nil stays as it is.
type PolicyChange struct {
	Give, Take, Tasks, Onward *int
	Kinds                     []string // empty: as it is
	Closed, Beside            *bool
}

// Validate reports the first field that is out of its range, by the name of its flag.
func (c PolicyChange) Validate() error { return c.apply(defaultPolicy()).Validate() }

// apply gives the policy that follows.
func (c PolicyChange) apply(p LinkPolicy) LinkPolicy {
	for _, set := range []struct{ to, value *int }{
		{&p.Give, c.Give}, {&p.Take, c.Take}, {&p.Tasks, c.Tasks}, {&p.Onward, c.Onward},
	} {
		if set.value != nil {
			*set.to = *set.value
		}
	}
	if len(c.Kinds) > 0 {
		kinds := slices.Clone(c.Kinds)
		slices.Sort(kinds)
		p.Kinds = slices.Compact(kinds)
	}
	for _, set := range []struct{ to, value *bool }{{&p.Closed, c.Closed}, {&p.Beside, c.Beside}} {
		if set.value != nil {
			*set.to = *set.value
		}
	}
	return p
}
