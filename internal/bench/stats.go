package main

import (
	"slices"
	"time"
)

// sample is a series of durations.
type sample []time.Duration

// summary describes a series, in its own unit.
type summary struct {
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	N   int     `json:"n"`
}

// in sums the series up in a unit.
func (s sample) in(unit time.Duration) summary {
	sorted := slices.Sorted(slices.Values(s))
	if len(sorted) == 0 {
		return summary{}
	}
	at := func(q float64) float64 {
		return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]) / float64(unit)
	}
	return summary{Min: at(0), P50: at(0.5), P95: at(0.95), N: len(sorted)}
}

// timed runs do and adds to a series how long it took, unless it failed.
func timed(s *sample, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	*s = append(*s, time.Since(began))
	return nil
}

// rates turns the durations of count operations into operations per second; the
// lowest rate comes from the longest duration.
func (s sample) rates(count int) summary {
	per := make([]float64, 0, len(s))
	for _, d := range s {
		if d > 0 {
			per = append(per, float64(count)/d.Seconds())
		}
	}
	slices.Sort(per)
	if len(per) == 0 {
		return summary{}
	}
	return summary{Min: per[0], P50: per[len(per)/2], P95: per[len(per)*95/100], N: len(per)}
}
