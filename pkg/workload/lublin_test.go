package workload

import (
	"flag"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func firstJobs(m Lublin, seed uint64, n int) []Record {
	var records []Record
	for r := range m.Records(seed) {
		records = append(records, r)
		if len(records) == n {
			break
		}
	}
	return records
}

// The same seed gives the same jobs, which can be looked at in testdata.
func TestLublinRepeats(t *testing.T) {
	for name, m := range map[string]Lublin{
		"lublin-untyped.swf": {Procs: 128}, "lublin-typed.swf": {Procs: 100, Typed: true},
		"lublin-small.swf": {Procs: 3, Typed: true},
	} {
		golden(t, name, written(Log{Records: firstJobs(m, 1, 50)}))
	}
}

// moments add up numbers.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) { m.n, m.sum, m.squares = m.n+1, m.sum+x, m.squares+x*x }

func (m *moments) mean() float64 { return m.sum / m.n }

func (m *moments) deviation() float64 {
	return math.Sqrt(max(m.squares/m.n-m.mean()*m.mean(), 0))
}

// statistics are what a log is compared by.
type statistics struct {
	means map[string]*moments
	runs  []float64
	hours [24]int
}

// measure draws jobs, and counts those of each queue apart.
func measure(m Lublin) (byQueue map[int64]*statistics, gaps []float64) {
	byQueue = map[int64]*statistics{}
	for seed := range uint64(statisticsSeeds) {
		last, of, n := Seconds(0), map[int64]Seconds{}, 0
		for r := range m.Records(seed + 1) {
			if byQueue[r.Queue] == nil {
				byQueue[r.Queue] = &statistics{means: map[string]*moments{}}
			}
			byQueue[r.Queue].count(r, float64(r.Submit-of[r.Queue]))
			gaps = append(gaps, float64(r.Submit-last))
			last, of[r.Queue] = r.Submit, r.Submit
			if n++; n == statisticsJobs {
				break
			}
		}
	}
	for _, s := range byQueue {
		slices.Sort(s.runs)
	}
	slices.Sort(gaps)
	return byQueue, gaps
}

func (s *statistics) add(name string, x float64) {
	if s.means[name] == nil {
		s.means[name] = &moments{}
	}
	s.means[name].add(x)
}

func (s *statistics) count(r Record, gap float64) {
	one := map[bool]float64{true: 1}
	size, run := float64(r.RequestedProcs), float64(r.Run)
	s.add("serial", one[size == 1])
	s.add("batch", one[r.Queue == queueBatch])
	s.add("size", size)
	s.add("run", run)
	s.add("area", size*run)
	s.add("gap", gap)
	s.add("ln run", math.Log(run))
	s.add(sizeClasses()[sizeClass(r.RequestedProcs)], math.Log(run))
	if size > 1 {
		s.add("powers of two", one[r.RequestedProcs&(r.RequestedProcs-1) == 0])
		s.add("log2 size", math.Log2(size))
	}
	s.runs = append(s.runs, run)
	s.hours[r.Submit/hour%24]++
}

// TestLublinStatistics draws jobs and compares them with the model in the long run, in
// standard errors, each class by itself: how many of each there are varies much more than
// what they are. With the tag e2e there are 400,000 jobs of three seeds.
func TestLublinStatistics(t *testing.T) {
	for _, c := range []struct {
		model    Lublin
		classes  []jobClass
		p50, p90 float64 // of gaps, in the reference
	}{
		{Lublin{Procs: 128}, []jobClass{untypedJobs()}, 116, 1235},
		{Lublin{Procs: 128, Typed: true}, []jobClass{batchJobs(), interactiveJobs()}, 51, 679},
	} {
		byQueue, gaps := measure(c.model)
		for _, class := range c.classes {
			t.Run(class.name, func(t *testing.T) {
				byQueue[class.queue].compare(t, theoryOf(class, 128).figures(128))
				byQueue[class.queue].compareHours(t, hourlyShares(class))
			})
		}
		compareGaps(t, gaps, c.p50, c.p90)
	}
}

// standardErrors is the number of standard errors that a figure may be off.
const standardErrors = 4

func (s *statistics) compare(t *testing.T, want map[string]float64) {
	t.Helper()
	check := func(name string, got, standardError float64) {
		off := (got - want[name]) / max(standardError, 1e-9)
		t.Logf("%-14s %10.4f, in the long run %10.4f: %+.1f standard errors", name, got, want[name], off)
		if math.Abs(off) > standardErrors {
			t.Errorf("%s: %v, in the long run %v", name, got, want[name])
		}
	}
	for name, m := range s.means {
		if name != "area" {
			check(name, m.mean(), m.deviation()/math.Sqrt(m.n))
		}
	}
	ln, area, gap := s.means["ln run"], s.means["area"], s.means["gap"]
	check("sd of ln run", ln.deviation(), ln.deviation()/math.Sqrt(ln.n))
	load := area.mean() / gap.mean() / 128
	check("load", load, load*math.Hypot(area.deviation()/area.mean(), gap.deviation()/gap.mean())/
		math.Sqrt(gap.n))
	for name, p := range runQuantiles() {
		below, _ := slices.BinarySearch(s.runs, want[name])
		upTo, _ := slices.BinarySearch(s.runs, want[name]+1)
		n := float64(len(s.runs))
		off := standardErrors * math.Sqrt(p*(1-p)*n)
		if float64(below) > p*n+off || float64(upTo) < p*n-off {
			t.Errorf("%s: %d of %.0f jobs are shorter than %v s, %d not longer",
				name, below, n, want[name], upTo)
		}
	}
}

// compareGaps allows the quantiles of gaps, of which there is no theory, a hundredth and what
// chance does to as many jobs.
func compareGaps(t *testing.T, gaps []float64, p50, p90 float64) {
	t.Helper()
	for p, want := range map[float64]float64{0.5: p50, 0.9: p90} {
		got := gaps[int(p*float64(len(gaps)))]
		t.Logf("gap p%.0f %v, reference %v", 100*p, got, want)
		if math.Abs(got/want-1) > 0.01+8/math.Sqrt(float64(len(gaps))) {
			t.Errorf("gap p%.0f: %v, want %v", 100*p, got, want)
		}
	}
}

// compareHours allows for arrivals in bursts: the jobs of an hour are counted as if one in
// eight came by itself.
func (s *statistics) compareHours(t *testing.T, want [24]float64) {
	t.Helper()
	n := float64(len(s.runs))
	for h, share := range want {
		got := float64(s.hours[h]) / n
		off := (got - share) / math.Sqrt(share*8/n)
		t.Logf("hour %2d %.4f, in the long run %.4f: %+.1f standard errors", h, got, share, off)
		if math.Abs(off) > standardErrors {
			t.Errorf("hour %d: %.4f of the jobs, in the long run %.4f", h, got, share)
		}
	}
}

func hourlyShares(c jobClass) (shares [24]float64) {
	a := newArrivals(c.gaps.law(nil), c.day.law(nil))
	for i, weight := range a.weights {
		shares[i/2] += weight / halfHours
	}
	return shares
}

// The law of the day is that of the table, and no half hour is lost.
func TestHoursOfTheDay(t *testing.T) {
	want := [24]float64{
		.0201, .0161, .0128, .0100, .0078, .0084, .0159, .0258, .0371, .0486, .0591, .0676,
		.0733, .0761, .0760, .0735, .0690, .0632, .0565, .0495, .0426, .0361, .0301, .0247,
	}
	total := 0.0
	for hour, share := range hourlyShares(untypedJobs()) {
		total += share
		if math.Abs(share-want[hour]) > 0.00006 {
			t.Errorf("hour %d: %.5f, want %.4f", hour, share, want[hour])
		}
	}
	if math.Abs(total-1) > 1e-12 {
		t.Errorf("all hours: %v", total)
	}
}

// constant is a law of one number.
type constant float64

func (c constant) Rand() float64 { return float64(c) }

// Half an hour's worth of points is used up where the weights say: a gap that spans half
// hours of different weights, and several in one of them, by hand.
func TestArrivalsFollowTheWeights(t *testing.T) {
	a := &arrivals{gaps: constant(math.Log(900))} // half a point each
	for i := range a.weights {
		a.weights[i] = 1
	}
	a.weights[0], a.weights[1], a.weights[47] = 0.25, 2, 0.5
	var got []float64
	for range 4 {
		a.advance()
		got = append(got, a.at)
	}
	// .25 of the first half hour, then four arrivals for each 2 points of the second.
	want := []float64{1800 + 1800*.125, 1800 + 1800*.375, 1800 + 1800*.625, 1800 + 1800*.875}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-6 {
			t.Errorf("arrivals %v, want %v", got, want)
			break
		}
	}
	// A day has 47.75 points, 45 half hours of one and three others: the 96th arrival uses up 48.
	for range 92 {
		a.advance()
	}
	if want := 1800 * (halfHours + 1); math.Abs(a.at-float64(want)) > 1e-6 {
		t.Errorf("the 96th arrival is at %v, want %v", a.at, want)
	}
}

