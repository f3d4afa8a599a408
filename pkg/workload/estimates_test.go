package workload

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the run times, each estimate is at least one's run time and at most the longest;
// nothing else of a record changes.
func TestEstimatesAreFeasible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		longest := Seconds(rapid.Int64Range(3600, 1_000_000).Draw(t, "longest"))
		runs := rapid.SliceOfN(rapid.Int64Range(-1, 1_200_000), 0, 300).Draw(t, "runs")
		var records []Record
		for i, run := range runs {
			records = append(records, Record{ID: int64(i), Run: Seconds(run), Wait: -1})
		}
		if err := Estimate(records, longest, rapid.Uint64().Draw(t, "seed")); err != nil {
			t.Fatal(err)
		}
		for i, r := range records {
			want := Record{
				ID: int64(i), Run: min(Seconds(runs[i]), longest), RequestedTime: r.RequestedTime, Wait: -1,
			}
			if r != want || r.RequestedTime < max(r.Run, 1) || r.RequestedTime > longest {
				t.Fatalf("record %+v of a run of %d, at most %d", r, runs[i], longest)
			}
		}
	})
}

// The same seed gives the same estimates, which can be looked at in testdata: enough jobs for
// one value that is not popular.
func TestEstimatesRepeat(t *testing.T) {
	records := firstJobs(Lublin{Procs: 128}, 1, 300)
	if err := Estimate(records, 20*hour, 1); err != nil {
		t.Fatal(err)
	}
	golden(t, "lublin-estimates.swf", written(Log{Records: records}))
}

func TestEstimateRefuses(t *testing.T) {
	for _, longest := range []Seconds{-1, 0, 3599, limit} {
		if err := Estimate(nil, longest, 1); !errors.Is(err, errEstimates) ||
			!strings.Contains(err.Error(), fmt.Sprintf("have %d s", longest)) {
			t.Errorf("%d: error = %v", longest, err)
		}
	}
	for _, longest := range []Seconds{3600, limit - 1} {
		records := []Record{{Run: 1}}
		if err := Estimate(records, longest, 1); err != nil || records[0].RequestedTime != longest {
			t.Errorf("%d: %v, %+v", longest, err, records)
		}
	}
}

// 70,000 jobs of the model: the twenty popular values get 89 %, the longest the most; there
// are about as many values as real logs have, most of them small, and whole minutes.
func TestEstimatesAreLikeReal(t *testing.T) {
	const n, longest = 70_000, 48 * hour
	records := firstJobs(Lublin{Procs: 128}, 5, n)
	if err := Estimate(records, longest, 5); err != nil {
		t.Fatal(err)
	}
	count := map[Seconds]int{}
	for _, r := range records {
		count[r.RequestedTime]++
	}
	head := 0
	for _, value := range roundTimes(longest) {
		head += count[value]
	}
	if share := float64(head) / n; math.Abs(share-popularShare) > 0.001 {
		t.Errorf("popular values get %.4f of the jobs", share)
	}
	most, mostValue := 0, Seconds(0)
	whole, small := 0, 0
	for _, value := range sortedKeys(count) {
		if count[value] > most {
			most, mostValue = count[value], value
		}
		if value%minute == 0 {
			whole++
		}
		if value < longest/4 {
			small++
		}
	}
	if mostValue != longest || math.Abs(float64(most)/n-0.2173) > 0.001 {
		t.Errorf("the most popular value is %d, with %d jobs", mostValue, most)
	}
	if len(count) < 330 || len(count) > 340 || whole < 300 || small < 150 {
		t.Errorf("%d values, %d of them whole minutes, %d small", len(count), whole, small)
	}
}

