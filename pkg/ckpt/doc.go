// Package ckpt decides when a task should save its state: often enough that a
// failure costs little, rarely enough that saving does not cost more.
//
// Three ways to decide stand side by side. LFCA asks before each checkpoint
// whether the site has been stable for so long that this one may be left out.
// MFCA lengthens or shortens the interval after each checkpoint by what is known
// of the site's failures. Young, Daly and CheckpointCount give one interval, or
// one number of checkpoints, for a whole task. ExpectedCompletion is what any
// interval costs under failures, to compare them by.
//
// Sources: Antony Lidya Therasa S., Sumathi G., Antony Dalya S., "Dynamic
// Adaptation of Checkpoints and Rescheduling in Grid Computing", sections 3.1 to
// 3.3 ("the FIBR paper"), for LFCA and MFCA; D. Battre, M. Hovestadt, O. Kao, A.
// Keller, K. Voss, "Planning-based Scheduling for SLA-awareness and Grid
// Integration", figure 2 ("OpenCCS"), for CheckpointCount; J. W. Young, 1974, and
// J. T. Daly, 2006, for the intervals that bear their names.
//
// Times are float64 seconds. An argument that is no number, negative or outside
// its range is an ErrInvalidArgument, also where the result does not depend on
// it. The package decides nothing about how state is saved.
package ckpt

import (
	"errors"
	"fmt"
	"math"
)

// ErrInvalidArgument is the cause of an error about an argument that is no
// number, negative, or outside its range.
var ErrInvalidArgument = errors.New("invalid argument")

// ErrUndefined is the cause of an error about arguments that are valid and have no
// answer.
var ErrUndefined = errors.New("undefined")

// amount reports a value that is no number or negative. Infinity is an amount.
func amount(name string, v float64) error {
	if !(v >= 0) {
		return fmt.Errorf("%w: %s: want a number of at least 0, have %v", ErrInvalidArgument, name, v)
	}
	return nil
}

func positive(name string, v float64) error {
	if !(v > 0) {
		return fmt.Errorf("%w: %s: want more than 0, have %v", ErrInvalidArgument, name, v)
	}
	return nil
}

func finite(name string, v float64) error {
	if math.IsInf(v, 0) {
		return fmt.Errorf("%w: %s: want a finite number", ErrInvalidArgument, name)
	}
	return nil
}

// count reports a negative number of things.
func count(name string, n int64) error {
	if n < 0 {
		return fmt.Errorf("%w: %s: want at least 0, have %d", ErrInvalidArgument, name, n)
	}
	return nil
}
