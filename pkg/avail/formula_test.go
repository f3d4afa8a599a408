package avail

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Announced times count as kept or as passed by how far they are from a span's end.
func TestAnnouncedTimesOfASpan(t *testing.T) {
	m := Model{Closed: []Window{{From: 9 * hour, To: 10 * hour}}}
	for _, c := range []struct {
		week, length float64
		left         bool
		passed       int
		kept         bool
	}{
		{0, 9*hour - closingSlack, true, 0, true},
		{0, below(9*hour - closingSlack), true, 0, false},
		{0, 9*hour - closingSlack, false, 0, false},
		{0, below(9*hour + closingSlack), true, 0, true},
		{0, 9*hour + closingSlack, true, 1, false},
		{0, 9*hour + closingSlack + WeekSeconds, true, 2, false},
		{0, 9*hour + WeekSeconds, true, 1, true},
		{9 * hour, WeekSeconds - 2*closingSlack, true, 0, false},
		{9 * hour, WeekSeconds, true, 0, true},
		{10 * hour, WeekSeconds - hour, true, 0, true},
		{-1, 20 * hour, true, 0, false},
	} {
		if passed, kept := m.closings(c.week, c.length, c.left); passed != c.passed || kept != c.kept {
			t.Errorf("%+v: %d passed, kept %t", c, passed, kept)
		}
	}
}

// Three ends are enough to look for a profile of the week, and two are not.
func TestThreeEndsMakeAProfile(t *testing.T) {
	const age = 10 * 24 * hour // so that a rising or falling rate explains nothing
	for ends, found := range map[int]bool{2: false, 3: true, 4: true} {
		var lives []life
		for range ends {
			lives = append(lives, life{week: 0, age: age, length: 300, weight: 1, ended: true})
		}
		for range 40 {
			lives = append(lives, life{week: 12 * hour, age: age, length: 5 * 24 * hour, weight: 1})
		}
		h := fitHazard(Prior{Failures: 0.5, Exposure: 50 * hour}, lives)
		if (h.Profile != nil) != found {
			t.Errorf("%d ends in one quarter: %+v", ends, h)
		}
	}
}

// A model keeps the counts of its history, each observation by its age in half lives, and how
// often announcements came true, a twentieth of two being given.
func TestWhatAFitCounts(t *testing.T) {
	priors := Priors{Crash: Prior{0.5, 20 * hour}, Leave: Prior{0.25, 5 * hour}}
	nine := Window{From: 9 * hour, To: 10 * hour}
	m, err := Fit(History{Spans: []Span{
		{Week: 0, Seconds: 10 * hour, End: EndCrash, Ago: halfLife},
		{Week: 0, Seconds: 9 * hour, End: EndLeft, Age: hour},
		{Week: -1, Seconds: 2 * hour, End: EndLeft, Ago: 2 * halfLife},
		{Week: 0, Seconds: 3 * hour},
	}, Downs: []float64{100, 400, math.Inf(1)}}, priors, []Window{nine}, 7)
	if err != nil {
		t.Fatal(err)
	}
	lived := 10*hour/2 + 9*hour + 2*hour/4 + 3*hour
	for name, c := range map[string][2]float64{
		"days":     {m.Days, 1},
		"crashes":  {float64(m.Crashes), 1},
		"leaves":   {float64(m.Leaves), 2},
		"down":     {m.DownMean, (100 + 400 + maxSeconds) / 3},
		"zone":     {float64(m.Zone), 7},
		"through":  {m.Through, (0.05*2 + 1) / (2 + 2)}, // one was passed, one kept
		"crash":    {m.Crash.Failures, 0.5 + 0.5},
		"crash at": {m.Crash.Exposure, 20*hour + lived},
		"leave":    {m.Leave.Failures, 0.25 + 0.25}, // what was announced explains the other
		"leave at": {m.Leave.Exposure, 5*hour + lived},
		"crash's":  {m.Crash.Unit, 20 * hour / 0.5},
		"leave's":  {m.Leave.Unit, 5 * hour / 0.25},
		"shapes":   {m.Crash.Shape + m.Leave.Shape, 2},
	} {
		if !near(c[0], c[1]) {
			t.Errorf("%s: %v, want %v", name, c[0], c[1])
		}
	}
	if m, err = Fit(History{}, priors, nil, 0); err != nil || m.Through != 0 || m.DownMean != 0 {
		t.Errorf("without announcements and times down: %+v, %v", m, err)
	}
	long := slices.Concat([]Span{{End: EndCrash}}, make([]Span, maxSpans-1), []Span{{End: EndLeft}})
	m, err = Fit(History{Spans: long}, priors, nil, 0)
	if err != nil || m.Crashes != 0 || m.Leaves != 1 {
		t.Errorf("of a long history: %d crashes, %d leaves, %v", m.Crashes, m.Leaves, err)
	}
	m, err = Fit(History{Spans: long[1:]}, priors, nil, 0)
	if err != nil || m.Leaves != 1 {
		t.Errorf("of as long a one as counts: %d leaves, %v", m.Leaves, err)
	}
}

