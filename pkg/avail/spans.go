package avail

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// The clock of a week: seconds of local time since Monday, 00:00.
const (
	WeekSeconds = 7 * 24 * 3600.0 // length of a week

	slotSeconds = 900.0                          // the profile's resolution
	slots       = int(WeekSeconds / slotSeconds) // 672 quarters of an hour
	daySlots    = int(24 * 3600.0 / slotSeconds) // 96
	weekHours   = int(WeekSeconds / 3600)        // 168
	workdays    = 5                              // Monday to Friday; the rest is the weekend
	// classes counts the quarters of a working day, then those of a day of the weekend.
	classes     = 2 * daySlots
	resolution  = 60.0                     // seconds: ends are known within one minute
	maxSeconds  = 100 * 365.25 * 24 * 3600 // longer spans and ages count as a century
	epochToWeek = 3 * 24 * 3600            // 1970 began on a Thursday
	maxZone     = 7 * 24 * 3600            // the week is a circle
)

// maxSpans bounds a History: two years of ten spans a day.
const maxSpans = 8192

// WeekSecond is the second of the week at t for a place whose clocks are zone seconds
// ahead of UTC.
func WeekSecond(t time.Time, zone int) float64 {
	second := math.Mod(float64(t.Unix()+int64(zone)+epochToWeek), WeekSeconds)
	if second < 0 {
		second += WeekSeconds
	}
	return second
}

// Ending says how a span of being available ended.
type Ending uint8

// The endings.
const (
	EndOpen  Ending = iota // it has not ended, or its end is unknown
	EndCrash               // the site or its agent died
	EndLeft                // in order: switched off, suspended, or wanted back by its owner
)

// Span is a time during which a site was available without a break.
type Span struct {
	// Week is the local second of the week at its start, 0 to WeekSeconds; negative = the clock
	// was wrong.
	Week    float64
	Age     float64 // seconds since the site had come up, at its start
	Seconds float64 // length
	Ago     float64 // seconds since it ended; the longer, the less it counts
	End     Ending
}

// Validate reports a field that is out of its range.
func (s Span) Validate() error {
	if math.IsNaN(s.Week) || s.Week >= WeekSeconds || s.End > EndLeft {
		return fmt.Errorf("%w: span: want a second of the week and a known ending, have %v",
			argument.ErrInvalid, s)
	}
	return errors.Join(argument.Amount("age of a span", s.Age),
		argument.Amount("length of a span", s.Seconds), argument.Amount("time since a span", s.Ago))
}

// History holds what is known of a site's past. The order does not matter.
type History struct {
	Spans []Span    // at most maxSpans count, the last ones
	Downs []float64 // seconds of each time down whose length is known
}

// Window is a part of the week, from one local second of it to another. One whose end
// is before its start goes over Sunday midnight.
type Window struct {
	From, To float64 // 0 to WeekSeconds
}

// Contains reports whether a second of the week is in the window.
func (w Window) Contains(week float64) bool {
	if w.From <= w.To {
		return week >= w.From && week < w.To
	}
	return week >= w.From || week < w.To
}

// Validate reports bounds outside of the week.
func (w Window) Validate() error {
	for _, v := range []float64{w.From, w.To} {
		if !(v >= 0 && v <= WeekSeconds) {
			return fmt.Errorf("%w: window: want seconds of a week, 0 to %v, have %v",
				argument.ErrInvalid, WeekSeconds, v)
		}
	}
	return nil
}

// walk cuts a time into the quarters of an hour that it goes through. from and to count
// from its start.
func walk(week, seconds float64, visit func(slot int, from, to float64)) {
	slot := slotOf(week)
	next := float64(slot+1)*slotSeconds - week
	for from := 0.0; from < seconds; {
		to := min(next, seconds)
		visit(slot, from, to)
		from, next = to, next+slotSeconds
		if slot++; slot == slots {
			slot = 0
		}
	}
}

// slotOf is the quarter of the week that a second of it is in.
func slotOf(week float64) int { return min(int(week/slotSeconds), slots-1) }

// classOf is the quarter of a working day, or of a day of the weekend, that a quarter of
// the week is.
func classOf(slot int) int {
	quarter := slot % daySlots
	if slot/daySlots < workdays {
		return quarter
	}
	return daySlots + quarter
}
