package workload

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	halfHours       = 48     // in a day
	halfHour        = 1800.0 // seconds
	dayBegins       = 10     // the half hour with which the law of the day begins: five in the morning
	longestGapLn    = 13     // ln of the longest gap in seconds of a mean half hour
	firstOfGammaDay = 0.5    // that half hour stands this far, and ten half hours, from 0 of the law
)

// arrivals are instants whose density follows the day: gaps are drawn as if all half hours
// were alike, and are used up sooner in busy ones.
type arrivals struct {
	gaps    distuv.Rander
	weights [halfHours]float64 // of each half hour of the day; their mean is 1
	bucket  int                // half hours since the first midnight
	points  float64            // of this half hour's weight that are used up
	at      float64            // seconds since the first midnight
}

func newArrivals(gaps, day distuv.Gamma) *arrivals {
	a := &arrivals{gaps: gaps}
	total := 0.0
	for i := range halfHours {
		from := dayBegins + firstOfGammaDay + float64(i)
		weight := day.CDF(from+1) - day.CDF(from)
		a.weights[(dayBegins+i)%halfHours] = weight
		total += weight
	}
	for i := range a.weights {
		a.weights[i] *= halfHours / total
	}
	return a
}

// advance goes on to the next arrival. The instant follows from the half hour and its
// fraction, so that no error adds up and the day stays where it is.
func (a *arrivals) advance() {
	a.points += math.Exp(drawAtMost(a.gaps, longestGapLn)) / halfHour
	for a.points > a.weight() {
		a.points -= a.weight()
		a.bucket++
	}
	a.at = halfHour * (float64(a.bucket) + a.points/a.weight())
}

func (a *arrivals) weight() float64 { return a.weights[a.bucket%halfHours] }
