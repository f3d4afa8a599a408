package ckpt

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Young is the interval between checkpoints that costs least, to first order:
// sqrt(2 C M) for a cost of C and a mean time between failures of M, both above 0.
// J. W. Young, "A first order approximation to the optimum checkpoint interval",
// 1974.
func Young(costSeconds, mtbfSeconds float64) (float64, error) {
	if err := checkCost(costSeconds, mtbfSeconds); err != nil {
		return 0, err
	}
	return young(costSeconds, mtbfSeconds), nil
}

func young(cost, mtbf float64) float64 {
	return math.Sqrt(2) * math.Sqrt(cost) * math.Sqrt(mtbf) // the product could overflow
}

// Daly is the interval that costs least to a higher order: sqrt(2 C M) (1 +
// sqrt(C/2M)/3 + C/18M) - C, and M where a checkpoint costs 2 M or more. J. T.
// Daly, "A higher order estimate of the optimum checkpoint interval for restart
// dumps", 2006.
func Daly(costSeconds, mtbfSeconds float64) (float64, error) {
	if err := checkCost(costSeconds, mtbfSeconds); err != nil {
		return 0, err
	}
	if costSeconds/2 >= mtbfSeconds {
		return mtbfSeconds, nil
	}
	ratio := costSeconds / 2 / mtbfSeconds
	return young(costSeconds, mtbfSeconds)*(1+math.Sqrt(ratio)/3+ratio/9) - costSeconds, nil
}

// Execution is a task that saves its state at intervals on a machine that fails.
type Execution struct {
	WorkSeconds    float64 // run time without failures and checkpoints
	CostSeconds    float64 // C, what one checkpoint takes, above 0
	MTBFSeconds    float64 // M, mean time between failures, above 0; infinity never fails
	RestartSeconds float64 // R, what a restart takes
}

// ExpectedCompletion returns how long the execution takes on average with a checkpoint
// after each interval of work, under exponential failures: e^(R/M) M ((n-1)
// (e^((tau+C)/M) - 1) + (e^(last/M) - 1)) for n segments of length tau, the last of which
// may be shorter and needs no checkpoint (Daly 2006). It is infinite where it exceeds
// what a float64 holds.
func (e Execution) ExpectedCompletion(intervalSeconds float64) (float64, error) {
	if err := errors.Join(
		checkCost(e.CostSeconds, e.MTBFSeconds),
		argument.Amount("work", e.WorkSeconds),
		argument.Amount("restart", e.RestartSeconds),
		argument.Positive("interval", intervalSeconds),
	); err != nil {
		return 0, err
	}
	segments := 1.0
	if e.WorkSeconds > intervalSeconds {
		segments = math.Ceil(e.WorkSeconds / intervalSeconds)
	}
	switch {
	case e.WorkSeconds == 0:
		return 0, nil
	case math.IsInf(e.WorkSeconds, 1), math.IsInf(segments, 1):
		return math.Inf(1), nil
	}
	last := e.WorkSeconds
	full := 0.0 // time for all segments but the last
	if segments > 1 {
		last = max(e.WorkSeconds-(segments-1)*intervalSeconds, 0)
		full = (segments - 1) * e.inflated(intervalSeconds+e.CostSeconds)
	}
	return e.restarts() * (full + e.inflated(last)), nil
}

// inflated returns how long some seconds of work take when they start again at each
// failure.
func (e Execution) inflated(seconds float64) float64 {
	if math.IsInf(e.MTBFSeconds, 1) {
		return seconds
	}
	// never shorter, not even by rounding
	return max(seconds, e.MTBFSeconds*math.Expm1(seconds/e.MTBFSeconds))
}

func (e Execution) restarts() float64 {
	if math.IsInf(e.MTBFSeconds, 1) {
		return 1
	}
	return math.Exp(e.RestartSeconds / e.MTBFSeconds)
}

func checkCost(cost, mtbf float64) error {
	return errors.Join(argument.Positive("cost of a checkpoint", cost),
		argument.Positive("mean time between failures", mtbf))
}

// finite reports an infinite value.
func finite(name string, v float64) error {
	if math.IsInf(v, 0) {
		return fmt.Errorf("%w: %s: want a finite number", argument.ErrInvalid, name)
	}
	return nil
}