// Sizes are at least 1 and at most the machine, whatever it is; jobs of the second stage are
// as wide as the machine, and on one of two processors a parallel job has both.
func TestSizesFitTheMachine(t *testing.T) {
	for _, procs := range []int{1, 2, 3, 4, 5, 8, 100, 128, 1 << 20} {
		for _, c := range []jobClass{untypedJobs(), batchJobs(), interactiveJobs()} {
			s := sizes{c.sizes.adapted(procs), rand.New(rand.NewPCG(1, 2))}
			widest, serial, powers := int64(0), 0, 0
			const n = 20_000
			for range n {
				size := s.draw()
				if size < 1 || size > int64(procs) {
					t.Fatalf("%s: a job of %d on %d processors", c.name, size, procs)
				}
				widest = max(widest, size)
				if size == 1 {
					serial++
				}
				if size&(size-1) == 0 {
					powers++
				}
			}
			if procs > 1 && math.Abs(float64(serial)/n-c.sizes.serial) > 0.02 {
				t.Errorf("%s on %d: %d of %d serial", c.name, procs, serial, n)
			}
			if float64(powers)/n < c.sizes.serial+c.sizes.power-0.02 {
				t.Errorf("%s on %d: %d of %d powers of two", c.name, procs, powers, n)
			}
			if want := math.Exp2(s.law.high); float64(widest) < 0.7*want {
				t.Errorf("%s on %d: the widest job of %d has %d, want about %.0f",
					c.name, procs, n, widest, want)
			}
		}
	}
}

