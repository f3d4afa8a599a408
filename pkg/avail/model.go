package avail

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Model holds what a site has learned of its own availability: how often it crashes, when
// it is switched off or wanted back, and what its owner has announced. Fit makes one. It
// is small, so that it can be journalled.
type Model struct {
	Crash  Hazard   `json:"crash"`            // by age since it came up
	Leave  Hazard   `json:"leave"`            // by age since it became available
	Closed []Window `json:"closed,omitempty"` // when the owner has announced to want it back
	// Through is the probability to stay available although such a time begins.
	Through float64 `json:"through,omitempty"`
	// Zone is by how many seconds local clocks are ahead of the UTC that Query.Week is made
	// from.
	Zone int `json:"zone"`

	Days     float64 `json:"days"`      // of being available that were seen
	Crashes  int     `json:"crashes"`   // that were seen
	Leaves   int     `json:"leaves"`    // that were seen
	DownMean float64 `json:"down_mean"` // seconds; 0 = never seen down
	// Week is the share of each of the 168 hours in which it was available; empty = unknown.
	Week []float64 `json:"week,omitempty"`
}

// Priors is the belief before anything was seen.
type Priors struct {
	Crash, Leave Prior
}

// DefaultPriors are a crash a week and a departure after eight hours. They are worth
// little, a third of an end each: a machine of which nothing is known may be a laptop or
// a server, and a server that has been up for a month is to be believed that.
func DefaultPriors() Priors {
	const hour, worth = 3600.0, 0.3
	return Priors{
		Crash: Prior{Failures: worth, Exposure: worth * WeekSeconds},
		Leave: Prior{Failures: worth, Exposure: worth * 8 * hour},
	}
}

// halfLife is the age, in seconds, at which an observation counts half: habits change.
const halfLife = 180 * 24 * 3600.0

// closingSlack limits how far from an announced time, in seconds, a departure may be to count
// as that one.
const closingSlack = 1800.0

// Promise is the belief about announcements before any was seen kept or broken: as if two
// had been seen, of which a twentieth did not come true.
const (
	promiseWorth  = 2.0
	promiseBroken = 0.05
)

// Fit learns a site's model from its history. Without history it is the priors. closed
// are the times that the owner has announced not to give the site, zone its distance
// from UTC in seconds.
func Fit(h History, priors Priors, closed []Window, zone int) (Model, error) {
	errs := []error{checkHistory(h), priors.Crash.Validate(), priors.Leave.Validate()}
	for _, w := range closed {
		errs = append(errs, w.Validate())
	}
	if zone < -maxZone || zone > maxZone {
		errs = append(errs, fmt.Errorf("%w: zone: want at most %d s, have %d",
			argument.ErrInvalid, maxZone, zone))
	}
	if err := errors.Join(errs...); err != nil {
		return Model{}, err
	}
	m := Model{Closed: closed, Zone: zone, Week: presence(h)}
	crash, leave := make([]life, 0, len(h.Spans)), make([]life, 0, len(h.Spans))
	stayed, began := 0.0, 0.0
	for _, s := range h.Spans[max(len(h.Spans)-maxSpans, 0):] {
		age, length := min(s.Age, maxSeconds), min(s.Seconds, maxSeconds)
		passed, kept := m.closings(s.Week, length, s.End == EndLeft)
		stayed, began = stayed+float64(passed), began+float64(passed)
		if kept {
			began++ // the announcement explains it, the profile need not
		}
		weight := math.Exp2(-s.Ago / halfLife)
		crash = append(crash,
			life{week: s.Week, age: age, length: length, weight: weight, ended: s.End == EndCrash})
		leave = append(leave,
			life{week: s.Week, length: length, weight: weight, ended: s.End == EndLeft && !kept})
		m.count(s.End, length)
	}
	if len(closed) > 0 {
		m.Through = (promiseBroken*promiseWorth + stayed) / (promiseWorth + began)
	}
	m.Crash, m.Leave = fitHazard(priors.Crash, crash), fitHazard(priors.Leave, leave)
	for _, d := range h.Downs {
		m.DownMean += min(d, maxSeconds) / float64(len(h.Downs))
	}
	return m, m.Validate()
}

func (m *Model) count(end Ending, seconds float64) {
	m.Days += seconds / (24 * 3600)
	switch end {
	case EndCrash:
		m.Crashes++
	case EndLeft:
		m.Leaves++
	case EndOpen:
	}
}

// closings returns how many announced times began and passed while a span lasted, and
// whether its end was one of them.
func (m *Model) closings(week, length float64, left bool) (passed int, kept bool) {
	if week < 0 {
		return 0, false
	}
	for _, w := range m.Closed {
		for at := ahead(week, w.From); at <= length+closingSlack; at += WeekSeconds {
			switch {
			case at <= length-closingSlack:
				passed++
			case left:
				kept = true
			}
		}
	}
	return passed, kept
}

// ahead returns how many seconds after one second of the week another comes, above 0.
func ahead(from, to float64) float64 {
	if d := to - from; d > 0 {
		return d
	}
	return to - from + WeekSeconds
}

