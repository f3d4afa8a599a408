package avail

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// limit is the last value of something that is taken, and the first that is not.
type limit struct{ last, first error }

// below and above are the neighbours of a number.
func below(v float64) float64 { return math.Nextafter(v, math.Inf(-1)) }
func above(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }

// TestEachLimitIsExact knows the last value that is taken and the first that is not.
func TestEachLimitIsExact(t *testing.T) {
	for _, table := range []map[string]limit{
		limitsOfHazards(), limitsOfModels(), limitsOfPasts(), limitsOfQueries(), limitsOfPapers(),
	} {
		for name, c := range table {
			if c.last != nil {
				t.Errorf("%s: the last that is taken: %v", name, c.last)
			}
			if !errors.Is(c.first, argument.ErrInvalid) {
				t.Errorf("%s: the first that is not: %v", name, c.first)
			}
		}
	}
}

func limitsOfHazards() map[string]limit {
	of := func(field func(*Hazard) *float64, last, first float64) limit {
		with := func(v float64) error {
			h := Hazard{Shape: 1, Unit: 1, Failures: 1, Exposure: 1}
			*field(&h) = v
			return h.Validate()
		}
		return limit{with(last), with(first)}
	}
	shape := func(h *Hazard) *float64 { return &h.Shape }
	unit := func(h *Hazard) *float64 { return &h.Unit }
	failures := func(h *Hazard) *float64 { return &h.Failures }
	exposure := func(h *Hazard) *float64 { return &h.Exposure }
	return map[string]limit{
		"least shape":       of(shape, minShape, below(minShape)),
		"greatest shape":    of(shape, maxShape, above(maxShape)),
		"least unit":        of(unit, 1, below(1)),
		"greatest unit":     of(unit, maxSeconds, above(maxSeconds)),
		"least failures":    of(failures, above(0), 0),
		"greatest failures": of(failures, math.MaxFloat64, math.Inf(1)),
		"least exposure":    of(exposure, above(0), 0),
		"greatest exposure": of(exposure, math.MaxFloat64, math.Inf(1)),
	}
}

func limitsOfModels() map[string]limit {
	of := func(last, first func(*Model)) limit {
		with := func(change func(*Model)) error {
			h := Hazard{Shape: 1, Unit: 1, Failures: 1, Exposure: 1}
			m := Model{Crash: h, Leave: h}
			change(&m)
			return m.Validate()
		}
		return limit{with(last), with(first)}
	}
	hours := func(n int, v float64) func(*Model) {
		return func(m *Model) { m.Week = slices.Repeat([]float64{v}, n) }
	}
	number := func(field func(*Model) *float64, v float64) func(*Model) {
		return func(m *Model) { *field(m) = v }
	}
	zone := func(z int) func(*Model) { return func(m *Model) { m.Zone = z } }
	through := func(m *Model) *float64 { return &m.Through }
	days := func(m *Model) *float64 { return &m.Days }
	down := func(m *Model) *float64 { return &m.DownMean }
	nothing := func(*Model) {}
	return map[string]limit{
		"zone, east":    of(zone(maxZone), zone(maxZone+1)),
		"zone, west":    of(zone(-maxZone), zone(-maxZone-1)),
		"through":       of(number(through, 1), number(through, above(1))),
		"no through":    of(number(through, 0), number(through, below(0))),
		"days":          of(number(days, math.MaxFloat64), number(days, math.Inf(1))),
		"no days":       of(number(days, 0), number(days, below(0))),
		"down":          of(number(down, math.MaxFloat64), number(down, math.Inf(1))),
		"never down":    of(number(down, 0), number(down, below(0))),
		"hours":         of(hours(weekHours, 1), hours(weekHours+1, 1)),
		"few hours":     of(hours(0, 1), hours(1, 1)),
		"share of hour": of(hours(weekHours, 1), hours(weekHours, above(1))),
		"crash":         of(nothing, func(m *Model) { m.Crash = Hazard{} }),
		"leave":         of(nothing, func(m *Model) { m.Leave = Hazard{} }),
		"closed": of(func(m *Model) { m.Closed = []Window{{}, {To: WeekSeconds}} },
			func(m *Model) { m.Closed = []Window{{}, {To: above(WeekSeconds)}} }),
		"closed from": of(func(m *Model) { m.Closed = []Window{{From: WeekSeconds}} },
			func(m *Model) { m.Closed = []Window{{From: below(0)}} }),
		"profile": of(nothing, func(m *Model) { m.Leave.Profile = &Profile{} }),
	}
}

