package index

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Of two axes that lag the one counts by which the squared distance grows more: a small step
// far out against a larger one near the job.
func TestBehindCountsSquares(t *testing.T) {
	p := grid.Parts{X: 10, Y: 1.5, Distance: math.Hypot(10, 1.5)}
	nearest := grid.Parts{X: 9.5, Distance: 9.5}
	if got := Behind(p, nearest, grid.Requirement{}).Dimension; got != grid.Computation {
		t.Errorf("worst on %v, want computation: 100 - 90.25 against 2.25", got)
	}
	if got := Behind(nearest, p, grid.Requirement{}); got != (Lag{}) {
		t.Errorf("the nearest lags: %+v", got)
	}
	tied := grid.Parts{X: 9.5, Y: 4e-5, Distance: math.Hypot(9.5, 4e-5)}
	if got := Behind(tied, nearest, grid.Requirement{}); got != (Lag{}) {
		t.Errorf("one that is equally near lags: %+v", got)
	}
}

// What is no amount is unknown, and counts as nothing.
func TestSaneCoordinates(t *testing.T) {
	for value, known := range map[float64]bool{
		0: true, 2: true, math.MaxFloat64: true, -1: false, math.Inf(1): false, math.Inf(-1): false,
	} {
		want := grid.Coordinate{}
		if known {
			want = grid.Coordinate{Value: value, Known: true}
		}
		if got := sane(grid.Coordinate{Value: value, Known: true}); got != want {
			t.Errorf("sane of %v = %+v, want %+v", value, got, want)
		}
	}
	if got := sane(grid.Coordinate{Value: math.NaN(), Known: true}); got != (grid.Coordinate{}) {
		t.Errorf("sane of no number = %+v", got)
	}
	if got := sane(grid.Coordinate{Value: 3}); got != (grid.Coordinate{}) {
		t.Errorf("sane of what is unknown = %+v", got)
	}
}

func TestRatesOfALink(t *testing.T) {
	for _, c := range []struct{ down, up, want int64 }{
		{0, 0, DefaultLinkBps},
		{-1, -1, DefaultLinkBps},
		{0, 1, 1},
		{1, 0, 1},
		{2, 1, 1},
		{1, 2, 1},
		{5, 7, 5},
		{7, 5, 5},
		{-1, 7, 7},
		{7, -1, 7},
	} {
		if got := linkBps(c.down, c.up); got != c.want {
			t.Errorf("linkBps(%d, %d) = %d, want %d", c.down, c.up, got, c.want)
		}
	}
}

// Those that are called off come in the order of their names.
func TestShortestExpectedDelayCancelsInOrder(t *testing.T) {
	var asked []Reservation
	for i, site := range []grid.SiteID{"d", "b", "c", "a"} {
		asked = append(asked, Reservation{
			Site: site, Rank: float64(i), Accepted: true, StartSeconds: float64(i), RuntimeSeconds: 1,
		})
	}
	choice, ok, err := ShortestExpectedDelay(asked, len(asked), DelayFixed)
	if err != nil || !ok || choice.Site != "d" ||
		!slices.Equal(choice.Cancel, []grid.SiteID{"a", "b", "c"}) {
		t.Errorf("%+v, %t, %v", choice, ok, err)
	}
}

func TestSpanIsBounded(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{
		0: 0, 1.5: 1500 * time.Millisecond, maxSpan.Seconds(): maxSpan, math.Inf(1): maxSpan,
	} {
		if got := span(seconds); got != want {
			t.Errorf("span(%v) = %v, want %v", seconds, got, want)
		}
	}
}

// x is the root of the weighted squares of what each offer leaves open: a half, a fourth, an
// eighth and three fourths here.
func TestComputationIsTheRootOfAllTerms(t *testing.T) {
	req := grid.Requirement{
		Need:    grid.Resources{MFLOPS: 100, MemoryBytes: 400, DiskBytes: 800},
		Sources: []grid.DataSource{{Bytes: 1, PotentialBps: 40}},
	}
	site := Site{Free: grid.Resources{MemoryBytes: 300, DiskBytes: 700}, PotentialBps: 10}
	for _, w := range []grid.Weights{
		{C: 1}, {M: 1}, {F: 1}, {P: 1}, {C: 2, M: 3, F: 5, P: 7}, {},
	} {
		req.Weights = w
		want := math.Sqrt(w.C/4 + w.M/16 + w.F/64 + w.P*9/16)
		if got := computation(&req, &site, 50); !near(got, want) {
			t.Errorf("%+v: %v, want %v", w, got, want)
		}
	}
	site.Free.MemoryBytes, req.Weights = -5, grid.Weights{M: 1}
	if got := computation(&req, &site, 50); got != 1 {
		t.Errorf("less than nothing is free: %v, want 1", got)
	}
}

