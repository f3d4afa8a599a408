package avail

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The tests named after the paper, the thesis, hold what its rules give. Numbers
// computed by a second implementation are compared in internal/vectors.

// Equation (3) as printed stays below 1 and equals its closed form, but is not the
// probability of a failure, and falls where failures get more frequent.
func TestPaperEquation3(t *testing.T) {
	for _, c := range []struct{ lambda, want float64 }{{1, 0.92067}, {2, 0.72406}, {5, 0.1707}, {10, 0.00454}} {
		sum, err := FailureSum(c.lambda, 10_000)
		if err != nil || math.Abs(sum-c.want) > 5e-5 {
			t.Errorf("lambda %v: %v, %v, want %v", c.lambda, sum, err, c.want)
		}
	}
	for _, c := range []struct {
		u, printed, failure float64
	}{{0.01, 5.0e-5, 9.95e-3}, {0.1, 0.00468, 0.0952}, {1, 0.264, 0.632}, {5, 0.960, 0.993}} {
		const n = 100_000 // steps so short that the sum is near its limit
		printed, _ := FailureSum(c.u/n, n)
		failure, _ := FailureProbability(c.u/n, n)
		if math.Abs(printed-c.printed) > 0.01*c.printed || math.Abs(failure-c.failure) > 0.01*c.failure {
			t.Errorf("u = %v: printed %v, failure %v, want %v and %v", c.u, printed, failure, c.printed, c.failure)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		lambda := rapid.OneOf(rapid.Float64Range(1e-3, 20), rapid.Float64Range(0, 1e300)).Draw(t, "lambda")
		n := rapid.OneOf(rapid.Int64Range(0, 3000), rapid.Just(int64(math.MaxInt64))).Draw(t, "n")
		closed, err := FailureSumClosed(lambda, n)
		limit := lambda / 2 / math.Sinh(lambda/2)
		if err != nil || closed > 1 || lambda > 1e-3 && closed == 1 || lambda > 0 && closed > limit*limit*(1+1e-9)+1e-12 {
			t.Errorf("FailureSumClosed(%v, %d) = %v, %v, limit %v", lambda, n, closed, err, limit*limit)
		}
		erlang, err := Erlang2(lambda, n)
		if err != nil || !(erlang >= 0 && erlang <= 1) {
			t.Errorf("Erlang2(%v, %d) = %v, %v", lambda, n, erlang, err)
		}
		age := rapid.Int64Range(0, math.MaxInt64).Draw(t, "age")
		paper, fixed, err := NodeUp(lambda, 0, age, n)
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
		before, _, _ := NodeUp(0.001, 0, int64(age), 10)
		if after, _, _ := NodeUp(0.001, 0, int64(older), 10); after > before {
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
		nodes[i].paper, _, _ = NodeUp(0.1/mttf/steps, 0, int64(age*10*steps), steps)
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
	t.Logf("conditional %.3f, rate only %.3f, chance %.3f, equation (9) %.3f", conditional, rate, chance, paper)
	if conditional < 0.70 || paper > 0.05 || !(conditional > rate && rate > chance && chance > paper) {
		t.Errorf("conditional %v, rate only %v, chance %v, equation (9) %v", conditional, rate, chance, paper)
	}
}

// "the probability of this set of resources remaining in the UP state" (thesis,
// 3.2.2): for 50 nodes that fail every other step equation (9) is almost 1.
func TestPaperEquation9(t *testing.T) {
	nodes := slices.Repeat([]UpNode{{FailuresPerStep: 0.5, UpSteps: 1}}, 50)
	s, err := SetUp(nodes, 1, 50)
	if err != nil || s.Paper < 0.999 || s.All > 1e-10 || !near(s.Quorum, s.All) {
		t.Errorf("%+v, %v", s, err)
	}
	empty, err := SetUp(nil, 5, 0)
	if diff := gocmp.Diff(UpSet{Paper: 0, All: 1, Any: 0, Quorum: 1}, empty); err != nil || diff != "" {
		t.Errorf("no nodes: %v, %s", err, diff)
	}
	recovering, err := SetRecover(nil, 5)
	if diff := gocmp.Diff(RecoveringSet{Paper: 1, All: 1}, recovering); err != nil || diff != "" {
		t.Errorf("no nodes: %v, %s", err, diff)
	}
}

// Equation (11) prints the number of nodes up now, whatever happens to them.
func TestPaperEquation11(t *testing.T) {
	up := slices.Repeat([]UpNode{{FailuresPerStep: 0.1, UpSteps: 5}}, 20)
	down := slices.Repeat([]DownNode{{RecoveriesPerStep: 0.01, DownSteps: 5}}, 10)
	f, err := CapacityForecast(up, down, 10, 1.5)
	if err != nil || math.Abs(f.Paper-21.5) > 0.01 {
		t.Errorf("%+v, %v, want a printed 21.5", f, err)
	}
	mean := 20*math.Exp(-1) + 10*(1-math.Exp(-0.1)) + 1.5
	if !near(f.Mean, mean) || f.Low >= int(mean) || f.Low < 3 {
		t.Errorf("%+v, want a mean of %v", f, mean)
	}
	if f, _ = CapacityForecast(up, nil, 10, -1e9); f.Mean != 0 {
		t.Errorf("mean %v, want 0: there is no negative number of nodes", f.Mean)
	}
	e, err := ForecastError([]ForecastPair{{10, 12}, {10, 9}})
	if err != nil || e != 0.5 {
		t.Errorf("e_T = %v, %v, want 0.5", e, err)
	}
}

// "the General Availability Equation" (thesis, 3.2.2) and the expected share of
// nodes; "reject the submissions of job requirements that are larger" (3.3.1).
func TestPaperGAEAndSAA(t *testing.T) {
	cycles := []Cycle{{1000, 1000}, {9, 1}}
	gae, err1 := GeneralAvailability(cycles)
	mean, err2 := MeanAvailability(cycles, nil)
	weighted, err3 := MeanAvailability(cycles, []float64{3, 1})
	if err := errors.Join(err1, err2, err3); err != nil || math.Abs(gae-0.502) > 1e-3 || !near(mean, 0.7) || !near(weighted, 0.6) {
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
		if got, err := SAA(c.request, c.total, c.alpha); err != nil || got != c.want {
			t.Errorf("SAA(%v, %v, %v) = %v, %v", c.request, c.total, c.alpha, got, err)
		}
	}
}

// "a sorted set of nodes with decreasing probability of staying in the UP state"
// (thesis, 3.3.1).
func TestPaperNAAAndNSA(t *testing.T) {
	nodes := []Standing{{"c", true, 0.5}, {"down", false, 0.99}, {"b", true, 0.5}, {"a", true, 0.9}}
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
		naa, _, err1 := NAA(nodes, c.need)
		nsa, _, err2 := NSA(nodes, c.need, c.alpha)
		if err := errors.Join(err1, err2); err != nil || gocmp.Diff(c.naa, naa) != "" || gocmp.Diff(c.nsa, nsa) != "" {
			t.Errorf("need %d, alpha %v: %v and %v, %v", c.need, c.alpha, naa, nsa, err)
		}
	}
}

func TestSetErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	bad := []Standing{{"a", false, 1.5}}
	_, eQuantile := Quantile(2, nil)
	_, eAtLeast := AtLeast(-1, nil)
	_, eAll := AllOf([]float64{nan})
	_, eAny := AnyOf([]float64{-1})
	_, eUp := SetUp([]UpNode{{FailuresPerStep: inf}}, 1, 0)
	_, eQuorum := SetUp(nil, 1, -1)
	_, eUpTau := SetUp(nil, -1, 0)
	_, eRecover := SetRecover([]DownNode{{Unrecoverable: 2}}, 1)
	_, eRecoverTau := SetRecover(nil, -1)
	_, eTerm := CapacityForecast(nil, nil, 1, nan)
	_, eForecastUp := CapacityForecast([]UpNode{{UpSteps: -1}}, nil, 1, 0)
	_, eForecastDown := CapacityForecast(nil, []DownNode{{DownSteps: -1}}, 1, 0)
	_, eHistory := ForecastError([]ForecastPair{{nan, 1}})
	_, eChain := CTMCUp(0, 1, 1, true)
	_, eChainInf := CTMCUp(1, inf, 1, true)
	_, eGAE := GeneralAvailability([]Cycle{{nan, 1}})
	_, eMean := MeanAvailability([]Cycle{{-1, 1}}, nil)
	_, eWeight := MeanAvailability([]Cycle{{1, 1}}, []float64{inf})
	_, eSAA := SAA(-1, 1, 1)
	_, _, eNAA := NAA(bad, 0)
	_, _, eNeed := NAA(nil, -1)
	_, _, eNSA := NSA(bad, 0, 1)
	_, _, eAlpha := NSA(nil, 1, nan)
	for i, err := range []error{
		eQuantile, eAtLeast, eAll, eAny, eUp, eQuorum, eUpTau, eRecover, eRecoverTau, eTerm, eForecastUp, eForecastDown,
		eHistory, eChain, eChainInf, eGAE, eMean, eWeight, eSAA, eNAA, eNeed, eNSA, eAlpha,
	} {
		if !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("case %d: error = %v, want ErrInvalidArgument", i, err)
		}
	}
	_, uEmpty := GeneralAvailability(nil)
	_, uZero := GeneralAvailability([]Cycle{{0, 0}})
	_, uInf := GeneralAvailability([]Cycle{{inf, 1}, {1, inf}})
	_, uMean := MeanAvailability([]Cycle{{1, 1}, {0, 0}}, nil)
	_, uWeights := MeanAvailability([]Cycle{{1, 1}}, []float64{0})
	_, uHistory := ForecastError([]ForecastPair{{0, inf}, {inf, 0}})
	for i, err := range []error{uEmpty, uZero, uInf, uMean, uWeights, uHistory} {
		if !errors.Is(err, ErrUndefined) {
			t.Errorf("case %d: error = %v, want ErrUndefined", i, err)
		}
	}
}

