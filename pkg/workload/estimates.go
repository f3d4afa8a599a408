package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// errEstimates refuses a longest estimate that is too short for the model.
var errEstimates = errors.New("want an hour to 2^40 seconds as the longest estimate")

// Units of estimates, in seconds.
const (
	minute Seconds = 60
	hour           = 60 * minute
)

// Estimate gives every record a user's estimate of its run time, after D. Tsafrir, Y. Etsion
// and D. G. Feitelson ("Modeling User Runtime Estimates", JSSPP 2005): few distinct values,
// twenty of which, round ones, get 89 % of the jobs. A run time above the longest estimate
// is cut down to it; a record's estimate is at least its run time.
//
// How popular each popular value is the model takes from a table of four logs; here small
// values tend to be popular, and the longest one is the most popular.
func Estimate(records []Record, longest Seconds, seed uint64) error {
	if longest < hour || longest >= limit {
		return fmt.Errorf("%w, have %d s", errEstimates, longest)
	}
	rng := Stream(seed, "estimates")
	for i := range records {
		records[i].Run = min(records[i].Run, longest)
	}
	match(records, spread(popularities(len(records), longest, rng), len(records)), rng)
	return nil
}

// popularity is a value with the share of jobs that get it.
type popularity struct {
	estimate Seconds
	share    float64
}

const (
	popular      = 20   // values in the head
	popularShare = 0.89 // of the jobs get one of them
)

// popularities are the values with their shares, which add up to 1.
func popularities(jobs int, longest Seconds, rng *rand.Rand) []popularity {
	distinct := max(distinctEstimates(jobs), 1)
	head := byPopularity(roundTimes(longest), rng)
	head = head[:min(len(head), distinct)]
	values := make([]popularity, 0, distinct)
	for i, share := range headShares(len(head)) {
		values = append(values, popularity{head[i], share})
	}
	tail := tailTimes(longest, distinct, head)
	rng.Shuffle(len(tail), func(i, j int) { tail[i], tail[j] = tail[j], tail[i] })
	for i, t := range tail {
		values = append(values, popularity{t, 795.6 * math.Pow(float64(popular+1+i), -2.267)})
	}
	normalise(values[len(head):], 1-popularShare)
	if len(tail) == 0 {
		normalise(values, 1)
	}
	return values
}

func normalise(values []popularity, to float64) {
	total := 0.0
	for _, v := range values {
		total += v.share
	}
	for i := range values {
		values[i].share *= to / total
	}
}

// distinctEstimates is the number of distinct values in a log of so many jobs: linear
// between points.
func distinctEstimates(jobs int) int {
	points := [...]struct{ jobs, values float64 }{
		{0, 0}, {20, 10}, {200, 20}, {1000, 35}, {10_000, 90}, {70_000, 340}, {250_000, 565},
	}
	n := float64(jobs)
	for i := 1; i < len(points); i++ {
		if a, b := points[i-1], points[i]; n <= b.jobs {
			return int(math.Round(a.values + (b.values-a.values)*(n-a.jobs)/(b.jobs-a.jobs)))
		}
	}
	return int(points[len(points)-1].values)
}

// roundTimes are the popular values, ascending: the longest estimate, usual ones below it,
// and, until there are enough, multiples of ever smaller round times.
func roundTimes(longest Seconds) []Seconds {
	values := []Seconds{longest}
	add := func(t Seconds) {
		if t > 0 && t < longest && len(values) < popular && !slices.Contains(values, t) {
			values = append(values, t)
		}
	}
	for _, t := range []Seconds{
		5 * minute, 10 * minute, 15 * minute, 20 * minute, 30 * minute, hour, 2 * hour, 3 * hour,
		4 * hour, 5 * hour, 6 * hour, 8 * hour, 10 * hour, 12 * hour, 18 * hour,
	} {
		add(t)
	}
	for _, step := range []Seconds{
		200 * hour, 100 * hour, 50 * hour, 10 * hour, 5 * hour, 2 * hour, hour,
		20 * minute, 10 * minute, 5 * minute, minute,
	} {
		for t := longest / step * step; t > 0 && len(values) < popular; t -= step {
			add(t)
		}
	}
	slices.Sort(values)
	return values
}

