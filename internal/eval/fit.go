package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// FitEvents fits laws to the times up and down of real machines.
type FitEvents struct {
	Events string // an event_trace of the Failure Trace Archive, packed or not
	Nodes  string // only those whose names begin so; empty = all
}

// FittedLaw is a law with how likely it makes what was seen.
type FittedLaw struct {
	ScaleH        float64 `json:"scale_h"` // hours
	Shape         float64 `json:"shape"`
	LogLikelihood float64 `json:"log_likelihood"` // mean of ln of the density by hours
}

// FittedTimes are what came of the times up, or down.
type FittedTimes struct {
	Spells    int       `json:"spells"`
	MeanH     float64   `json:"mean_h"`   // hours
	MedianH   float64   `json:"median_h"` // hours
	Weibull   FittedLaw `json:"weibull"`
	LogNormal FittedLaw `json:"lognormal"`
	Best      string    `json:"best"` // the law of the greater likelihood
}

// FitResult is the outcome of a fit.
type FitResult struct {
	Nodes        int         `json:"nodes"`
	Availability float64     `json:"availability"` // the share of time up
	Up           FittedTimes `json:"up"`
	Down         FittedTimes `json:"down"`
}

// Run reads the events and fits the laws.
func (f FitEvents) Run() (FitResult, error) {
	if f.Events == "" {
		return FitResult{}, fmt.Errorf("%w: --events: name an event_trace of the Failure Trace Archive",
			ErrUsage)
	}
	all, err := readEvents(f.Events)
	if err != nil {
		return FitResult{}, err
	}
	var r FitResult
	var ups, downs []float64
	for _, node := range all {
		if strings.HasPrefix(node.Name, f.Nodes) {
			r.Nodes++
			ups = append(ups, hours(node.Durations(true))...)
			downs = append(downs, hours(node.Durations(false))...)
		}
	}
	if r.Nodes == 0 {
		return r, fmt.Errorf("%w: --nodes: of %d nodes in %s no name begins with %q",
			ErrUsage, len(all), f.Events, f.Nodes)
	}
	if r.Up, err = fitted(ups); err != nil {
		return r, fmt.Errorf("%s: times up: %w", f.Events, err)
	}
	if r.Down, err = fitted(downs); err != nil {
		return r, fmt.Errorf("%s: times down: %w", f.Events, err)
	}
	r.Availability = sum(ups) / (sum(ups) + sum(downs))
	return r, nil
}

func fitted(durations []float64) (FittedTimes, error) {
	t := FittedTimes{Spells: len(durations)}
	for _, one := range []struct {
		name string
		into *FittedLaw
	}{{workload.Weibull, &t.Weibull}, {workload.LogNormal, &t.LogNormal}} {
		law, err := workload.Fit(one.name, durations)
		if err != nil {
			return t, err
		}
		*one.into = FittedLaw{law.Scale, law.Shape, law.LogLikelihood(durations)}
	}
	t.Best = workload.Weibull
	if t.LogNormal.LogLikelihood > t.Weibull.LogLikelihood {
		t.Best = workload.LogNormal
	}
	t.MeanH = sum(durations) / float64(len(durations))
	t.MedianH = slices.Sorted(slices.Values(durations))[len(durations)/2]
	return t, nil
}

func hours(seconds []float64) []float64 {
	for i := range seconds {
		seconds[i] /= 3600
	}
	return seconds
}

func sum(numbers []float64) (total float64) {
	for _, x := range numbers {
		total += x
	}
	return total
}
