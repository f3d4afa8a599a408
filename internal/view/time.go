package view

import (
	"fmt"
	"math"
	"time"
)

// Time is a moment that is written as RFC 3339 in UTC whatever zone it came in.
type Time struct{ time.Time }

// At wraps a moment.
func At(t time.Time) Time { return Time{Time: t} }

// MarshalJSON writes the moment in UTC.
func (t Time) MarshalJSON() ([]byte, error) {
	text, err := t.UTC().MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write time: %w", err)
	}
	return text, nil
}

// Clock is the moment on the clock of now, with the day where that is not today; empty if there is
// none.
func (t Time) Clock(now time.Time) string {
	if t.IsZero() {
		return ""
	}
	at := t.In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// Duration is the number of seconds as a duration, rounded to nanoseconds and
// held within what a duration can say; what is no number is 0.
func Duration(seconds float64) time.Duration {
	nanos := math.Round(seconds * 1e9)
	switch {
	case math.IsNaN(nanos):
		return 0
	case nanos >= math.MaxInt64:
		return math.MaxInt64
	case nanos <= math.MinInt64:
		return math.MinInt64
	default:
		return time.Duration(nanos)
	}
}