// A site is short of a thing if it has one less than is needed; of computation if it has none.
func TestShortageBeginsAtOneLess(t *testing.T) {
	for reason, f := range map[grid.Reason]func(int64) grid.Resources{
		grid.ReasonCPUs:      func(n int64) grid.Resources { return grid.Resources{MilliCPUs: n} },
		grid.ReasonMemory:    func(n int64) grid.Resources { return grid.Resources{MemoryBytes: n} },
		grid.ReasonDisk:      func(n int64) grid.Resources { return grid.Resources{DiskBytes: n} },
		grid.ReasonBandwidth: func(n int64) grid.Resources { return grid.Resources{NetBps: n} },
		grid.ReasonComputation: func(n int64) grid.Resources {
			return grid.Resources{MFLOPS: n}
		},
	} {
		for _, c := range []struct {
			need, have int64
			short      bool
		}{{1, 1, false}, {1, 0, true}, {1, -1, true}, {0, 0, false}, {0, -1, false}, {0, 1, false}} {
			want := grid.Refusal{}
			if c.short {
				want = grid.Refusal{Reason: reason, Want: c.need}
			}
			if got, short := shortage(f(c.need), f(c.have)); short != c.short || got != want {
				t.Errorf("needs %d of %d: %+v, %t, want %+v", c.need, c.have, got, short, want)
			}
		}
	}
}

// A site that gives less than nothing never ends the task.
func TestWithoutComputationNothingEnds(t *testing.T) {
	req := grid.Requirement{Need: grid.Resources{MFLOPS: 10}, Runtime: time.Second}
	for given, want := range map[int64]time.Duration{
		-1: maxSpan, 0: maxSpan, 1: 10 * time.Second, 10: time.Second,
	} {
		if got := RunTime(req, given); got != want {
			t.Errorf("%d MFLOP/s: %v, want %v", given, got, want)
		}
	}
	req.Runtime = -1
	if got := RunTime(req, 10); got != 0 {
		t.Errorf("a negative estimate: %v", got)
	}
}

// P_i is the sum over the other peers, and nothing beside an error.
func TestPotentialIsTheSum(t *testing.T) {
	got, err := Potential("me", []Upload{{"a", 3}, {"me", math.NaN()}, {"b", 4}})
	if got != 7 || err != nil {
		t.Errorf("potential %v, %v, want 7", got, err)
	}
	if got, err = Potential("me", []Upload{{"a", 3}, {"b", -1}}); got != 0 || err == nil {
		t.Errorf("potential with nonsense %v, %v", got, err)
	}
}

// P_src is that of the largest source, of the first of the largest ones; unknown where there
// is data and nobody named it.
func TestTheLargestSourceStands(t *testing.T) {
	for _, c := range []struct {
		sources []grid.DataSource
		want    int64
		unknown bool
	}{
		{nil, 0, false},
		{[]grid.DataSource{{Bytes: 0, PotentialBps: 5}}, 0, false},
		{[]grid.DataSource{{Bytes: 1}}, 0, true},
		{[]grid.DataSource{{Bytes: 2, PotentialBps: 5}, {Bytes: 2, PotentialBps: 6}}, 5, false},
		{[]grid.DataSource{{Bytes: 1, PotentialBps: 5}, {Bytes: 2, PotentialBps: 6}}, 6, false},
		{[]grid.DataSource{{}, {Bytes: 1, PotentialBps: 5}, {Bytes: 2}}, 0, true},
	} {
		got, unknown := sourcePotential(c.sources), potentialUnknown(c.sources)
		if got != c.want || unknown != c.unknown {
			t.Errorf("%+v: %d, unknown %t", c.sources, got, unknown)
		}
	}
	for up, want := range map[float64]float64{
		0: 1, 1: 0, 0.25: 0.75, -0.1: 1, math.Nextafter(1, 2): 1, math.Inf(1): 1,
	} {
		if got := unavailability(up); got != want {
			t.Errorf("up with %v: z = %v, want %v", up, got, want)
		}
	}
}

// A task's whole cores count where they just fit; and data of no size is never out of reach.
func TestWhatJustFits(t *testing.T) {
	need := grid.Resources{MilliCPUs: 4000}
	for free, want := range map[int64]int64{7999: 7999, 8000: 8000, 8001: 8000, 9999: 8000} {
		if got := TaskMFLOPS(need, grid.Resources{MFLOPS: free}, 2000); got != want {
			t.Errorf("of %d MFLOP/s a task gets %d, want %d", free, got, want)
		}
	}
	for bytes, reached := range map[int64]bool{0: true, 1: false} {
		site := plenty()
		site.Sources = []Access{{Bytes: bytes, Unreachable: true}}
		if _, ok := Feasible(grid.Requirement{Kind: grid.KindWasm}, site); ok != reached {
			t.Errorf("%d bytes out of reach: feasible = %t", bytes, ok)
		}
	}
	if _, ok, err := ShortestExpectedDelay(nil, -1, DelayFixed); ok || err == nil {
		t.Errorf("of fewer than none: %t, %v", ok, err)
	}
}

