package nodes

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// CTMCUp is the probability that a node is up tau seconds from now if it fails and
// recovers again and again at constant rates, a Markov chain of two states: A +
// (1-A) e^-(1/MTTF + 1/MTTR) tau if it is up now, A (1 - e^...) if not, where A =
// MTTF/(MTTF+MTTR). An infinite tau gives A. Both means must be above 0 and finite.
// Use it for how many nodes there will be; whether a task survives is the business
// of Survival.
func CTMCUp(mttfSeconds, mttrSeconds, tauSeconds float64, upNow bool) (float64, error) {
	if err := errors.Join(argument.Positive("MTTF", mttfSeconds),
		argument.Positive("MTTR", mttrSeconds), argument.Amount("tau", tauSeconds)); err != nil {
		return 0, err
	}
	if math.IsInf(mttfSeconds, 1) || math.IsInf(mttrSeconds, 1) {
		return 0, fmt.Errorf("%w: MTTF and MTTR: want finite numbers, have %v and %v",
			argument.ErrInvalid, mttfSeconds, mttrSeconds)
	}
	available := share(mttfSeconds, mttrSeconds)
	decay := -tauSeconds/mttfSeconds - tauSeconds/mttrSeconds
	if upNow {
		return min(available+share(mttrSeconds, mttfSeconds)*math.Exp(decay), 1), nil
	}
	return available * -math.Expm1(decay), nil
}

// share is a/(a+b) of numbers above 0, of which a is finite.
func share(a, b float64) float64 { return 1 / (1 + b/a) }