// byPopularity puts the longest value first, and the others in a random order in which
// small ones tend to stand first.
func byPopularity(ascending []Seconds, rng *rand.Rand) []Seconds {
	type ranked struct {
		estimate Seconds
		rank     float64
	}
	last := len(ascending) - 1
	all := []ranked{{ascending[last], -1}}
	for i, t := range ascending[:last] {
		all = append(all, ranked{t, float64(i)/float64(last) + rng.Float64()})
	}
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	values := make([]Seconds, 0, len(all))
	for _, r := range all {
		values = append(values, r.estimate)
	}
	return values
}

// headShares are the shares of the most popular values, the most popular one first.
func headShares(n int) []float64 {
	shares := make([]float64, popular)
	shares[0] = popularShare
	for i := 1; i < popular; i++ {
		shares[i] = (14.0491*math.Exp(-0.177531*float64(i+1)) + 0.462513) / 100
		shares[0] -= shares[i]
	}
	return shares[:n]
}

// tailTimes are the unpopular values: more of them among small times, whole minutes where
// they are not taken yet.
func tailTimes(longest Seconds, distinct int, head []Seconds) []Seconds {
	taken := make(map[Seconds]bool, distinct)
	for _, t := range head {
		taken[t] = true
	}
	n := distinct - popular
	a := 1 + 12.1039*math.Pow(float64(distinct), -0.6026)
	var values []Seconds
	for i := 1; i <= n; i++ {
		x := float64(i) / float64(n)
		t := Seconds(math.Round(float64(longest)*(a-1)*x/(a-x)/float64(minute))) * minute
		if near, free := nearest(t, longest, taken); free {
			taken[near] = true
			values = append(values, near)
		}
	}
	return values
}

// nearest looks for a value within half a minute that nobody has taken.
func nearest(t, longest Seconds, taken map[Seconds]bool) (Seconds, bool) {
	for off := range minute/2 + 1 {
		for _, near := range [...]Seconds{t - off, t + off} {
			if near > 0 && near <= longest && !taken[near] {
				return near, true
			}
		}
	}
	return 0, false
}

// spread gives each of the jobs one of the values, by their shares as exactly as whole jobs
// can have them, and returns them in descending order.
func spread(values []popularity, jobs int) []Seconds {
	estimates := make([]Seconds, 0, jobs)
	sum := 0.0
	for i, v := range values {
		sum += v.share
		upTo := min(int(math.Round(sum*float64(jobs))), jobs)
		if i == len(values)-1 {
			upTo = jobs
		}
		for len(estimates) < upTo {
			estimates = append(estimates, v.estimate)
		}
	}
	slices.SortFunc(estimates, func(a, b Seconds) int { return cmp.Compare(b, a) })
	return estimates
}

// match gives each record one of the estimates, at least its run time: of all ways to do so
// each is as likely. Where too few estimates are long enough, one that is too short becomes
// the next longer value.
func match(records []Record, descending []Seconds, rng *rand.Rand) {
	order := make([]int, len(records))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(records[b].Run, records[a].Run)
	})
	var feasible []Seconds // not given to anyone yet
	next := 0
	longEnough := Seconds(0) // the shortest value that is long enough so far
	for _, i := range order {
		for next < len(descending) && descending[next] >= records[i].Run {
			longEnough = descending[next]
			feasible = append(feasible, longEnough)
			next++
		}
		if len(feasible) == 0 {
			feasible = append(feasible, longEnough)
			next++
		}
		pick := rng.IntN(len(feasible))
		last := len(feasible) - 1
		records[i].RequestedTime = feasible[pick]
		feasible[pick] = feasible[last]
		feasible = feasible[:last]
	}
}