// presence is the share of each hour of the week in which the site was available, of
// the time between the first and the last that is known. Hours seen once or twice are
// drawn towards the mean.
func presence(h History) []float64 {
	var up [weekHours]float64
	seconds := 0.0
	for _, s := range h.Spans {
		if s.Week < 0 {
			continue
		}
		length := min(s.Seconds, maxSeconds)
		seconds += length
		whole := math.Floor(length / WeekSeconds)
		for i := range up {
			up[i] += whole * 3600
		}
		walk(s.Week, length-whole*WeekSeconds, func(slot int, from, to float64) {
			up[slot*int(slotSeconds)/3600] += to - from
		})
	}
	all := seconds
	for _, d := range h.Downs {
		all += min(d, maxSeconds)
	}
	if seconds < resolution {
		return nil
	}
	weeks, mean := all/WeekSeconds, min(seconds/all, 1)
	week := make([]float64, weekHours)
	for i := range week {
		week[i] = rounded(min((mean*3600+up[i])/(3600+weeks*3600), 1))
	}
	return week
}

// Query asks whether a site that is available stays so.
type Query struct {
	Week float64 // local second of the week now; negative = unknown
	Up   float64 // seconds since the site came up
	Free float64 // seconds since it became available
	For  float64 // seconds that it shall stay available
}

func (q Query) check() (Query, error) {
	if math.IsNaN(q.Week) || q.Week >= WeekSeconds {
		return q, fmt.Errorf("%w: second of the week: want less than %v, have %v",
			argument.ErrInvalid, WeekSeconds, q.Week)
	}
	err := errors.Join(argument.Amount("time up", q.Up),
		argument.Amount("time available", q.Free), argument.Amount("time asked for", q.For))
	q.Up, q.Free = min(q.Up, maxSeconds), min(q.Free, maxSeconds)
	return q, err
}

// Survival is the probability, 0 to 1, that the site stays available for q.For seconds
// more: it does not crash, is not switched off or wanted back, and no announced time
// begins. z of an offer is 1 minus it. It never rises with q.For, is 1 for 0 and 0 for
// infinity.
func (m *Model) Survival(q Query) (float64, error) {
	q, err := q.check()
	if err != nil {
		return 0, err
	}
	if q.For > maxSeconds {
		return 0, nil
	}
	log := m.Crash.logSurvival(q.Week, q.Up, q.For) + m.Leave.logSurvival(q.Week, q.Free, q.For)
	return math.Exp(log) * m.announced(q), nil
}

// announced is the probability that no announced time ends the site's being available.
func (m *Model) announced(q Query) float64 {
	if q.Week < 0 {
		return 1
	}
	p := 1.0
	for _, w := range m.Closed {
		if first := ahead(q.Week, w.From); first <= q.For {
			p *= math.Pow(m.Through, 1+math.Floor((q.For-first)/WeekSeconds))
		}
	}
	return p
}

// Sureness tells how well founded a probability is.
type Sureness struct {
	// Low and High enclose the true probability in nine cases of ten, if the model is right.
	Low, High float64
	Days      float64 // of being available that were seen
	Ends      int     // crashes and departures that were seen
}

// Words is the sureness for people.
func (s Sureness) Words() string {
	switch width := s.High - s.Low; {
	case s.Days < 1 && s.Ends == 0:
		return "a guess"
	case width > 0.3:
		return "unsure"
	case width > 0.1:
		return "fairly sure"
	default:
		return "sure"
	}
}

// Sure returns how well founded Survival's answer is: the belief about how many ends are
// to be expected, taken as a Gamma distribution.
func (m *Model) Sure(q Query) (Sureness, error) {
	s := Sureness{Days: m.Days, Ends: m.Crashes + m.Leaves}
	q, err := q.check()
	if err != nil || q.For > maxSeconds {
		return s, err
	}
	crashes, spreadC := m.Crash.spread(q.Week, q.Up, q.For)
	leaves, spreadL := m.Leave.spread(q.Week, q.Free, q.For)
	mean, variance := crashes+leaves, spreadC+spreadL
	p := m.announced(q)
	s.Low = math.Exp(-gammaQuantile(mean, variance, 1.6449)) * p
	s.High = math.Exp(-gammaQuantile(mean, variance, -1.6449)) * p
	return s, nil
}

// gammaQuantile is the quantile of a Gamma distribution at a standard normal score, by
// Wilson and Hilferty's cube.
func gammaQuantile(mean, variance, score float64) float64 {
	if !(mean > 0 && variance > 0) {
		return max(mean, 0)
	}
	// Of a mean as small as 1e-160 the square is no number above 0; the deviation's share is.
	deviation := math.Sqrt(variance) / mean
	root := max(1-deviation*deviation/9+score*deviation/3, 0)
	return mean * root * root * root
}

// Validate reports a model that was not made by Fit.
func (m *Model) Validate() error {
	errs := []error{
		m.Crash.Validate(), m.Leave.Validate(), argument.Probability("announced time ignored", m.Through),
	}
	for _, w := range m.Closed {
		errs = append(errs, w.Validate())
	}
	for _, v := range []float64{m.Days, m.DownMean} {
		if !(v >= 0) || math.IsInf(v, 1) {
			errs = append(errs, fmt.Errorf("%w: model: want finite numbers of at least 0, have %v",
				argument.ErrInvalid, v))
		}
	}
	if m.Zone < -maxZone || m.Zone > maxZone {
		errs = append(errs, fmt.Errorf("%w: zone: want at most %d s, have %d",
			argument.ErrInvalid, maxZone, m.Zone))
	}
	if len(m.Week) != 0 && len(m.Week) != weekHours {
		errs = append(errs, fmt.Errorf("%w: week: want %d hours, have %d",
			argument.ErrInvalid, weekHours, len(m.Week)))
	}
	return errors.Join(append(errs, probabilities(m.Week))...)
}