// The bounds of sizes move with the machine.
func TestSizesAreAdapted(t *testing.T) {
	for _, c := range []struct {
		law               sizeLaw
		procs             int
		low, medium, high float64
	}{
		{untypedJobs().sizes, 128, 0.8, 4.5, 7},
		{untypedJobs().sizes, 64, 0.8, 3.5, 6},
		{untypedJobs().sizes, 1024, 0.8, 7.5, 10},
		{untypedJobs().sizes, 2, 0.8, 0.8, 1},
		{untypedJobs().sizes, 1, 0, 0, 0},
		{untypedJobs().sizes, 0, 0, 0, 0},
		{batchJobs().sizes, 128, 1.2, 5, 7},
		{interactiveJobs().sizes, 128, 1, 3, 5.5},
		{interactiveJobs().sizes, 16, 1, 1, 2.5},
		{interactiveJobs().sizes, 4, 1, 1, 1},
	} {
		got := c.law.adapted(c.procs)
		if got.low != c.low || got.medium != c.medium || got.high != c.high {
			t.Errorf("on %d processors: %+v, want %v, %v, %v", c.procs, got, c.low, c.medium, c.high)
		}
	}
}

// An untyped job is in no queue, and of typed ones each kind has its own.
func TestQueuesOfJobs(t *testing.T) {
	seen := map[int64]int{}
	for _, r := range firstJobs(Lublin{Procs: 8, Typed: true}, 3, 400) {
		seen[r.Queue]++
	}
	if len(seen) != 2 || seen[0] < seen[1] || seen[1] == 0 {
		t.Errorf("queues of typed jobs: %v", seen)
	}
	for _, r := range firstJobs(Lublin{Procs: 8}, 3, 40) {
		if r.Queue != -1 {
			t.Fatalf("an untyped job in queue %d", r.Queue)
		}
	}
}

// A number above the bound is drawn again, one at the bound is not.
func TestDrawAtMost(t *testing.T) {
	numbers := rander{13, 12.5, 12, 11}
	for _, want := range []float64{12, 11} {
		if got := drawAtMost(&numbers, 12); got != want {
			t.Errorf("drew %v, want %v", got, want)
		}
	}
}

type rander []float64

func (r *rander) Rand() float64 {
	x := (*r)[0]
	*r = (*r)[1:]
	return x
}

// sizeClass is the place of a size among those by which run times are compared.
func sizeClass(size int64) int {
	return min((bits.Len64(uint64(size-1))+1)/2, 4)
}
