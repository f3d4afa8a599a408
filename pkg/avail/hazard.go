package avail

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Hazard is the belief about one cause for which a site stops being available. Its rate
// is lambda k (t/u)^(k-1) at age t, times what the profile says of the quarter of the
// week: a Weibull lifetime, exponential for k = 1, in calendar time. lambda is uncertain:
// a Gamma distribution.
type Hazard struct {
	Shape float64 `json:"shape"` // k, 0.2 to 5
	Unit  float64 `json:"unit"`  // u, seconds: what one failure of the prior is worth
	// Failures is of the Gamma distribution, with those of the prior.
	Failures float64 `json:"failures"`
	// Exposure is of the Gamma distribution, in seconds of operational time.
	Exposure float64  `json:"exposure"`
	Profile  *Profile `json:"profile,omitempty"` // nil: all times of the week are alike
}

// Profile says how many times likelier than on average an end is in each quarter of an
// hour of the week.
type Profile struct {
	Times  []float64 `json:"times"`  // 672 factors, 0 or more
	Worth  []float64 `json:"worth"`  // how many ends each factor is worth, above 0
	Factor float64   `json:"factor"` // the mean of Times
}

// operational is the age in operational time, u (t/u)^k, seconds. It is the age itself
// for k = 1.
func (h *Hazard) operational(age float64) float64 {
	if h.Shape == 1 || age == 0 {
		return age
	}
	return h.Unit * math.Pow(age/h.Unit, h.Shape)
}

// rate is the expected lambda.
func (h *Hazard) rate() float64 { return h.Failures / h.Exposure }

// at is the time in operational seconds, weighted by the profile, that lies between an
// age and tau seconds later, starting at a second of the week; and the variance that
// the profile's own uncertainty brings, in seconds squared.
func (h *Hazard) at(week, age, tau float64) (weighted, variance float64) {
	all := h.operational(age+tau) - h.operational(age)
	if h.Profile == nil {
		return all, 0
	}
	if week < 0 {
		return all * h.Profile.Factor, 0
	}
	before := h.operational(age)
	walk(week, min(tau, WeekSeconds), func(slot int, _, to float64) {
		after := h.operational(age + to)
		times, worth := h.Profile.Times[slot], h.Profile.Worth[slot]
		part := (after - before) * times
		weighted += part
		variance += part * part / worth
		before = after
	})
	if tau > WeekSeconds { // a week is enough of detail
		weighted += (h.operational(age+tau) - before) * h.Profile.Factor
	}
	return weighted, variance
}

// exposure is the operational time of a life. It knows no profile: one is made of exposures.
func (h *Hazard) exposure(l life) float64 {
	return h.operational(l.age+l.length) - h.operational(l.age)
}

// logSurvival is the logarithm of the probability of no end by this cause.
func (h *Hazard) logSurvival(week, age, tau float64) float64 {
	weighted, _ := h.at(week, age, tau)
	return -h.Failures * math.Log1p(max(weighted, 0)/h.Exposure)
}

// spread is the mean and the variance of the expected number of ends by this cause.
func (h *Hazard) spread(week, age, tau float64) (mean, variance float64) {
	weighted, profile := h.at(week, age, tau)
	rate := h.rate()
	return rate * weighted, weighted*weighted*rate/h.Exposure + rate*rate*profile
}

// Validate reports a field that is out of its range.
func (h *Hazard) Validate() error {
	errs := []error{Prior{Failures: h.Failures, Exposure: h.Exposure}.Validate()}
	if !(h.Shape >= minShape && h.Shape <= maxShape) {
		errs = append(errs, fmt.Errorf("%w: shape: want %v to %v, have %v",
			argument.ErrInvalid, minShape, maxShape, h.Shape))
	}
	if !(h.Unit >= 1 && h.Unit <= maxSeconds) {
		errs = append(errs, fmt.Errorf("%w: unit: want 1 s to a century, have %v",
			argument.ErrInvalid, h.Unit))
	}
	if h.Profile != nil {
		errs = append(errs, h.Profile.validate())
	}
	return errors.Join(errs...)
}

func (p *Profile) validate() error {
	if len(p.Times) != slots || len(p.Worth) != slots {
		return fmt.Errorf("%w: profile: want %d quarters of an hour, have %d and %d",
			argument.ErrInvalid, slots, len(p.Times), len(p.Worth))
	}
	for i := range p.Times {
		if !(p.Times[i] >= 0 && p.Times[i] <= 1e12) || !(p.Worth[i] > 0 && p.Worth[i] <= 1e12) {
			return fmt.Errorf("%w: profile: quarter %d: want factors of 0 to 1e12 worth more than nothing",
				argument.ErrInvalid, i)
		}
	}
	if !(p.Factor >= 0 && p.Factor <= 1e12) {
		return fmt.Errorf("%w: profile: mean: want 0 to 1e12, have %v", argument.ErrInvalid, p.Factor)
	}
	return nil
}
