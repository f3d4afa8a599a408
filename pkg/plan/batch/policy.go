package batch

import (
	"fmt"
	"strings"
)

// Policy says which job goes first.
type Policy uint8

const (
	// FCFS starts jobs strictly in the order of their submission.
	FCFS Policy = iota
	// EASY keeps a place for the head of the queue only, and lets others overtake it
	// where they do not delay that.
	EASY
	// Conservative keeps a place for every job from its submission on, and moves it
	// only to earlier ones, when a job ends before its estimate.
	Conservative
)

// Policies are the names of all policies, in the order of their numbers.
func Policies() []string { return []string{"fcfs", "easy", "conservative"} }

// String is the policy's name.
func (p Policy) String() string { return name(Policies(), int(p)) }

// ParsePolicy is the policy of that name.
func ParsePolicy(text string) (Policy, error) {
	i, err := parse("policy", Policies(), text)
	return Policy(i), err
}

// Semantics says how several jobs that end or arrive in the same second are handled:
// two schedulers can see them in two ways.
type Semantics uint8

const (
	// Batch takes an instant as a whole: all that ends, then all that arrives, then one
	// look at the queue.
	Batch Semantics = iota
	// Event looks at the queue after each job that arrives and then after each that
	// ends, in the order of their starts. A job whose estimate is over counts as ended
	// meanwhile.
	Event
)

// AllSemantics are the names of both, in the order of their numbers.
func AllSemantics() []string { return []string{"batch", "event"} }

// ParseSemantics is the semantics of that name.
func ParseSemantics(text string) (Semantics, error) {
	i, err := parse("semantics", AllSemantics(), text)
	return Semantics(i), err
}

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown %d", i)
}

func parse(what string, names []string, text string) (int, error) {
	for i, n := range names {
		if n == text {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w %s %q: want one of %s", errInvalid, what, text, strings.Join(names, ", "))
}
