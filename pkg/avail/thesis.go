package avail

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// maxSteps bounds the steps that FailureSum adds up.
const maxSteps = 1 << 24

// directSteps is up to which number of steps NodeUp and NodeRecover add up rather
// than take the closed form, which is the same and quicker.
const directSteps = 1 << 16

// FailureSum is the thesis' equations (3) and (4) as printed: lambda times the sum
// of e^(-lambda t) lambda t over the steps t = 0..steps, for a failure rate of
// lambda per step. The thesis reads it as the probability of a failure within
// that many steps. For a small lambda it is instead the probability of at least
// two (Erlang2), far too small: 5.0e-5 rather than 9.95e-3 for lambda steps =
// 0.01. For a large one it falls again: a node that fails ten times per step
// appears 99.5 % safe. So it serves to reproduce the thesis and nothing else.
func FailureSum(lambda float64, steps int64) (float64, error) {
	if err := checkSum(lambda, steps); err != nil {
		return 0, err
	}
	if steps > maxSteps {
		return 0, fmt.Errorf("%w: steps: want at most %d, have %d; use FailureSumClosed",
			argument.ErrInvalid, maxSteps, steps)
	}
	sum := 0.0
	for t := int64(1); t <= steps; t++ {
		u := lambda * float64(t)
		if u > 800 { // the rest underflows
			break
		}
		sum += math.Exp(-u) * u
	}
	return min(lambda*sum, 1), nil // its limit is below 1, rounding is not
}

// FailureSumClosed is FailureSum in closed form: lambda^2 q (1 - q^n - n q^n (1-q))
// / (1-q)^2 with q = e^-lambda and n = steps. It costs the same for any number of
// steps.
func FailureSumClosed(lambda float64, steps int64) (float64, error) {
	if err := checkSum(lambda, steps); err != nil {
		return 0, err
	}
	if lambda == 0 || steps == 0 || lambda > 1000 { // e^-1000 is nothing
		return 0, nil
	}
	n := float64(steps)
	u := lambda * n
	p := -math.Expm1(-lambda) // 1 - q
	// The bracket, as (1 - (1+u) q^n) + n q^n (lambda - p): both are positive, so that
	// nothing cancels where the whole is small.
	bracket := erlang2(u) + n*math.Exp(-u)*excessOverExpm1(lambda)
	return min(lambda/p*lambda/p*math.Exp(-lambda)*bracket, 1), nil
}

// excessOverExpm1 is lambda - (1 - e^-lambda).
func excessOverExpm1(lambda float64) float64 {
	if lambda < 1e-2 { // the series, where the difference cancels
		return lambda * lambda * (1.0/2 - lambda*(1.0/6-lambda*(1.0/24-lambda*(1.0/120-lambda/720))))
	}
	return lambda + math.Expm1(-lambda)
}

func erlang2(u float64) float64 {
	switch {
	case u < 1e-2: // the series, where the difference cancels
		return u * u * (1.0/2 - u*(1.0/3-u*(1.0/8-u*(1.0/30-u/144))))
	case u > 800: // also where u overflowed
		return 1
	default:
		return -math.Expm1(-u) - u*math.Exp(-u)
	}
}

// FailureProbability is the probability of at least one failure, 1 - e^(-lambda
// steps): what FailureSum was meant to be.
func FailureProbability(lambda float64, steps int64) (float64, error) {
	if err := checkSum(lambda, steps); err != nil {
		return 0, err
	}
	return -math.Expm1(-lambda * float64(steps)), nil
}

// NodeUp is the probability that a node that is up stays up for tau steps more,
// with a failure rate of lambda per step and a chance of reliability of staying up
// regardless. paper is the thesis' equations (5) and (9): it sums failures over the
// whole age up to tauUp + tau - 1, so that an old node counts as failed. fixed
// asks about the next tau steps only and is 1 for tau = 0.
func NodeUp(lambda, reliability float64, tauUp, tau int64) (paper, fixed float64, err error) {
	sum, fail, err := bothSums(lambda, reliability, tauUp, tau)
	return 1 - (1-reliability)*sum, 1 - (1-reliability)*fail, err
}

// NodeRecover is the probability that a node that is down recovers within tau steps
// more, with a recovery rate of lambda per step and a chance of unrecoverable of
// never recovering (the thesis describes that number as its opposite, but both
// enter as 1 minus it). paper is the thesis' equations (6) and (10), with the same
// flaws as in NodeUp; fixed is 0 for tau = 0.
func NodeRecover(
	lambda, unrecoverable float64, tauDown, tau int64,
) (paper, fixed float64, err error) {
	sum, next, err := bothSums(lambda, unrecoverable, tauDown, tau)
	return (1 - unrecoverable) * sum, (1 - unrecoverable) * next, err
}

// bothSums is the printed sum over age + tau - 1 steps and the probability of an
// event in the next tau steps.
func bothSums(lambda, chance float64, age, tau int64) (sum, next float64, err error) {
	if err = errors.Join(argument.Probability("chance", chance),
		checkSum(lambda, age), checkSum(lambda, tau)); err != nil {
		return 0, 0, err
	}
	n := max(age, tau) // saturates
	if age <= math.MaxInt64-tau {
		n = max(age+tau-1, 0)
	}
	add := FailureSum
	if n > directSteps {
		add = FailureSumClosed
	}
	if sum, err = add(lambda, n); err != nil {
		return 0, 0, err
	}
	next, err = FailureProbability(lambda, tau)
	return sum, next, err
}

func checkSum(lambda float64, steps int64) error {
	if err := argument.Amount("rate per step", lambda); err != nil {
		return err
	}
	if math.IsInf(lambda, 1) {
		return fmt.Errorf("%w: rate per step: want a finite number", argument.ErrInvalid)
	}
	if steps < 0 {
		return fmt.Errorf("%w: steps: want at least 0, have %d", argument.ErrInvalid, steps)
	}
	return nil
}