func sortedKeys(count map[Seconds]int) []Seconds {
	var keys []Seconds
	for k := range count {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func TestDistinctEstimates(t *testing.T) {
	for jobs, want := range map[int]int{
		0: 0, 1: 1, 2: 1, 10: 5, 20: 10, 110: 15, 200: 20, 600: 28, 1000: 35, 10_000: 90,
		40_000: 215, 70_000: 340, 250_000: 565, 250_001: 565, 10_000_000: 565,
		29: 11, 5500: 63, 10_120: 91, 70_400: 341, // exactly half, so that any other point shows
	} {
		if got := distinctEstimates(jobs); got != want {
			t.Errorf("%d jobs: %d values, want %d", jobs, got, want)
		}
	}
}

func TestRoundTimes(t *testing.T) {
	const h = hour
	m := func(minutes ...Seconds) (values []Seconds) {
		for _, x := range minutes {
			values = append(values, x*minute)
		}
		return values
	}
	for longest, want := range map[Seconds][]Seconds{
		// All usual ones below it, then multiples of 20 min, 10 min, 5 min, and 1 min.
		h: m(5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60),
		// 48 h: sixteen, then 40 and 30 and 20 h, then 45 h.
		48 * h: append(m(5, 10, 15, 20, 30), h, 2*h, 3*h, 4*h, 5*h, 6*h, 8*h, 10*h, 12*h, 18*h,
			20*h, 30*h, 40*h, 45*h, 48*h),
		// 500 h: 400, 200, 300 and 100 h.
		500 * h: append(m(5, 10, 15, 20, 30), h, 2*h, 3*h, 4*h, 5*h, 6*h, 8*h, 10*h, 12*h, 18*h,
			200*h, 300*h, 400*h, 100*h, 500*h),
	} {
		slices.Sort(want)
		if got := roundTimes(longest); !slices.Equal(got, want) {
			t.Errorf("%d s: %v, want %v", longest, got, want)
		}
	}
}

// The longest value is the most popular, and small ones tend to be more popular than large
// ones, in an order that differs between seeds.
func TestOrderOfPopularity(t *testing.T) {
	values := roundTimes(48 * hour)
	var ranks [popular]float64
	orders := map[string]bool{}
	const seeds = 400
	for seed := range uint64(seeds) {
		order := byPopularity(values, Stream(seed, "x"))
		orders[fmt.Sprint(order)] = true
		if order[0] != 48*hour {
			t.Fatalf("the most popular value is %d", order[0])
		}
		for rank, value := range order {
			ranks[slices.Index(values, value)] += float64(rank) / seeds
		}
	}
	if len(orders) < seeds/2 {
		t.Errorf("%d orders of %d seeds", len(orders), seeds)
	}
	for i := range popular - 6 {
		if ranks[i] >= ranks[i+5] {
			t.Errorf("mean rank of value %d is %.1f, of value %d %.1f", i, ranks[i], i+5, ranks[i+5])
		}
	}
	if ranks[0] < 2 || ranks[popular-2] > 18.5 {
		t.Errorf("mean ranks %v: nothing is left to chance", ranks)
	}
}

// Shares of the head, by the formula of the model.
func TestHeadShares(t *testing.T) {
	shares := headShares(popular)
	total := 0.0
	for _, s := range shares {
		total += s
	}
	if len(headShares(3)) != 3 || math.Abs(total-0.89) > 1e-12 ||
		math.Abs(shares[0]-0.2170) > 0.001 || math.Abs(shares[1]-0.103133) > 1e-5 ||
		math.Abs(shares[19]-0.008658) > 1e-5 {
		t.Errorf("shares %v, together %v", shares, total)
	}
}

// All shares are 1 together, in logs of any size.
func TestPopularitiesAddUp(t *testing.T) {
	for _, jobs := range []int{0, 1, 5, 20, 199, 200, 210, 1000, 300_000} {
		values := popularities(jobs, 20*hour, Stream(1, "x"))
		total, seen := 0.0, map[Seconds]bool{}
		for _, v := range values {
			total += v.share
			if seen[v.estimate] || v.estimate < 1 || v.estimate > 20*hour || v.share <= 0 {
				t.Fatalf("%d jobs: a value of %d with a share of %v", jobs, v.estimate, v.share)
			}
			seen[v.estimate] = true
		}
		if math.Abs(total-1) > 1e-9 || len(values) > max(distinctEstimates(jobs), 1) ||
			len(values) < min(max(distinctEstimates(jobs), 1), 550) {
			t.Errorf("%d jobs: %d values, together %v", jobs, len(values), total)
		}
		if head := len(values); head > popular {
			tail := 0.0
			for _, v := range values[popular:] {
				tail += v.share
			}
			falls := values[popular].share > values[head-1].share
			if math.Abs(tail-0.11) > 1e-9 || !falls && head > popular+1 {
				t.Errorf("%d jobs: the tail has %v", jobs, tail)
			}
		}
	}
}

// The tail's values lie on the model's curve, and move to the nearest free second.
func TestTailTimes(t *testing.T) {
	const longest, distinct = 100 * hour, 120
	a := 1 + 12.1039*math.Pow(distinct, -0.6026)
	values := tailTimes(longest, distinct, []Seconds{longest})
	if len(values) != distinct-popular {
		t.Fatalf("%d values", len(values))
	}
	for i, got := range values {
		x := float64(i+1) / (distinct - popular)
		want := float64(longest) * (a - 1) * x / (a - x)
		if math.Abs(float64(got)-want) > 30.5 {
			t.Errorf("value %d is %d, the curve has %.0f", i, got, want)
		}
	}
	if last := values[len(values)-1]; last != longest-1 {
		t.Errorf("the last value is %d: the longest one is taken", last)
	}
	if got := tailTimes(longest, popular, nil); got != nil {
		t.Errorf("a log of twenty values has a tail: %v", got)
	}
}

func TestNearestFreeValue(t *testing.T) {
	taken := map[Seconds]bool{}
	take := func(at, longest Seconds) (got []Seconds) {
		for {
			v, free := nearest(at, longest, taken)
			if !free {
				return got
			}
			taken[v] = true
			got = append(got, v)
		}
	}
	if got := take(600, 601); len(got) != 32 || got[0] != 600 || got[1] != 599 || got[2] != 601 ||
		got[31] != 570 {
		t.Errorf("near 600: %v", got)
	}
	if got := take(0, 601); len(got) != 30 || got[0] != 1 || got[29] != 30 {
		t.Errorf("near 0: %v", got)
	}
	if v, free := nearest(600, 601, taken); free || v != 0 {
		t.Errorf("all are taken, but %d", v)
	}
}

// Shares become whole jobs: none is lost, and none is more than one off.
func TestSpread(t *testing.T) {
	values := []popularity{{10, 0.5}, {30, 0.3}, {20, 0.2}}
	for jobs, want := range map[int][]Seconds{
		0: {}, 1: {10}, 2: {30, 10}, 10: {30, 30, 30, 20, 20, 10, 10, 10, 10, 10},
	} {
		if got := spread(values, jobs); !slices.Equal(got, want) {
			t.Errorf("%d jobs: %v, want %v", jobs, got, want)
		}
	}
	if got := spread([]popularity{{5, 0.6}, {6, 0.6}}, 4); !slices.Equal(got, []Seconds{6, 6, 5, 5}) {
		t.Errorf("shares of more than 1: %v", got)
	}
	if got := spread([]popularity{{5, 0.1}, {6, 0.1}}, 4); !slices.Equal(got, []Seconds{6, 6, 6, 6}) {
		t.Errorf("shares of less than 1: %v", got)
	}
}

// Of all ways to match each is as likely; here there are two.
func TestMatchIsFair(t *testing.T) {
	first := 0
	const tries = 2000
	for seed := range uint64(tries) {
		records := []Record{{Run: 3}, {Run: 8}, {Run: 2}}
		match(records, []Seconds{9, 5, 4}, Stream(seed, "x"))
		if records[1].RequestedTime != 9 || records[0].RequestedTime+records[2].RequestedTime != 9 {
			t.Fatalf("records %+v", records)
		}
		if records[0].RequestedTime == 5 {
			first++
		}
	}
	if first < tries*45/100 || first > tries*55/100 {
		t.Errorf("the first job got the longer estimate %d times of %d", first, tries)
	}
}

// Where estimates are too short, the shortest one that was long enough serves again.
func TestMatchWithoutEnoughLongEstimates(t *testing.T) {
	records := []Record{{Run: 8}, {Run: 6}, {Run: 1}, {Run: 7}}
	match(records, []Seconds{9, 6, 4, 2}, Stream(1, "x"))
	var got []Seconds
	for _, r := range records {
		got = append(got, r.RequestedTime)
	}
	// 8 takes the 9, and 7 another one in the place of the 6; 4 is too short for 6 as well.
	if !slices.Equal(got, []Seconds{9, 9, 2, 9}) {
		t.Errorf("estimates %v", got)
	}
	equal := []Record{{Run: 4}}
	match(equal, []Seconds{4}, Stream(1, "x"))
	if equal[0].RequestedTime != 4 {
		t.Errorf("an estimate that is just enough: %+v", equal)
	}
}