// AtLeast and Quantile against all outcomes of a few events.
func TestPoissonBinomialAgainstAllOutcomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1})), 0, 8).Draw(t, "p")
		exactly := make([]float64, len(p)+1)
		for outcome := range 1 << len(p) {
			chance, n := 1.0, 0
			for i, v := range p {
				if outcome>>i&1 == 1 {
					chance, n = chance*v, n+1
				} else {
					chance *= 1 - v
				}
			}
			exactly[n] += chance
		}
		above := 1.0
		for k := range len(p) + 2 {
			got, err := AtLeast(k, p)
			if err != nil || math.Abs(got-above) > 1e-9 {
				t.Errorf("AtLeast(%d, %v) = %v, %v, want %v", k, p, got, err, above)
			}
			if k < len(p)+1 {
				above -= exactly[k]
			}
		}
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		low, err := Quantile(q, p)
		shuffled, _ := AtLeast(low, rapid.Permutation(p).Draw(t, "shuffled"))
		if err != nil || shuffled < 1-q-1e-9 {
			t.Errorf("Quantile(%v, %v) = %d, %v: at least so many with %v", q, p, low, err, shuffled)
		}
		all, _ := AllOf(p)
		some, _ := AnyOf(p)
		every, _ := AtLeast(len(p), p)
		if !near(all, every) || len(p) > 0 && (all > some+1e-12) || !(some >= 0 && some <= 1) {
			t.Errorf("all %v, any %v", all, some)
		}
	})
}