// R = max(0, 1 - f/g) for amounts around 1, where a share and an amount are alike.
func TestRatioIsAShare(t *testing.T) {
	for _, c := range []struct{ offered, required, want float64 }{
		{0, 0, 0},
		{1, 0, 0},
		{0, 1, 1},
		{.25, 1, .75},
		{1, 1, 0},
		{2, 1, 0},
		{1, 4, .75},
		{0, math.Inf(1), 1},
		{7, math.Inf(1), 1},
		{math.Inf(1), math.Inf(1), 0},
	} {
		if got := Ratio(c.offered, c.required); got != c.want {
			t.Errorf("Ratio(%v, %v) = %v, want %v", c.offered, c.required, got, c.want)
		}
	}
}

// z = 1 - P(up) from end to end.
func TestUnavailability(t *testing.T) {
	for up, want := range map[float64]float64{
		0: 1, .25: .75, 1: 0, math.Nextafter(1, 2): 1, -math.SmallestNonzeroFloat64: 1, math.Inf(1): 1,
	} {
		if got := unavailability(up); got != want {
			t.Errorf("unavailability(%v) = %v, want %v", up, got, want)
		}
	}
	if got := unavailability(math.NaN()); got != 1 {
		t.Errorf("of no number: %v", got)
	}
}

// Beside an error there is no answer that could be taken for one.
func TestNothingStandsBesideAnError(t *testing.T) {
	for _, axes := range [][]float64{{-1}, {3, math.NaN()}, {math.Inf(1), -1}} {
		if d, err := Distance(axes...); d != 0 || err == nil {
			t.Errorf("Distance(%v) = %v, %v", axes, d, err)
		}
	}
	if p, err := Potential("a", []Upload{{"b", 5}, {"c", -1}}); p != 0 || err == nil {
		t.Errorf("Potential = %v, %v", p, err)
	}
	wrong := Reservation{Site: "s", Accepted: true, Rank: -1}
	for _, c := range []struct {
		list []Reservation
		top  int
		mode DelayMode
	}{{[]Reservation{wrong}, 1, DelayFixed}, {nil, -1, DelayFixed}, {nil, 1, DelayPaper + 1}} {
		choice, found, err := ShortestExpectedDelay(c.list, c.top, c.mode)
		if err == nil || found || choice.Site != "" || choice.Asked != 0 {
			t.Errorf("%+v: %+v, %t, %v", c, choice, found, err)
		}
	}
}

// What was not measured yet, 0, may be there one day: the refusal is not permanent. A known
// amount that is short is.
func TestWhatIsUnknownIsNotNever(t *testing.T) {
	for _, c := range []struct {
		core, mflops, net int64
		need              grid.Resources
		want              grid.Refusal
	}{
		{0, 0, 0, grid.Resources{MFLOPS: 9}, grid.Refusal{Reason: grid.ReasonComputation, Want: 9}},
		{1, 0, 0, grid.Resources{MFLOPS: 9}, grid.Refusal{
			Reason: grid.ReasonComputation, Want: 9, Never: true,
		}},
		{0, 0, 0, grid.Resources{NetBps: 9}, grid.Refusal{Reason: grid.ReasonBandwidth, Want: 9}},
		{0, 0, 1, grid.Resources{NetBps: 9}, grid.Refusal{
			Reason: grid.ReasonBandwidth, Want: 9, Have: 1, Never: true,
		}},
		{0, 0, 0, grid.Resources{DiskBytes: 9}, grid.Refusal{
			Reason: grid.ReasonDisk, Want: 9, Never: true,
		}},
	} {
		site := plenty()
		site.Capability.CoreMFLOPS = c.core
		site.Capability.Total = grid.Resources{MFLOPS: c.mflops, NetBps: c.net}
		site.Free = site.Capability.Total
		got, ok := Feasible(grid.Requirement{Kind: grid.KindWasm, Need: c.need}, site)
		if ok || got != c.want {
			t.Errorf("%+v: %+v, want %+v", c, got, c.want)
		}
	}
}

// y is a multiple of the run time; a task of no time has none, whatever is to be moved.
func TestDataIndexOfAShortTask(t *testing.T) {
	for runtime, want := range map[time.Duration]float64{
		0: 0, -1: 0, 5 * time.Second: 2, 1: 1e10,
	} {
		req := need()
		req.Runtime = runtime
		parts, _, ok := Measure(req, plenty()) // 10 s of transfer
		if !ok || math.Abs(parts.Y-want) > 1e-9*want || parts.Validate() != nil {
			t.Errorf("a run of %s: y = %v, want %v", runtime, parts.Y, want)
		}
	}
}

