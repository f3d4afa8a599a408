package eval

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// Odds asks how likely a job succeeds on a grid that runs copies of it, or that predicts which
// resources stay up: section 3.2.3 of the thesis.
type Odds struct {
	Resources int64 // that each try of OddsResult.Tries needs, at least 1; figure 9 has 4
}

// OddsResult holds figures 7 to 9 of the thesis.
type OddsResult struct {
	Over   []float64   `json:"over"`   // what the curves are over, from 0 to 1
	Copies []OddsCurve `json:"copies"` // over availability: one of K copies survives
	Once   []OddsCurve `json:"once"`   // over the error rate: k resources were predicted rightly
	Tries  []OddsCurve `json:"tries"`  // over the error rate: one of R tries succeeds
}

// OddsCurve is a line of such a figure.
type OddsCurve struct {
	Name    string    `json:"name"` // K=2
	Success []float64 `json:"success"`
	// Paper holds what the thesis takes for it: below 0 or above 1 no probability; nil: the same.
	Paper []float64 `json:"paper,omitempty"`
}

// oddsSteps are the parts into which the axes are cut.
const oddsSteps = 20

// oddsOf is the probability of success with so many copies, resources or tries, and what the
// thesis takes for it.
type oddsOf func(many int64, x float64) (success, paper float64, err error)

// WorkOut answers.
func (o Odds) WorkOut() (OddsResult, error) {
	if o.Resources < 1 {
		return OddsResult{}, fmt.Errorf("%w: --resources: want at least 1, have %d",
			ErrUsage, o.Resources)
	}
	var r OddsResult
	for i := range oddsSteps + 1 {
		r.Over = append(r.Over, float64(i)/oddsSteps)
	}
	var err1, err2, err3 error
	r.Copies, err1 = oddsCurves("K", []int64{1, 2, 3, 4}, r.Over, oddsOfCopies)
	r.Once, err2 = oddsCurves("k", []int64{2, 4, 8, 16}, r.Over,
		func(resources int64, x float64) (success, paper float64, err error) {
			return oddsOfTries(resources, 1, x)
		})
	r.Tries, err3 = oddsCurves("R", []int64{1, 2, 4}, r.Over,
		func(tries int64, x float64) (success, paper float64, err error) {
			return oddsOfTries(o.Resources, tries, x)
		})
	return r, errors.Join(err1, err2, err3)
}

func oddsCurves(letter string, values []int64, over []float64, of oddsOf) ([]OddsCurve, error) {
	var curves []OddsCurve
	for _, many := range values {
		c := OddsCurve{Name: fmt.Sprintf("%s=%d", letter, many)}
		same := true
		for _, x := range over {
			success, paper, err := of(many, x)
			if err != nil {
				return nil, err
			}
			c.Success, c.Paper = append(c.Success, success), append(c.Paper, paper)
			same = same && math.Abs(success-paper) < 1e-12 // that much is rounding
		}
		if same {
			c.Paper = nil
		}
		curves = append(curves, c)
	}
	return curves, nil
}

func oddsOfCopies(copies int64, availability float64) (success, paper float64, err error) {
	r, err := metrics.Replicate(metrics.Replication{Availability: availability, Copies: copies})
	return r.Success, r.PaperSuccess, err
}

func oddsOfTries(resources, tries int64, errorRate float64) (success, paper float64, err error) {
	p, err := metrics.Predict(metrics.Prediction{
		ErrorRate: errorRate, Resources: resources, Attempts: tries,
	})
	return p.Success, p.PaperSuccess, err
}