func TestForecastProperties(t *testing.T) {
	rate := rapid.OneOf(rapid.Float64Range(0, 3), rapid.SampledFrom([]float64{0, 1e-12, 1e300}))
	chance := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1}))
	age := rapid.OneOf(rapid.Int64Range(0, 500), rapid.Just(int64(math.MaxInt64)))
	rapid.Check(t, func(t *rapid.T) {
		up := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) UpNode {
			return UpNode{rate.Draw(t, "lF"), chance.Draw(t, "P"), age.Draw(t, "tau_U")}
		}), 0, 6).Draw(t, "up")
		down := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) DownNode {
			return DownNode{rate.Draw(t, "lR"), chance.Draw(t, "Q"), age.Draw(t, "tau_D")}
		}), 0, 6).Draw(t, "down")
		tau, e := rapid.Int64Range(0, 100).Draw(t, "tau"), rapid.Float64Range(-10, 10).Draw(t, "e_T")
		f, err := CapacityForecast(up, down, tau, e)
		n := float64(len(up) + len(down))
		if err != nil || math.IsNaN(f.Paper) || !(f.Mean >= 0 && f.Mean <= n) || !(f.Variance >= 0 && f.Variance <= n/4+1e-9) ||
			f.Low < 0 || float64(f.Low) > n {
			t.Fatalf("%+v, %v", f, err)
		}
		again, _ := CapacityForecast(rapid.Permutation(up).Draw(t, "up again"), rapid.Permutation(down).Draw(t, "down again"), tau, e)
		if !near(f.Mean, again.Mean) || !near(f.Paper, again.Paper) || !near(f.Variance, again.Variance) {
			t.Errorf("order matters: %+v and %+v", f, again)
		}
		s, err := SetUp(up, tau, len(up))
		if err != nil || !near(s.All, s.Quorum) || len(up) > 0 && s.Any < s.All-1e-12 {
			t.Errorf("%+v, %v", s, err)
		}
		if later, _ := SetUp(up, tau+1, 0); later.All > s.All+1e-12 {
			t.Errorf("all stay up with %v for %d steps, with %v for one more", s.All, tau, later.All)
		}
		r, err := SetRecover(down, tau)
		if err != nil || !(r.All >= 0 && r.All <= 1 && r.Any >= 0 && r.Any <= 1) || !(r.Expected <= float64(len(down))) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// The mean error does not depend on the order, not even where it cancels.
