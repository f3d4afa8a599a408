package nodes

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The tests named after the paper, the thesis, hold what its rules give.

// Equation (3) as printed stays below 1 and equals its closed form, but is not the
// probability of a failure, and falls where failures get more frequent.
func TestPaperEquation3(t *testing.T) {
	for _, c := range []struct {
		lambda, want float64
	}{{1, 0.92067}, {2, 0.72406}, {5, 0.1707}, {10, 0.00454}} {
		sum, err := avail.FailureSum(c.lambda, 10_000)
		if err != nil || math.Abs(sum-c.want) > 5e-5 {
			t.Errorf("lambda %v: %v, %v, want %v", c.lambda, sum, err, c.want)
		}
	}
	for _, c := range []struct {
		u, printed, failure float64
	}{{0.01, 5.0e-5, 9.95e-3}, {0.1, 0.00468, 0.0952}, {1, 0.264, 0.632}, {5, 0.960, 0.993}} {
		const n = 100_000 // steps so short that the sum is near its limit
		printed, _ := avail.FailureSum(c.u/n, n)
		failure, _ := avail.FailureProbability(c.u/n, n)
		if math.Abs(printed-c.printed) > 0.01*c.printed || math.Abs(failure-c.failure) > 0.01*c.failure {
			t.Errorf("u = %v: printed %v, failure %v, want %v and %v",
				c.u, printed, failure, c.printed, c.failure)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		lambda := rapid.OneOf(rapid.Float64Range(1e-3, 20), rapid.Float64Range(0, 1e300)).
			Draw(t, "lambda")
		n := rapid.OneOf(rapid.Int64Range(0, 3000), rapid.Just(int64(math.MaxInt64))).Draw(t, "n")
		closed, err := avail.FailureSumClosed(lambda, n)
		limit := lambda / 2 / math.Sinh(lambda/2)
		if err != nil || closed > 1 || lambda > 1e-3 && closed == 1 ||
			lambda > 0 && closed > limit*limit*(1+1e-9)+1e-12 {
			t.Errorf("FailureSumClosed(%v, %d) = %v, %v, limit %v", lambda, n, closed, err, limit*limit)
		}
		erlang, err := Erlang2(lambda, n)
		if err != nil || !(erlang >= 0 && erlang <= 1) {
			t.Errorf("Erlang2(%v, %d) = %v, %v", lambda, n, erlang, err)
		}
		age := rapid.Int64Range(0, math.MaxInt64).Draw(t, "age")
		paper, fixed, err := avail.NodeUp(lambda, 0, age, n)
		if err != nil || !(paper >= 0 && paper <= 1 && fixed >= 0 && fixed <= 1) {
			t.Errorf("NodeUp of age %d = %v, %v, %v", age, paper, fixed, err)
		}
	})
}

// With a falling failure rate an old node is a good one, with a rising rate a bad
// one. The thesis' equation (9) calls every old node bad.
func TestSurvivalFollowsAge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SampledFrom([]float64{0.3, 0.5, 0.9, 1, 1.1, 2, 4}).Draw(t, "shape")
		w := Weibull{shape, 1000}
		age := rapid.Float64Range(0.1, 2000).Draw(t, "age")
		older := age * rapid.Float64Range(1.1, 4).Draw(t, "older")
		young, _ := Survival(w, age, 10)
		old, _ := Survival(w, older, 10)
		switch {
		case shape < 1 && old <= young, shape > 1 && old >= young, shape == 1 && !near(old, young):
			t.Errorf("shape %v: survival %v at age %v, %v at age %v", shape, young, age, old, older)
		}
		before, _, _ := avail.NodeUp(0.001, 0, int64(age), 10)
		if after, _, _ := avail.NodeUp(0.001, 0, int64(older), 10); after > before {
			t.Errorf("equation (9): %v at age %v, %v at age %v", before, age, after, older)
		}
	})
}

// candidate is a node of the experiment below.
type candidate struct {
	mttf, survives, paper float64
}

// fleet is 128 nodes of a Weibull shape of .5 whose mean lifetimes differ by up to
// a factor of four, at the ages that such nodes are seen at; tau is a tenth of the
// mean.
func fleet(r *rand.Rand) []candidate {
	const shape, steps = 0.5, 100 // steps per tau
	nodes := make([]candidate, 128)
	for i := range nodes {
		mttf := math.Exp((2*r.Float64() - 1) * math.Ln2)
		scale := mttf / math.Gamma(1+1/shape)
		// A lifetime that is being looked at is likelier a long one: its hazard has a
		// Gamma distribution of 1 + 1/shape = 3. The age is anywhere within.
		seen := -math.Log((1 - r.Float64()) * (1 - r.Float64()) * (1 - r.Float64()))
		age := scale * math.Pow(seen, 1/shape) * r.Float64()
		nodes[i].mttf = mttf
		nodes[i].survives, _ = Survival(Weibull{shape, scale}, age, 0.1)
		nodes[i].paper, _, _ = avail.NodeUp(0.1/mttf/steps, 0, int64(age*10*steps), steps)
	}
	return nodes
}

