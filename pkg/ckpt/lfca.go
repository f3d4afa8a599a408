package ckpt

import (
	"errors"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Decision is the answer to a request for a checkpoint.
type Decision uint8

// The decisions.
const (
	Take  Decision = iota // the site failed so recently that the checkpoint is worth its cost
	Omit                  // the site has been stable for longer than the task runs
	Force                 // it has been stable, but too many checkpoints in a row were left out
)

// DefaultMaxOmissions is the number of checkpoints in a row that LFCA leaves out by
// default. The paper wants such a limit and names none.
const DefaultMaxOmissions = 3

// LFCA leaves out checkpoints on a site that has not failed for a while: last
// failure time based checkpoint adaptation, FIBR paper, section 3.2. It has one
// owner, for one task on one site. All times are seconds on the same clock.
//
// The paper does not say whether E is the task's total or its remaining run time;
// here it is the total, as the symbol was introduced. Before the first failure the
// last one counts as having been when the system started.
type LFCA struct {
	ExecutionSeconds   float64 // E, the task's total run time
	LastFailureSeconds float64 // Lf, when the site failed last; at first when it started
	MaxOmissions       int64   // how many in a row may be left out; 0 leaves out none
	Omissions          int64   // how many in a row have been left out
}

// Validate reports a field that is out of its range.
func (l *LFCA) Validate() error {
	return errors.Join(
		argument.Amount("execution time", l.ExecutionSeconds),
		argument.Amount("time of the last failure", l.LastFailureSeconds),
		argument.AtLeast("most omissions", 0, l.MaxOmissions),
		argument.AtLeast("omissions", 0, l.Omissions),
	)
}

// Failed notes that the site failed at a time. Omissions count anew.
func (l *LFCA) Failed(atSeconds float64) error {
	err := errors.Join(l.Validate(), argument.Amount("time of the failure", atSeconds))
	if err != nil {
		return err
	}
	l.LastFailureSeconds, l.Omissions = atSeconds, 0
	return nil
}

// Request decides about the checkpoint that the task asks for at a time: it is
// taken if the site failed at most E ago (step 3), left out otherwise, and forced
// when the longest run of omissions is reached (step 4). A time before the last
// failure counts as that of the failure.
func (l *LFCA) Request(atSeconds float64) (Decision, error) {
	err := errors.Join(l.Validate(), argument.Amount("time of the request", atSeconds))
	if err != nil {
		return Take, err
	}
	switch {
	case atSeconds <= l.LastFailureSeconds, atSeconds-l.LastFailureSeconds <= l.ExecutionSeconds:
		l.Omissions = 0
		return Take, nil
	case l.Omissions >= l.MaxOmissions:
		l.Omissions = 0
		return Force, nil
	default:
		l.Omissions++
		return Omit, nil
	}
}