// The share of each hour, counted minute by minute.
func TestPresenceAgainstMinutes(t *testing.T) {
	h := History{
		Spans: []Span{
			{Week: 9*hour + 1200, Seconds: WeekSeconds + 3*hour},
			{Week: WeekSeconds - hour, Seconds: 2.5 * hour},
		},
		Downs: []float64{12 * hour, 300},
	}
	up, seconds := make([]float64, weekHours), 0.0
	for _, s := range h.Spans {
		for at := 0.0; at < s.Seconds; at += 60 {
			up[int(math.Mod(s.Week+at, WeekSeconds)/hour)] += 60
			seconds += 60
		}
	}
	all := seconds + 12*hour + 300
	got := presence(h)
	for i, u := range up {
		want := min((seconds/all*hour+u)/(hour+all/WeekSeconds*hour), 1)
		if len(got) != weekHours || math.Abs(got[i]/want-1) > 1e-3 {
			t.Fatalf("hour %d: %v, want %v", i, got, want)
		}
	}
	for seconds, known := range map[float64]bool{below(resolution): false, resolution: true} {
		if got := presence(History{Spans: []Span{{Seconds: seconds}}}); (got != nil) != known {
			t.Errorf("after %v s: %v", seconds, got)
		}
	}
	for _, v := range presence(History{Spans: []Span{{Seconds: 2 * WeekSeconds}}}) {
		if v != 1 {
			t.Fatalf("always there: a share of %v", v)
		}
	}
}

// weekly is a profile of which each quarter differs.
func weekly() *Profile {
	p := &Profile{Factor: 3}
	for i := range slots {
		p.Times = append(p.Times, 1+float64(i%7))
		p.Worth = append(p.Worth, 2+float64(i%5))
	}
	return p
}

// Time is weighted by the profile, quarter by quarter for a week, and by its mean beyond that
// and where the time of the week is unknown.
func TestProfiledTimeAgainstMinutes(t *testing.T) {
	for _, shape := range []float64{1, 2} {
		h := Hazard{Shape: shape, Unit: 5000, Failures: 2, Exposure: 1e5, Profile: weekly()}
		for _, c := range []struct{ week, age, tau float64 }{
			{0, 0, 60},
			{600, 120, 3000},
			{WeekSeconds - 600, 60, 7200},
			{60, hour, WeekSeconds},
			{60, hour, WeekSeconds + 5*hour},
			{-1, 60, hour},
		} {
			want, variance := profiledByMinutes(&h, c.week, c.age, c.tau)
			got, gotVariance := h.at(c.week, c.age, c.tau)
			if !near(got, want) || !near(gotVariance, variance) {
				t.Errorf("k = %v, %+v: %v, %v, want %v, %v", shape, c, got, gotVariance, want, variance)
			}
			if s := h.logSurvival(c.week, c.age, c.tau); !near(s, -2*math.Log(1+want/1e5)) {
				t.Errorf("k = %v, %+v: log survival %v", shape, c, s)
			}
			mean, spread := h.spread(c.week, c.age, c.tau)
			if !near(mean, want*2/1e5) || !near(spread, want*want*2/1e10+variance*4/1e10) {
				t.Errorf("k = %v, %+v: %v ends expected, variance %v", shape, c, mean, spread)
			}
		}
	}
}

