package avail

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Prior is the belief about a failure rate before and while failures are counted: a Gamma
// distribution, worth Failures failures in Exposure seconds of being up. Few observations
// move it a little, many drown it.
type Prior struct {
	Failures float64 // a0, above 0 and finite
	Exposure float64 // b0, seconds of being up, above 0 and finite
}

// DefaultPrior is one failure a day: an owner's machine is switched off, or wanted
// back, about once a day.
func DefaultPrior() Prior {
	return Prior{Failures: 1, Exposure: (24 * time.Hour).Seconds()}
}

// Validate reports a field that is out of its range.
func (p Prior) Validate() error {
	if err := errors.Join(argument.Positive("failures of the prior", p.Failures),
		argument.Positive("exposure of the prior", p.Exposure)); err != nil {
		return err
	}
	if math.IsInf(p.Failures, 1) || math.IsInf(p.Exposure, 1) {
		return fmt.Errorf("%w: prior: want finite numbers, have %v", argument.ErrInvalid, p)
	}
	return nil
}

// Observe is the belief after that many failures in so many seconds of being up.
func (p Prior) Observe(failures uint64, exposure float64) (Prior, error) {
	if err := errors.Join(p.Validate(), argument.Amount("exposure", exposure)); err != nil {
		return Prior{}, err
	}
	if math.IsInf(exposure, 1) {
		return Prior{}, fmt.Errorf("%w: exposure: want a finite number", argument.ErrInvalid)
	}
	return Prior{Failures: p.Failures + float64(failures), Exposure: p.Exposure + exposure}, nil
}

// Rate is the expected failure rate, failures per second of being up.
func (p Prior) Rate() float64 { return p.Failures / p.Exposure }

// Survival is the probability of no failure in the next tau seconds, the rate
// being as uncertain as the belief says: (b/(b+tau))^a. It is 1 for tau = 0 and 0
// for an infinite tau.
func (p Prior) Survival(tau float64) (float64, error) {
	if err := errors.Join(p.Validate(), argument.Amount("tau", tau)); err != nil {
		return 0, err
	}
	return math.Exp(-p.Failures * math.Log1p(tau/p.Exposure)), nil
}

// Up is P(up for next more | up for age) for a node of which nothing but its age
// is known: its time up so far, without a failure, is an observation like any
// other. A negative duration counts as 0, and a belief that makes no sense gives 0.
func (p Prior) Up(age, next time.Duration) float64 {
	belief, err := p.Observe(0, max(age, 0).Seconds())
	if err != nil {
		return 0
	}
	up, _ := belief.Survival(max(next, 0).Seconds()) // the belief was checked
	return up
}