// Local data takes as long as the disk needs, however slow it is; of unknown speed none.
func TestLocalDataAtTheDisksRate(t *testing.T) {
	for bps, want := range map[int64]float64{0: 0, -1: 0, 1: 80, 2: 40, 80: 1} {
		site := Site{Sources: []Access{{Bytes: 10, Local: true}}}
		site.Capability.DiskBps = bps
		if got := stageInSeconds(&site); got != want {
			t.Errorf("%d bit/s: %v s, want %v", bps, got, want)
		}
	}
}

// A job's own axes stand behind what the site said of it, in the job's order, and what the site
// said stays as it was.
func TestCompleteAddsTheSubmittersAxes(t *testing.T) {
	said := []grid.Coordinate{{Dimension: grid.QueueWait, Value: 3, Known: true}}
	req := grid.Requirement{Axes: []grid.Axis{
		{Dimension: grid.QueueWait, Weight: 1},
		{Dimension: grid.Distrust, Weight: 4},
		{Dimension: grid.Latency, Weight: 1},
	}}
	parts := grid.Parts{Distance: 3, Further: said}
	for trip, latency := range map[time.Duration]float64{
		0: 0, -time.Second: 0, latencyUnit: 1, 400 * time.Millisecond: 4,
	} {
		got := Complete(parts, req, Standing{RoundTrip: trip, RoundTripKnown: true, FaultIndex: 1})
		want := append(slices.Clone(said),
			grid.Coordinate{Dimension: grid.Distrust, Value: .5, Known: true},
			grid.Coordinate{Dimension: grid.Latency, Value: latency, Known: true})
		distance := math.Sqrt(9 + 4*.25 + latency*latency)
		if !slices.Equal(got.Further, want) || math.Abs(got.Distance-distance) > 1e-9 {
			t.Errorf("%s: %+v, want %+v at %v", trip, got, want, distance)
		}
	}
	unmeasured := Complete(parts, req, Standing{RoundTrip: time.Second})
	if got := unmeasured.Further[2]; got != (grid.Coordinate{Dimension: grid.Latency}) ||
		unmeasured.Distance != 3 {
		t.Errorf("a round trip that nobody measured: %+v at %v", got, unmeasured.Distance)
	}
	req.Axes = req.Axes[:1]
	if got := Complete(parts, req, Standing{FaultIndex: 1}); !slices.Equal(got.Further, said) ||
		got.Distance != 3 {
		t.Errorf("without axes of the submitter's: %+v", got)
	}
}

// The wait in the queue is a multiple of the run time in the thesis map; of a task of no time,
// and in the map of seconds, it is in seconds.
func TestWaitInTheQueueAsACoordinate(t *testing.T) {
	for _, c := range []struct {
		kind    grid.MapKind
		runtime time.Duration
		want    float64
	}{
		{grid.MapThesis, 0, 6},
		{grid.MapThesis, 2 * time.Second, 3},
		{grid.MapThesis, time.Second, 6},
		{grid.MapThesis, time.Second / 2, 12},
		{grid.MapThesis, -1, 6},
		{grid.MapSeconds, 0, 6},
		{grid.MapSeconds, 2 * time.Second, 6},
	} {
		req := grid.Requirement{Map: c.kind, Runtime: c.runtime}
		got := coordinate(grid.QueueWait, &req, &Site{}, &grid.Parts{Wait: 6 * time.Second})
		if want := (grid.Coordinate{Dimension: grid.QueueWait, Value: c.want, Known: true}); got != want {
			t.Errorf("%v: %+v, want %+v", c, got, want)
		}
	}
}

// An owner is paid for the cores that a task asks for and for as long as it runs; what asks for
// less than a core pays for a whole one.
func TestPriceOfCoresAndHours(t *testing.T) {
	for milliCPUs, cores := range map[int64]float64{
		0: 1, 1: 1, 999: 1, 1000: 1, 1001: 1.001, 1500: 1.5, 4000: 4,
	} {
		req := grid.Requirement{Need: grid.Resources{MilliCPUs: milliCPUs}}
		got := coordinate(grid.Price, &req, &Site{Priced: true, Price: 6},
			&grid.Parts{Run: 20 * time.Minute})
		if want := 2 * cores; !got.Known || math.Abs(got.Value-want) > 1e-12 {
			t.Errorf("%d/1000 cores: %+v, want %v", milliCPUs, got, want)
		}
	}
	if got := coordinate(grid.Price, &grid.Requirement{}, &Site{Price: 6},
		&grid.Parts{Run: time.Hour}); got != (grid.Coordinate{Dimension: grid.Price}) {
		t.Errorf("where no price is named: %+v", got)
	}
}