func profiledByMinutes(h *Hazard, week, age, tau float64) (sum, variance float64) {
	passed := func(from, to float64) float64 {
		u, k := h.Unit, h.Shape
		return u * (math.Pow((age+to)/u, k) - math.Pow((age+from)/u, k))
	}
	if week < 0 {
		return passed(0, tau) * h.Profile.Factor, 0
	}
	slot, part := -1, 0.0
	end := func() {
		if slot >= 0 {
			variance += part * part / h.Profile.Worth[slot]
		}
	}
	for at := 0.0; at < min(tau, WeekSeconds); at += 60 {
		if now := int(math.Mod(week+at, WeekSeconds) / 900); now != slot {
			end()
			slot, part = now, 0
		}
		minute := passed(at, at+60) * h.Profile.Times[slot]
		part, sum = part+minute, sum+minute
	}
	end()
	if tau > WeekSeconds {
		sum += passed(WeekSeconds, tau) * h.Profile.Factor
	}
	return sum, variance
}

// The ends that the rate expects and those seen, quarter by quarter: who ends was at risk for
// half of the last one.
func TestExpectedEnds(t *testing.T) {
	h := Hazard{Shape: 1, Unit: 1, Failures: 1, Exposure: 1000}
	type cells map[int]float64
	for name, c := range map[string]struct {
		life           life
		expected, seen cells
	}{
		"open": {life{week: 0, length: 1200, weight: 1}, cells{0: 0.9, 1: 0.3}, nil},
		"ended": {
			life{week: 0.5, length: 1199.5, weight: 0.5, ended: true},
			cells{0: 0.44975, 1: 0.225},
			cells{1: 0.5},
		},
		"at an edge": {
			life{week: 0, age: 70, length: 900, weight: 1, ended: true},
			cells{0: 0.9, 1: 0.45},
			cells{1: 1},
		},
		"over Sunday midnight": {
			life{week: WeekSeconds - 900, length: 1000, weight: 1, ended: true},
			cells{slots - 1: 0.9, 0: 0.45},
			cells{0: 1},
		},
		"unknown week": {life{week: -1, length: 1200, weight: 1, ended: true}, nil, nil},
	} {
		got := h.expect([]life{c.life})
		for i := range slots {
			if !near(got.expected[i], c.expected[i]) || got.seen[i] != c.seen[i] {
				t.Errorf("%s: quarter %d: %v expected, %v seen, want %v, %v",
					name, i, got.expected[i], got.seen[i], c.expected[i], c.seen[i])
			}
		}
	}
	long := h.expect([]life{{week: 0, length: WeekSeconds + 100*float64(slots), weight: 1}})
	for i, e := range long.expected {
		if !near(e, 0.9+0.1) {
			t.Fatalf("over a week: quarter %d: %v, want 1", i, e)
		}
	}
}

// The density of lifetimes, lambda integrated out of lambda^n e^(-lambda T): for n ends
// b^a a (a+1).. / (b+T)^(a+n), times k (t/u)^(k-1) for each end.
func TestEvidenceIsTheIntegral(t *testing.T) {
	lives := []life{
		{age: 100, length: 300, weight: 1, ended: true},
		{length: 800, weight: 1, ended: true},
		{length: 30, weight: 1, ended: true},
		{age: 50, length: 450, weight: 1},
	}
	for _, k := range []float64{1, 2, 0.5} {
		h := Hazard{Shape: k, Unit: 200, Failures: 0.5, Exposure: 700}
		passed := func(t float64) float64 { return 200 * math.Pow(t/200, k) }
		exposed := passed(400) - passed(100) + passed(800) + passed(30) + passed(500) - passed(50)
		want := math.Pow(700, 0.5) * 0.5 * 1.5 * 2.5 / math.Pow(700+exposed, 3.5)
		for _, end := range []float64{400, 800, resolution} {
			want *= k * math.Pow(end/200, k-1)
		}
		if got := math.Exp(h.evidence(lives)); !near(got, want) {
			t.Errorf("k = %v: %v, want %v", k, got, want)
		}
	}
}