func limitsOfPasts() map[string]limit {
	span := func(last, first Span) limit { return limit{last.Validate(), first.Validate()} }
	fit := func(h History, priors Priors, closed []Window, zone int) error {
		_, err := Fit(h, priors, closed, zone)
		return err
	}
	good, none := DefaultPriors(), History{}
	bad := good
	bad.Leave.Failures = 0
	return map[string]limit{
		"span's week":   span(Span{Week: below(WeekSeconds)}, Span{Week: WeekSeconds}),
		"span's ending": span(Span{End: EndLeft}, Span{End: EndLeft + 1}),
		"span's age":    span(Span{Age: 0}, Span{Age: below(0)}),
		"span's length": span(Span{Seconds: math.Inf(1)}, Span{Seconds: below(0)}),
		"span's ago":    span(Span{Ago: math.Inf(1)}, Span{Ago: below(0)}),
		"fit's zone, east": {
			fit(none, good, nil, maxZone), fit(none, good, nil, maxZone+1),
		},
		"fit's zone, west": {
			fit(none, good, nil, -maxZone), fit(none, good, nil, -maxZone-1),
		},
		"fit's window": {
			fit(none, good, []Window{{}}, 0), fit(none, good, []Window{{From: below(0)}}, 0),
		},
		"fit's leave": {fit(none, good, nil, 0), fit(none, bad, nil, 0)},
		"fit's crash": {fit(none, good, nil, 0), fit(none, Priors{Leave: good.Leave}, nil, 0)},
		"fit's downs": {
			fit(History{Downs: []float64{0}}, good, nil, 0),
			fit(History{Downs: []float64{below(0)}}, good, nil, 0),
		},
	}
}

func limitsOfQueries() map[string]limit {
	of := func(last, first Query) limit {
		_, e1 := last.check()
		_, e2 := first.check()
		return limit{e1, e2}
	}
	return map[string]limit{
		"query's week": of(Query{Week: below(WeekSeconds)}, Query{Week: WeekSeconds}),
		"query's up":   of(Query{Up: math.Inf(1)}, Query{Up: below(0)}),
		"query's free": of(Query{Free: math.Inf(1)}, Query{Free: below(0)}),
		"query's time": of(Query{For: math.Inf(1)}, Query{For: below(0)}),
	}
}

func limitsOfPapers() map[string]limit {
	sum := func(lambda float64, steps int64) error {
		_, err := FailureSum(lambda, steps)
		return err
	}
	closed := func(lambda float64, steps int64) error {
		_, err := FailureSumClosed(lambda, steps)
		return err
	}
	saa := func(request, total, alpha float64) error {
		_, err := SAA(request, total, alpha)
		return err
	}
	weight := func(w float64) error {
		_, err := MeanAvailability([]Cycle{{1, 1}, {1, 1}}, []float64{1, w})
		return err
	}
	forecast := func(tau int64, term float64) error {
		_, err := CapacityForecast(nil, nil, tau, term)
		return err
	}
	need := func(n int) error {
		_, _, err := NAA(nil, n)
		return err
	}
	inf := math.Inf(1)
	return map[string]limit{
		"steps of a sum":       {sum(1, maxSteps), sum(1, maxSteps+1)},
		"no steps":             {sum(1, 0), sum(1, -1)},
		"rate":                 {closed(math.MaxFloat64, 1), closed(inf, 1)},
		"no rate":              {closed(0, 1), closed(below(0), 1)},
		"request":              {saa(0, 1, 1), saa(below(0), 1, 1)},
		"all nodes":            {saa(1, 0, 1), saa(1, below(0), 1)},
		"alpha":                {saa(1, 1, 1), saa(1, 1, above(1))},
		"weight":               {weight(0), weight(below(0))},
		"infinite weight":      {weight(math.MaxFloat64), weight(inf)},
		"tau":                  {forecast(0, 0), forecast(-1, 0)},
		"error term":           {forecast(0, inf), forecast(0, math.NaN())},
		"need":                 {need(0), need(-1)},
		"infinite prior":       {Prior{1, math.MaxFloat64}.Validate(), Prior{1, inf}.Validate()},
		"infinite prior's end": {Prior{math.MaxFloat64, 1}.Validate(), Prior{inf, 1}.Validate()},
	}
}
