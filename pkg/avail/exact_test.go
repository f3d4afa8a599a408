package avail

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// NAA takes those that are up and likeliest to stay so, ties by site, and says whether there
// are enough.
func TestNAATakesTheLikeliest(t *testing.T) {
	nodes := []Standing{
		{"d", true, 0.5}, {"b", true, 0.9}, {"down", false, 1}, {"c", true, 0.9}, {"a", true, 0.1},
	}
	order := []grid.SiteID{"b", "c", "d", "a"}
	for need := range len(order) + 2 {
		got, enough, err := NAA(nodes, need)
		if err != nil || enough != (need <= len(order)) {
			t.Errorf("NAA of %d = %t, %v", need, enough, err)
		}
		if want := order[:min(need, len(order))]; enough && !slices.Equal(got, want) ||
			!enough && got != nil {
			t.Errorf("NAA of %d = %v, want %v", need, got, want)
		}
	}
	if got, enough, err := NAA([]Standing{{"a", false, 2}}, 0); got != nil || enough ||
		!errors.Is(err, argument.ErrInvalid) {
		t.Errorf("NAA with nonsense = %v, %t, %v", got, enough, err)
	}
}

// An announced time counts each time that it comes, and not at all where the time of the week
// is unknown.
func TestAnAnnouncedTimeCountsEachWeek(t *testing.T) {
	evening := Window{From: 18 * hour, To: 24 * hour}
	m := mustFit(t, History{}, evening)
	m.Through = 0.5
	open := m
	open.Closed = nil
	for _, c := range []struct {
		week, length float64
		times        float64
	}{
		{9 * hour, 9*hour - 1, 0},
		{9 * hour, 9 * hour, 1},
		{9 * hour, 9*hour + WeekSeconds - 1, 1},
		{9 * hour, 9*hour + WeekSeconds, 2},
		{9 * hour, 9*hour + 3*WeekSeconds, 4},
		{-1, 9*hour + 3*WeekSeconds, 0},
	} {
		q := Query{Week: c.week, For: c.length}
		with, without := survival(t, m, q), survival(t, open, q)
		if want := without * math.Pow(m.Through, c.times); !near(with, want) {
			t.Errorf("%+v: %v, want %v: %v announced times", q, with, want, c.times)
		}
	}
}

// Spans of which the time of the week is unknown say nothing of the week.
func TestPresenceIsOfKnownWeeks(t *testing.T) {
	known := Span{Week: 9 * hour, Seconds: 2 * hour, End: EndLeft}
	want := presence(History{Spans: []Span{known}})
	unknown := Span{Week: -1, Seconds: 30 * hour, End: EndLeft}
	if got := presence(History{Spans: []Span{unknown, known, unknown}}); !slices.Equal(got, want) {
		t.Errorf("presence = %v, want %v", got, want)
	}
	if got := presence(History{Spans: []Span{unknown}}); got != nil {
		t.Errorf("presence of unknown weeks = %v, want none", got)
	}
}

// What was learned of a quarter of an hour is worth what it took to learn it: more where ends
// were seen than where they were not, and never as much as what is certain.
func TestWhatWasLearnedHasAWorth(t *testing.T) {
	p := mustFit(t, office(8)).Leave.Profile
	if p == nil {
		t.Fatal("no profile")
	}
	evening, night := slotOf(24*hour+17*hour), slotOf(24*hour+3*hour)
	least, most := slices.Min(p.Worth), slices.Max(p.Worth)
	if least <= 0 || most >= unknownWorth || p.Worth[evening] <= p.Worth[night] {
		t.Errorf("worth %v to %v, at five %v, at night %v",
			least, most, p.Worth[evening], p.Worth[night])
	}
}

// A profile is kept with four digits: it has hundreds of numbers, and no more is known of any.
func TestAProfileHasFourDigits(t *testing.T) {
	p := mustFit(t, office(8)).Leave.Profile
	for i := range p.Times {
		if p.Times[i] != rounded(p.Times[i]) || p.Worth[i] != rounded(p.Worth[i]) {
			t.Fatalf("quarter %d: factor %v, worth %v", i, p.Times[i], p.Worth[i])
		}
	}
	for v, want := range map[float64]float64{
		0: 0, 1: 1, 1.23449: 1.234, 123.456: 123.5, 0.00123456: 0.001235, 98765: 98770,
	} {
		if got := rounded(v); math.Abs(got-want) > 1e-12*want {
			t.Errorf("%v is rounded to %v, want %v", v, got, want)
		}
	}
}