// The evidence for any shape is that of each, times how likely the shape was beforehand, and
// the likeliest shape is the one with the most: against many more steps.
func TestShapesAgainstFineSteps(t *testing.T) {
	var lives []life
	for i := range 12 {
		lives = append(lives, life{
			length: 7000 * math.Pow(-math.Log(1-(float64(i)+0.5)/12), 1/1.5), weight: 1, ended: true,
		})
	}
	h := Hazard{Shape: 1, Unit: 7000, Failures: 0.3, Exposure: 2100}
	low, high := math.Log(minShape), math.Log(maxShape)
	const steps = 4000
	width := (high - low) / steps
	sum, best, top := 0.0, 0.0, 0.0
	for i := range steps + 1 {
		log := low + float64(i)*width
		shaped := h
		shaped.Shape = math.Exp(log)
		z := log / shapeSpread
		density := math.Exp(shaped.evidence(lives)) *
			math.Exp(-z*z/2) / (shapeSpread * math.Sqrt(2*math.Pi))
		sum += density * width
		if density > top {
			best, top = shaped.Shape, density
		}
	}
	evidence, likeliest := h.shapes(lives)
	if math.Abs(evidence-math.Log(sum)) > 1e-3 {
		t.Errorf("evidence %v, want %v", evidence, math.Log(sum))
	}
	if got := likeliest(); math.Abs(got/best-1) > 2e-3 {
		t.Errorf("the likeliest shape is %v, want %v", got, best)
	}
}

func TestGoldenSectionFindsTheTop(t *testing.T) {
	for _, top := range []float64{-2, -1.9, -0.3, 0, 1.1, 2.7, 3} {
		got := goldenSection(func(x float64) float64 { return -(x - top) * (x - top) }, -2, 3)
		if math.Abs(got-top) > 5*math.Pow(0.6181, refinements) {
			t.Errorf("the top is at %v, found %v", top, got)
		}
	}
}

// Of a probability p to end in a quarter the actuary's count is p/(1 - p/2), and the hazard
// is -log(1-p).
func TestACountBecomesAFactor(t *testing.T) {
	const rate = 1e-4
	for _, p := range []float64{1e-6, 0.1, 0.5, 0.9, 0.99} {
		count := p / (1 - p/2)
		if got, want := within(count/(rate*900), rate)*rate*900, -math.Log(1-p); !near(got, want) {
			t.Errorf("p = %v: hazard %v, want %v", p, got, want)
		}
	}
	if got, want := within(1e9, rate)*rate*900, 2*math.Atanh(0.99); !near(got, want) {
		t.Errorf("certain: %v, want %v", got, want)
	}
	if got := within(7, 0); got != 7 {
		t.Errorf("without a rate: %v", got)
	}
}

func TestFourDigitsAreKept(t *testing.T) {
	for v, want := range map[float64]float64{
		0: 0, 1: 1, 1.23456: 1.235, 12345: 12350, 9.9996: 10, 0.00012344: 0.0001234, 0.5: 0.5,
	} {
		if got := rounded(v); !near(got, want) {
			t.Errorf("%v becomes %v, want %v", v, got, want)
		}
	}
}

func TestWordsOfSureness(t *testing.T) {
	for s, want := range map[Sureness]string{
		{High: 0, Days: below(1)}:        "a guess",
		{High: 0, Days: 1}:               "sure",
		{High: 0, Ends: 1}:               "sure",
		{High: 0.1, Days: 1}:             "sure",
		{High: above(0.1), Days: 1}:      "fairly sure",
		{High: 0.3, Days: 1}:             "fairly sure",
		{High: above(0.3), Days: 1}:      "unsure",
		{Low: 0.5, High: 0.7, Days: 1}:   "fairly sure",
		{Low: 0.5, High: 0.55, Days: 10}: "sure",
	} {
		if got := s.Words(); got != want {
			t.Errorf("%+v is %q, want %q", s, got, want)
		}
	}
}