func TestForecastErrorProperties(t *testing.T) {
	pair := rapid.Custom(func(t *rapid.T) ForecastPair {
		v := rapid.OneOf(rapid.Float64Range(-100, 100), rapid.SampledFrom([]float64{1e16, -1e16, 1e-3}))
		return ForecastPair{v.Draw(t, "predicted"), v.Draw(t, "actual")}
	})
	rapid.Check(t, func(t *rapid.T) {
		history := rapid.SliceOfN(pair, 0, 12).Draw(t, "history")
		a, err := ForecastError(history)
		b, _ := ForecastError(rapid.Permutation(history).Draw(t, "shuffled"))
		if err != nil || !near(a, b) {
			t.Errorf("%v and %v, %v", a, b, err)
		}
	})
	got, err := ForecastError([]ForecastPair{{0, math.MaxFloat64}, {0, math.MaxFloat64}, {0, math.Inf(1)}})
	if err != nil || !math.IsInf(got, 1) {
		t.Errorf("%v, %v, want +Inf", got, err)
	}
	if got, err = ForecastError([]ForecastPair{{0, math.MaxFloat64}, {0, math.MaxFloat64}}); err != nil || math.IsNaN(got) {
		t.Errorf("%v, %v", got, err)
	}
}

// Going on from a state reached is going on from the beginning; the limit is the
// availability; a scale of time does not matter.
func TestCTMCUpProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.OneOf(rapid.Float64Range(1e-3, 1e6), rapid.SampledFrom([]float64{5e-324, 1e-300, 1e300, math.MaxFloat64}))
		mttf, mttr := span.Draw(t, "mttf"), span.Draw(t, "mttr")
		a, b := rapid.Float64Range(0, 1e6).Draw(t, "a"), rapid.Float64Range(0, 1e6).Draw(t, "b")
		up, err := CTMCUp(mttf, mttr, a, true)
		down, err2 := CTMCUp(mttf, mttr, a, false)
		limit, _ := CTMCUp(mttf, mttr, math.Inf(1), true)
		if err != nil || err2 != nil || !(down >= 0 && down <= limit+1e-12 && limit <= up+1e-12 && up <= 1) {
			t.Fatalf("up %v, down %v, limit %v, %v %v", up, down, limit, err, err2)
		}
		upB, _ := CTMCUp(mttf, mttr, b, true)
		downB, _ := CTMCUp(mttf, mttr, b, false)
		both, _ := CTMCUp(mttf, mttr, a+b, true)
		if math.Abs(both-(up*upB+(1-up)*downB)) > 1e-9 {
			t.Errorf("p(a+b) = %v, want %v", both, up*upB+(1-up)*downB)
		}
	})
}

func TestAvailabilityProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.OneOf(rapid.Float64Range(0, 1e6), rapid.SampledFrom([]float64{0, 5e-324, 1e300, math.MaxFloat64, math.Inf(1)}))
		cycles := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Cycle {
			return Cycle{span.Draw(t, "mttf"), span.Draw(t, "mttr")}
		}), 0, 8).Draw(t, "cycles")
		shuffled := rapid.Permutation(cycles).Draw(t, "shuffled")
		for name, f := range map[string]func([]Cycle) (float64, error){
			"GAE": GeneralAvailability, "mean": func(c []Cycle) (float64, error) { return MeanAvailability(c, nil) },
		} {
			a, err := f(cycles)
			b, _ := f(shuffled)
			if err != nil && !errors.Is(err, ErrUndefined) || !(a >= 0 && a <= 1) || !near(a, b) {
				t.Errorf("%s of %v = %v, %v, shuffled %v", name, cycles, a, err, b)
			}
		}
	})
}

func TestPolicyProperties(t *testing.T) {
	standing := rapid.Custom(func(t *rapid.T) Standing {
		return Standing{
			grid.SiteID(rapid.StringMatching(`[a-z]{3}`).Draw(t, "site")), rapid.Bool().Draw(t, "up"),
			rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "p"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(standing, 0, 10, func(s Standing) grid.SiteID { return s.Site }).Draw(t, "nodes")
		need, alpha := rapid.IntRange(0, 10).Draw(t, "need"), rapid.Float64Range(0, 1).Draw(t, "alpha")
		naa, found, err := NAA(nodes, need)
		again, _, _ := NAA(rapid.Permutation(nodes).Draw(t, "shuffled"), need)
		if err != nil || found && len(naa) != need || !slices.Equal(naa, again) {
			t.Fatalf("%v and %v, %v, %v", naa, again, found, err)
		}
		nsa, allowed, _ := NSA(nodes, need, alpha)
		accepted, _ := SAA(float64(need), float64(len(nodes)), alpha)
		if allowed != (found && accepted) || allowed && !slices.Equal(nsa, naa) {
			t.Errorf("NSA = %v, %v; SAA %v, NAA %v, %v", nsa, allowed, accepted, naa, found)
		}
		if more, _ := SAA(float64(need), float64(len(nodes)+1), alpha); accepted && !more {
			t.Error("a node more, and the job is rejected")
		}
	})
}