// joint is the probability that the first 16 nodes all stay up, if those with the
// greatest key come first.
func joint(nodes []candidate, key func(candidate) float64) float64 {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b candidate) int { return cmp.Compare(key(b), key(a)) })
	product := 1.0
	for _, n := range sorted[:16] {
		product *= n.survives
	}
	return product
}

// A job on 16 of 128 nodes: chosen by conditional survival it lasts in 3 of 4
// cases, by the thesis' equation (9) in 3 of 100, which is worse than by chance.
func TestChoosing16Of128(t *testing.T) {
	const rounds = 100
	r := rand.New(rand.NewPCG(16, 128))
	var conditional, rate, chance, paper float64
	for range rounds {
		nodes := fleet(r)
		conditional += joint(nodes, func(c candidate) float64 { return c.survives }) / rounds
		rate += joint(nodes, func(c candidate) float64 { return c.mttf }) / rounds
		chance += joint(nodes, func(candidate) float64 { return 0 }) / rounds
		paper += joint(nodes, func(c candidate) float64 { return c.paper }) / rounds
	}
	t.Logf("conditional %.3f, rate only %.3f, chance %.3f, equation (9) %.3f",
		conditional, rate, chance, paper)
	if conditional < 0.70 || paper > 0.05 || !(conditional > rate && rate > chance && chance > paper) {
		t.Errorf("conditional %v, rate only %v, chance %v, equation (9) %v",
			conditional, rate, chance, paper)
	}
}

// "the probability of this set of resources remaining in the UP state" (thesis,
// 3.2.2): for 50 nodes that fail every other step equation (9) is almost 1.
func TestPaperEquation9(t *testing.T) {
	nodes := slices.Repeat([]avail.UpNode{{FailuresPerStep: 0.5, UpSteps: 1}}, 50)
	s, err := SetUp(nodes, 1, 50)
	if err != nil || s.Paper < 0.999 || s.All > 1e-10 || !near(s.Quorum, s.All) {
		t.Errorf("%+v, %v", s, err)
	}
	empty, err := SetUp(nil, 5, 0)
	if diff := gocmp.Diff(UpSet{Paper: 0, All: 1, Any: 0, Quorum: 1}, empty); err != nil ||
		diff != "" {
		t.Errorf("no nodes: %v, %s", err, diff)
	}
	recovering, err := SetRecover(nil, 5)
	if diff := gocmp.Diff(RecoveringSet{Paper: 1, All: 1}, recovering); err != nil || diff != "" {
		t.Errorf("no nodes: %v, %s", err, diff)
	}
}

// "the General Availability Equation" (thesis, 3.2.2) and the expected share of
// nodes; "reject the submissions of job requirements that are larger" (3.3.1).
func TestPaperGAEAndSAA(t *testing.T) {
	cycles := []avail.Cycle{{MTTFSeconds: 1000, MTTRSeconds: 1000}, {MTTFSeconds: 9, MTTRSeconds: 1}}
	gae, err1 := GeneralAvailability(cycles)
	mean, err2 := avail.MeanAvailability(cycles, nil)
	weighted, err3 := avail.MeanAvailability(cycles, []float64{3, 1})
	if err := errors.Join(err1, err2, err3); err != nil || math.Abs(gae-0.502) > 1e-3 ||
		!near(mean, 0.7) || !near(weighted, 0.6) {
		t.Errorf("GAE %v, mean %v, weighted %v, %v", gae, mean, weighted, err)
	}
	inf := math.Inf(1)
	for _, c := range []struct {
		request, total, alpha float64
		want                  bool
	}{
		{29, 100, 0.29, true},
		{29.1, 100, 0.29, false},
		{70, 100, 0.7, true},
		{0, 0, 0.5, true},
		{1, inf, 0, false},
		{1, inf, 0.1, true},
	} {
		if got, err := avail.SAA(c.request, c.total, c.alpha); err != nil || got != c.want {
			t.Errorf("SAA(%v, %v, %v) = %v, %v", c.request, c.total, c.alpha, got, err)
		}
	}
}

// "a sorted set of nodes with decreasing probability of staying in the UP state"
// (thesis, 3.3.1).
func TestPaperNAAAndNSA(t *testing.T) {
	nodes := []avail.Standing{
		{Site: "c", Up: true, PUp: 0.5},
		{Site: "down", PUp: 0.99},
		{Site: "b", Up: true, PUp: 0.5},
		{Site: "a", Up: true, PUp: 0.9},
	}
	for _, c := range []struct {
		need     int
		alpha    float64
		naa, nsa []grid.SiteID
	}{
		{2, 0.5, []grid.SiteID{"a", "b"}, []grid.SiteID{"a", "b"}},
		{3, 0.5, []grid.SiteID{"a", "b", "c"}, nil},
		{4, 1, nil, nil},
		{0, 0, []grid.SiteID{}, []grid.SiteID{}},
	} {
		naa, _, err1 := avail.NAA(nodes, c.need)
		nsa, _, err2 := NSA(nodes, c.need, c.alpha)
		err := errors.Join(err1, err2)
		if err != nil || gocmp.Diff(c.naa, naa) != "" || gocmp.Diff(c.nsa, nsa) != "" {
			t.Errorf("need %d, alpha %v: %v and %v, %v", c.need, c.alpha, naa, nsa, err)
		}
	}
}
