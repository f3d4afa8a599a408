package ckpt

import (
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// maxCheckpoints bounds the checkpoints of one Run.
const maxCheckpoints = 1 << 20

// MFCA adapts the interval between checkpoints to how often a site fails: mean
// failure time based checkpoint adaptation, FIBR paper, section 3.3. The interval
// grows while the site is stable or the task nearly done, up to a share of the
// task's length, and shrinks otherwise.
//
// The paper writes I both for the interval and for what is added to it. Here they
// are two things; StepSeconds equal to the interval gives the other reading. An
// interval may end above its limit by less than one step, as in the paper.
type MFCA struct {
	ExecutionSeconds float64 // E, the task's total run time
	// GrowthLimit is alpha, the share of E up to which the interval grows, above 0 and below 1.
	GrowthLimit float64
	StepSeconds float64 // what is added or taken away
	MinSeconds  float64 // I_min, no interval is shorter
	CostSeconds float64 // C, what one checkpoint takes, below MinSeconds so that work proceeds
}

// Validate reports a field that is out of its range.
func (m MFCA) Validate() error {
	if err := errors.Join(
		argument.Amount("execution time", m.ExecutionSeconds),
		argument.Amount("step", m.StepSeconds),
		argument.Amount("shortest interval", m.MinSeconds),
		argument.Amount("cost of a checkpoint", m.CostSeconds),
	); err != nil {
		return err
	}
	if !(m.GrowthLimit > 0 && m.GrowthLimit < 1) {
		return fmt.Errorf("%w: growth limit alpha: want more than 0 and less than 1, have %v",
			argument.ErrInvalid, m.GrowthLimit)
	}
	if m.CostSeconds >= m.MinSeconds {
		return fmt.Errorf("%w: cost of a checkpoint: want less than the shortest interval of "+
			"%v s, have %v s", argument.ErrInvalid, m.MinSeconds, m.CostSeconds)
	}
	return nil
}

// Next is the interval that follows one: longer by a step if the remaining run
// time is below the site's mean time between failures and the interval below its
// limit, else shorter by a step, never below the shortest. An interval below the
// shortest is lifted to it first. A site that has not failed yet has an infinite
// mean time between failures.
func (m MFCA) Next(intervalSeconds, remainingSeconds, meanFailureSeconds float64) (float64, error) {
	if err := errors.Join(
		m.Validate(),
		argument.Amount("interval", intervalSeconds),
		argument.Amount("remaining run time", remainingSeconds),
		argument.Amount("mean time between failures", meanFailureSeconds),
	); err != nil {
		return 0, err
	}
	return m.next(intervalSeconds, remainingSeconds, meanFailureSeconds), nil
}

// next is Next for arguments known to be valid.
func (m MFCA) next(interval, remaining, meanFailure float64) float64 {
	interval = max(interval, m.MinSeconds)
	switch {
	case remaining < meanFailure && interval < m.GrowthLimit*m.ExecutionSeconds:
		return interval + m.StepSeconds
	case interval > m.StepSeconds:
		return max(interval-m.StepSeconds, m.MinSeconds)
	default:
		return m.MinSeconds
	}
}

// Run is when a task takes its checkpoints, in seconds of work done, if it begins
// with one interval and the mean time between failures stays as it is. Checkpoints
// do not count as work, the end of the task needs none, and the interval is
// adapted after each. The execution time must be finite, and more than
// maxCheckpoints checkpoints are an error.
func (m MFCA) Run(firstSeconds, meanFailureSeconds float64) ([]float64, error) {
	if err := errors.Join(
		m.Validate(),
		finite("execution time", m.ExecutionSeconds),
		argument.Amount("first interval", firstSeconds),
		argument.Amount("mean time between failures", meanFailureSeconds),
	); err != nil {
		return nil, err
	}
	var checkpoints []float64
	done, interval := 0.0, max(firstSeconds, m.MinSeconds)
	for done+interval < m.ExecutionSeconds {
		if len(checkpoints) == maxCheckpoints {
			return nil, fmt.Errorf("%w: shortest interval: more than %d checkpoints, want longer intervals",
				argument.ErrInvalid, maxCheckpoints)
		}
		done += interval
		checkpoints = append(checkpoints, done)
		interval = m.next(interval, m.ExecutionSeconds-done, meanFailureSeconds)
	}
	return checkpoints, nil
}