// Sureness is of the sum of both causes' ends, and of what was announced; nothing is known
// beyond a century.
func TestSurenessIsOfAllCauses(t *testing.T) {
	m := mustFit(t, History{}, Window{From: hour, To: 2 * hour})
	m.Crashes, m.Leaves, m.Days = 2, 3, 4
	q := Query{For: 6 * hour}
	p := DefaultPriors()
	crash, leave := q.For/p.Crash.Exposure, q.For/p.Leave.Exposure
	mean := 0.3*crash + 0.3*leave
	variance := 0.3*crash*crash + 0.3*leave*leave
	want := Sureness{
		Low:  math.Exp(-gammaQuantile(mean, variance, 1.6449)) * m.Through,
		High: math.Exp(-gammaQuantile(mean, variance, -1.6449)) * m.Through,
		Days: 4, Ends: 5,
	}
	got, err := m.Sure(q)
	if err != nil || !near(got.Low, want.Low) || !near(got.High, want.High) || got.Days != 4 ||
		got.Ends != 5 {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	m.Closed = nil
	for length, known := range map[float64]bool{maxSeconds: true, above(maxSeconds): false} {
		s, err := m.Sure(Query{For: length})
		if err != nil || (s.High > 0) != known || (survival(t, m, Query{For: length}) > 0) != known {
			t.Errorf("for %v s: %+v, %v", length, s, err)
		}
	}
}

// Ages beyond a century count as one.
func TestAgesHaveAnEnd(t *testing.T) {
	m := mustFit(t, History{})
	m.Crash.Shape, m.Leave.Shape = 2, 0.5
	for _, q := range []Query{{For: hour, Up: math.Inf(1)}, {For: hour, Free: math.Inf(1)}} {
		capped := Query{For: hour, Up: min(q.Up, maxSeconds), Free: min(q.Free, maxSeconds)}
		if got, want := survival(t, m, q), survival(t, m, capped); got != want {
			t.Errorf("%+v: %v, want %v", q, got, want)
		}
	}
}

func TestGammaQuantilesAtTheEdges(t *testing.T) {
	for _, c := range []struct{ mean, variance, score, want float64 }{
		{0, 1, 1, 0}, {-1, 1, 1, 0}, {2, 0, 1, 2}, {2, 5e-324, 1, 2}, {0.1, 1, -1.6449, 0},
	} {
		if got := gammaQuantile(c.mean, c.variance, c.score); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A job may ask for the share of all nodes and a rounding more.
func TestSAAIsExact(t *testing.T) {
	for _, c := range []struct {
		request, total, alpha float64
		want                  bool
	}{
		{29, 100, 0.29, true},
		{50 * (1 + saaSlack/2), 100, 0.5, true},
		{50 * (1 + saaSlack*2), 100, 0.5, false},
		{0, 100, 0, true},
		{above(0), math.Inf(1), 0, false},
		{0, 0, 1, true},
		{above(0), 0, 1, false},
	} {
		if got, err := SAA(c.request, c.total, c.alpha); got != c.want || err != nil {
			t.Errorf("%+v: %t, %v", c, got, err)
		}
	}
}

func TestMeanAvailabilityIsWeighted(t *testing.T) {
	inf := math.Inf(1)
	cycles := []Cycle{{1, 1}, {3, 1}, {inf, 2}, {0, 5}}
	for _, c := range []struct {
		weights []float64
		want    float64
	}{
		{nil, (0.5 + 0.75 + 1 + 0) / 4},
		{[]float64{1, 3, 0, 0}, (0.5 + 3*0.75) / 4},
		{[]float64{0, 0, 2, 6}, 0.25},
	} {
		if got, err := MeanAvailability(cycles, c.weights); err != nil || !near(got, c.want) {
			t.Errorf("weights %v: %v, %v, want %v", c.weights, got, err, c.want)
		}
	}
	for _, c := range []struct {
		cycles  []Cycle
		weights []float64
	}{
		{nil, nil},
		{cycles, []float64{1}},
		{cycles[:1], []float64{1, 1}},
		{[]Cycle{{inf, inf}}, nil},
		{[]Cycle{{0, 0}}, nil},
		{cycles[:2], []float64{0, 0}},
		{cycles[:1], []float64{}},
	} {
		if got, err := MeanAvailability(c.cycles, c.weights); got != 0 ||
			!errors.Is(err, argument.ErrUndefined) {
			t.Errorf("%v, %v: %v, %v", c.cycles, c.weights, got, err)
		}
	}
}