func TestQuartersOfTheWeek(t *testing.T) {
	for second, want := range map[float64]int{
		0: 0, slotSeconds - 1: 0, slotSeconds: 1, WeekSeconds - slotSeconds - 1: slots - 2,
		WeekSeconds - slotSeconds: slots - 1, WeekSeconds - 1: slots - 1, WeekSeconds: slots - 1,
	} {
		if got := slotOf(second); got != want {
			t.Errorf("second %v is in quarter %d, want %d", second, got, want)
		}
	}
}

// u (t/u)^k, which is the age itself for k = 1.
func TestOperationalTime(t *testing.T) {
	for _, shape := range []float64{0.5, 1, 2, 3} {
		h := Hazard{Shape: shape, Unit: 100}
		for _, age := range []float64{0, 25, 100, 400} {
			if got, want := h.operational(age), 100*math.Pow(age/100, shape); !near(got, want) {
				t.Errorf("k = %v: %v s are %v, want %v", shape, age, got, want)
			}
		}
	}
}

// The limits of a profile: the last that is taken, and the first that is not.
func TestLimitsOfAProfile(t *testing.T) {
	valid := func(change func(*Profile)) *Profile {
		p := &Profile{Times: make([]float64, slots), Worth: slices.Repeat([]float64{1}, slots)}
		change(p)
		return p
	}
	for name, c := range map[string]struct{ last, first func(*Profile) }{
		"factor": {
			func(p *Profile) { p.Factor = 0 }, func(p *Profile) { p.Factor = -math.SmallestNonzeroFloat64 },
		},
		"large factor": {
			func(p *Profile) { p.Factor = 1e12 }, func(p *Profile) { p.Factor = math.Nextafter(1e12, 2e12) },
		},
		"times": {func(p *Profile) { p.Times[7] = 0 }, func(p *Profile) { p.Times[7] = -1e-300 }},
		"many times": {
			func(p *Profile) { p.Times[7] = 1e12 }, func(p *Profile) { p.Times[7] = math.Inf(1) },
		},
		"worth": {func(p *Profile) { p.Worth[7] = 1e-300 }, func(p *Profile) { p.Worth[7] = 0 }},
		"large worth": {
			func(p *Profile) { p.Worth[7] = 1e12 }, func(p *Profile) { p.Worth[7] = math.NaN() },
		},
		"number of times": {func(*Profile) {}, func(p *Profile) { p.Times = p.Times[1:] }},
		"number of worth": {func(*Profile) {}, func(p *Profile) { p.Worth = p.Worth[1:] }},
	} {
		if err := valid(c.last).validate(); err != nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if err := valid(c.first).validate(); !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%s: the first that is not: %v", name, err)
		}
	}
}

// Equations (5) and (9) sum over age + tau - 1 steps, and over no more than can be counted.
func TestPrintedSumsCountAgeAndFuture(t *testing.T) {
	const lambda = 0.01
	for _, c := range []struct{ age, tau, steps int64 }{
		{5, 3, 7}, {0, 0, 0}, {0, 1, 0}, {1, 0, 0}, {math.MaxInt64, 1, math.MaxInt64},
	} {
		paper, _, err := NodeUp(lambda, 0, c.age, c.tau)
		want, errSum := FailureSum(lambda, min(c.steps, 1<<20))
		if c.steps > 1<<20 {
			want, errSum = FailureSumClosed(lambda, c.steps)
		}
		if err != nil || errSum != nil || !near(1-paper, want) {
			t.Errorf("age %d, %d more: %v, %v, want %v", c.age, c.tau, 1-paper, err, want)
		}
	}
}

// The table of the chi-squared distribution with 20 degrees of freedom: twice a Gamma of
// shape 10.
func TestGammaQuantilesAreThoseOfTheTable(t *testing.T) {
	for score, want := range map[float64]float64{1.6449: 31.410 / 2, -1.6449: 10.851 / 2} {
		if got := gammaQuantile(10, 10, score); math.Abs(got/want-1) > 1e-3 {
			t.Errorf("at %v: %v, want %v", score, got, want)
		}
	}
}

// A prior at another lifetime is worth as many failures, and fails once in it.
func TestAPriorAtALifetime(t *testing.T) {
	fitted := Hazard{Shape: 1, Unit: 1, Failures: 2, Exposure: 20_000}
	got := Prior{Failures: 0.5}.atLifetime(fitted)
	if want := (Hazard{Shape: 1, Unit: 10_000, Failures: 0.5, Exposure: 5_000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
