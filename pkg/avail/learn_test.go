package avail

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

const hour = 3600.0

func mustFit(t testing.TB, h History, closed ...Window) Model {
	t.Helper()
	m, err := Fit(h, DefaultPriors(), closed, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func survival(t testing.TB, m Model, q Query) float64 {
	t.Helper()
	p, err := m.Survival(q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// From the first minute a site says what the prior says, and that it is a guess.
func TestWithoutHistoryThePriorSpeaks(t *testing.T) {
	m := mustFit(t, History{})
	eight := survival(t, m, Query{For: 8 * hour})
	if eight < 0.5 || eight > 0.75 {
		t.Errorf("8 h = %v, want about 2 of 3", eight)
	}
	s, err := m.Sure(Query{For: 8 * hour})
	if err != nil || s.Words() != "a guess" || s.Low > eight || s.High < eight || s.High-s.Low < 0.3 {
		t.Errorf("sureness %+v (%s), %v", s, s.Words(), err)
	}
}

// weibull is a distribution of lifetimes, with a scale in seconds.
type weibull struct{ shape, scale float64 }

// survival is S(age + next)/S(age).
func (w weibull) survival(age, next float64) float64 {
	return math.Exp(math.Pow(age/w.scale, w.shape) - math.Pow((age+next)/w.scale, w.shape))
}

// crashes is a history of lifetimes, none with a known hour.
func crashes(rng *rand.Rand, w weibull, n int) History {
	h := History{}
	for range n {
		h.Spans = append(h.Spans,
			Span{Week: -1, Seconds: w.scale * math.Pow(rng.ExpFloat64(), 1/w.shape), End: EndCrash})
	}
	return h
}

// "default survival rises with age for Weibull shape < 1 and falls for > 1", with
// shapes that are learned.
func TestLearnedSurvivalFollowsAge(t *testing.T) {
	for _, c := range []struct {
		shape float64
		sign  float64 // of the change with age
	}{{0.5, 1}, {1, 0}, {3, -1}} {
		m := mustFit(t, crashes(rand.New(rand.NewPCG(1, 2)),
			weibull{shape: c.shape, scale: 20 * hour}, 300))
		if got := m.Crash.Shape; math.Abs(math.Log(got/c.shape)) > 0.15 {
			t.Errorf("shape %v: learned %v", c.shape, got)
		}
		last := survival(t, m, Query{Week: -1, For: 2 * hour})
		for _, age := range []float64{1, 5, 10, 20, 40} {
			p := survival(t, m, Query{Week: -1, Up: age * hour, For: 2 * hour})
			if change := p - last; change*c.sign < 0 || c.sign == 0 && change != 0 {
				t.Errorf("shape %v: from %v to %v at age %v h", c.shape, last, p, age)
			}
			last = p
		}
	}
}

// What is learned from many lifetimes agrees with their distribution.
func TestLearnedSurvivalIsTheTruth(t *testing.T) {
	for _, shape := range []float64{0.5, 0.7, 1, 2, 4} {
		w := weibull{shape: shape, scale: 20 * hour}
		m := mustFit(t, crashes(rand.New(rand.NewPCG(3, 4)), w, 2000))
		for _, q := range []Query{
			{For: hour}, {Up: 10 * hour, For: 5 * hour}, {Up: 30 * hour, For: 10 * hour},
		} {
			q.Week = -1
			want := w.survival(q.Up, q.For)
			if got := survival(t, m, q); math.Abs(got-want) > 0.03 {
				t.Errorf("shape %v, %+v: %v, want %v", shape, q, got, want)
			}
		}
	}
}

// office is weeks of an office machine: working days from nine to five.
func office(weeks int) History {
	h := History{}
	for w := range weeks {
		for d := range 5 {
			h.Spans = append(h.Spans, Span{
				Week: float64(d)*24*hour + 9*hour, Seconds: 8 * hour, End: EndLeft,
				Ago: float64(weeks-w) * WeekSeconds,
			})
		}
	}
	return h
}

func TestTheWeekIsLearned(t *testing.T) {
	m := mustFit(t, office(8))
	noon := survival(t, m, Query{Week: 24*hour + 9*hour, Free: 0, For: 7 * hour})
	past := survival(t, m, Query{Week: 24*hour + 16*hour, Up: 7 * hour, Free: 7 * hour, For: 2 * hour})
	if noon < 0.85 || past > 0.2 {
		t.Errorf("nine to four = %v, past five = %v", noon, past)
	}
	if m.Leaves != 40 || m.Crashes != 0 || math.Abs(m.Days-40.0/3) > 1e-9 {
		t.Errorf("counts %d, %d, %v", m.Leaves, m.Crashes, m.Days)
	}
	if noonHour, night := m.Week[12], m.Week[3]; noonHour < 0.8 || night > 0.35 {
		t.Errorf("available at noon %v, at night %v", noonHour, night)
	}
	s, err := m.Sure(Query{Week: 33 * hour, For: hour})
	if err != nil || s.Words() != "sure" || s.Ends != 40 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Ends at any hour make no profile of the week: no pattern is seen where none is.
func TestNoPatternIsSeenWhereNoneIs(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	found := 0
	for range 20 {
		h := History{}
		for range 60 {
			h.Spans = append(h.Spans,
				Span{Week: rng.Float64() * WeekSeconds, Seconds: rng.ExpFloat64() * 10 * hour, End: EndLeft})
		}
		if mustFit(t, h).Leave.Profile != nil {
			found++
		}
	}
	if found > 2 {
		t.Errorf("a profile in %d of 20 histories without one", found)
	}
}

func TestAnnouncedTimes(t *testing.T) {
	evening := Window{From: 18 * hour, To: 24 * hour} // Monday
	q := func(from, length float64) Query { return Query{Week: from * hour, For: length * hour} }
	m := mustFit(t, History{}, evening)
	if before, over := survival(t, m, q(9, 8)), survival(t, m, q(17, 2)); over > 0.06 || before < 0.5 {
		t.Errorf("before %v, over %v", before, over)
	}
	if inside := survival(t, m, q(19, 2)); inside < 0.75 {
		t.Errorf("inside %v: what began is not expected again", inside)
	}
	if next := survival(t, m, q(30, 7*24)); next > 0.06 {
		t.Errorf("over next week's %v", next)
	}
	// An owner who announces and never comes.
	h := History{}
	for w := range 30 {
		h.Spans = append(h.Spans,
			Span{Week: 0, Seconds: 6 * 24 * hour, End: EndOpen, Ago: float64(w) * WeekSeconds})
	}
	if ignored := mustFit(t, h, evening); ignored.Through < 0.9 {
		t.Errorf("30 announcements that came to nothing: %v", ignored.Through)
	}
}

func drawHistory(t *rapid.T) History {
	amounts := rapid.OneOf(rapid.Float64Range(0, 1e6),
		rapid.SampledFrom([]float64{0, 1e-300, 1, 59, 900, 1e9, 1e300, math.Inf(1), math.MaxFloat64}))
	span := rapid.Custom(func(t *rapid.T) Span {
		return Span{
			Week: rapid.OneOf(
				rapid.Float64Range(-1, math.Nextafter(WeekSeconds, 0)), rapid.Just(math.Inf(-1)),
			).Draw(t, "week"),
			Age: amounts.Draw(t, "age"), Seconds: amounts.Draw(t, "seconds"), Ago: amounts.Draw(t, "ago"),
			End: Ending(rapid.Uint8Max(2).Draw(t, "end")),
		}
	})
	return History{
		Spans: rapid.SliceOfN(span, 0, 12).Draw(t, "spans"),
		Downs: rapid.SliceOfN(amounts, 0, 5).Draw(t, "downs"),
	}
}

func drawWindows(t *rapid.T) []Window {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Window {
		edge := rapid.Float64Range(0, WeekSeconds)
		return Window{From: edge.Draw(t, "from"), To: edge.Draw(t, "to")}
	}), 0, 3).Draw(t, "closed")
}

func drawQuery(t *rapid.T) Query {
	amounts := rapid.OneOf(rapid.Float64Range(0, 3e6),
		rapid.SampledFrom([]float64{
			0, math.SmallestNonzeroFloat64, 1e-300, 1e-158, 1e12, math.MaxFloat64, math.Inf(1),
		}))
	return Query{
		Week: rapid.Float64Range(-1, math.Nextafter(WeekSeconds, 0)).Draw(t, "now"),
		Up:   amounts.Draw(t, "up"), Free: amounts.Draw(t, "free"), For: amounts.Draw(t, "for"),
	}
}

// Whatever the past was, the answer is a probability, falls with time, and is between
// what is said to be sure has a range.
func TestLearnedSurvivalKeepsToItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := Fit(drawHistory(t), DefaultPriors(), drawWindows(t),
			rapid.IntRange(-50_000, 50_000).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		if err = m.Validate(); err != nil {
			t.Fatal(err)
		}
		q := drawQuery(t)
		p, err := m.Survival(q)
		if err != nil || !(p >= 0 && p <= 1) {
			t.Fatalf("%+v: %v, %v", q, p, err)
		}
		longer := q
		longer.For = q.For * rapid.Float64Range(1, 3).Draw(t, "longer")
		if l, failed := m.Survival(longer); failed != nil || l > p*(1+1e-9) {
			t.Fatalf("%+v: %v, but %v for longer, %v", q, p, l, failed)
		}
		now := q
		now.For = 0
		if one, failed := m.Survival(now); failed != nil || one != 1 {
			t.Fatalf("no time: %v, %v", one, failed)
		}
		s, err := m.Sure(q)
		if err != nil || !(s.Low >= 0 && s.Low <= s.High && s.High <= 1) {
			t.Fatalf("%+v: sureness %+v, %v", q, s, err)
		}
	})
}

// A time too short for its expected ends to be squared is as sure as any other.
func TestSurenessOfTimesOfEveryMagnitude(t *testing.T) {
	m, err := Fit(History{}, DefaultPriors(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for seconds := 1e6; seconds > 1e-300; seconds /= 1.01 {
		s, err := m.Sure(Query{Week: 1, Up: 1, For: seconds})
		if err != nil || !(s.Low >= 0 && s.Low <= s.High && s.High <= 1) {
			t.Fatalf("%v s: sureness %+v, %v", seconds, s, err)
		}
	}
}

func TestTheOrderOfThePastDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		a, err := Fit(h, DefaultPriors(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		q := drawQuery(t)
		p, _ := a.Survival(q)
		other := History{
			Spans: rapid.Permutation(h.Spans).Draw(t, "order"),
			Downs: rapid.Permutation(h.Downs).Draw(t, "downs order"),
		}
		b, err := Fit(other, DefaultPriors(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		// A profile is chosen or not by a sum that rounding may tip.
		if (a.Leave.Profile == nil) != (b.Leave.Profile == nil) ||
			(a.Crash.Profile == nil) != (b.Crash.Profile == nil) ||
			a.Crash.Shape == 1 != (b.Crash.Shape == 1) || a.Leave.Shape == 1 != (b.Leave.Shape == 1) {
			t.Skip("on the edge")
		}
		if got, _ := b.Survival(q); !cmp.Equal(p, got, cmpopts.EquateApprox(1e-3, 1e-6)) {
			t.Fatalf("%v or %v by the order", p, got)
		}
	})
}

func TestNonsenseIsRefused(t *testing.T) {
	nan := math.NaN()
	for name, h := range map[string]History{
		"week":    {Spans: []Span{{Week: nan}}},
		"late":    {Spans: []Span{{Week: WeekSeconds}}},
		"age":     {Spans: []Span{{Age: -1}}},
		"seconds": {Spans: []Span{{Seconds: nan}}},
		"ago":     {Spans: []Span{{Ago: nan}}},
		"ending":  {Spans: []Span{{End: 3}}},
		"down":    {Downs: []float64{nan}},
	} {
		if _, err := Fit(h, DefaultPriors(), nil, 0); !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Fit(History{}, Priors{}, []Window{{From: -1}}, 1<<30)
	if !errors.Is(err, argument.ErrInvalid) {
		t.Error("priors, windows or zone are not checked")
	}
	m := mustFit(t, History{})
	for _, q := range []Query{{Week: nan}, {Week: WeekSeconds}, {Up: nan}, {Free: -1}, {For: nan}} {
		if p, err := m.Survival(q); !errors.Is(err, argument.ErrInvalid) || p != 0 {
			t.Errorf("%+v: %v, %v", q, p, err)
		}
	}
	bad := mustFit(t, office(4))
	bad.Leave.Profile.Times[3] = nan
	var zero Model
	if bad.Validate() == nil || zero.Validate() == nil {
		t.Error("a broken model is valid")
	}
}

func TestWeekSecond(t *testing.T) {
	at := time.Date(2026, 3, 2, 1, 30, 0, 0, time.UTC) // a Monday
	for zone, want := range map[int]float64{
		0: 1.5 * hour, 3600: 2.5 * hour, -7200: WeekSeconds - hour/2,
	} {
		if got := WeekSecond(at, zone); got != want {
			t.Errorf("zone %d: %v, want %v", zone, got, want)
		}
	}
	if got := WeekSecond(time.Date(1969, 12, 29, 0, 0, 1, 0, time.UTC), 0); got != 1 {
		t.Errorf("before 1970: %v", got)
	}
	if !slices.Equal([]int{classOf(0), classOf(5*96 + 3), classOf(4*96 + 95)}, []int{0, 99, 95}) {
		t.Error("classes")
	}
}

func BenchmarkFitTwoYears(b *testing.B) {
	h := office(104)
	for b.Loop() {
		if _, err := Fit(h, DefaultPriors(), nil, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSurvivalEightHours(b *testing.B) {
	m, err := Fit(office(104), DefaultPriors(), nil, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = m.Survival(Query{Week: 33 * hour, Up: hour, Free: hour, For: 8 * hour})
	}
}
