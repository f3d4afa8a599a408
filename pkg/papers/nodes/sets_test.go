package nodes

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestSetErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	bad := []avail.Standing{{Site: "a", PUp: 1.5}}
	_, eAtLeast := atLeast(-1, nil)
	_, eUp := SetUp([]avail.UpNode{{FailuresPerStep: inf}}, 1, 0)
	_, eQuorum := SetUp(nil, 1, -1)
	_, eUpTau := SetUp(nil, -1, 0)
	_, eRecover := SetRecover([]avail.DownNode{{Unrecoverable: 2}}, 1)
	_, eRecoverTau := SetRecover(nil, -1)
	_, eChain := CTMCUp(0, 1, 1, true)
	_, eChainInf := CTMCUp(1, inf, 1, true)
	_, eGAE := GeneralAvailability([]avail.Cycle{{MTTFSeconds: nan, MTTRSeconds: 1}})
	_, _, eNSA := NSA(bad, 0, 1)
	_, _, eAlpha := NSA(nil, 1, nan)
	for i, err := range []error{
		eAtLeast, eUp, eQuorum, eUpTau, eRecover, eRecoverTau, eChain, eChainInf, eGAE, eNSA,
		eAlpha,
	} {
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
	}
	_, uEmpty := GeneralAvailability(nil)
	_, uZero := GeneralAvailability([]avail.Cycle{{}})
	_, uInf := GeneralAvailability(
		[]avail.Cycle{{MTTFSeconds: inf, MTTRSeconds: 1}, {MTTFSeconds: 1, MTTRSeconds: inf}},
	)
	for i, err := range []error{uEmpty, uZero, uInf} {
		if !errors.Is(err, argument.ErrUndefined) {
			t.Errorf("case %d: error = %v, want argument.ErrUndefined", i, err)
		}
	}
}

// As many nodes recover on average as the probabilities of each one make together.
func TestNodesRecoverEachByItself(t *testing.T) {
	down := []avail.DownNode{
		{RecoveriesPerStep: 0.5, Unrecoverable: 0.25, DownSteps: 3}, {RecoveriesPerStep: 2}, {},
	}
	for tau := range int64(5) {
		sum := 0.0
		for _, n := range down {
			one, err := SetRecover([]avail.DownNode{n}, tau)
			if err != nil || !near(one.Expected, one.All) {
				t.Fatalf("one node alone: %+v, %v", one, err)
			}
			sum += one.Expected
		}
		if all, err := SetRecover(down, tau); err != nil || !near(all.Expected, sum) {
			t.Errorf("within %d steps: %+v, %v, want %v expected", tau, all, err, sum)
		}
	}
}

// All are up less likely than some, and the longer it takes the less.
func TestSetProperties(t *testing.T) {
	rate := rapid.OneOf(rapid.Float64Range(0, 3), rapid.SampledFrom([]float64{0, 1e-12, 1e300}))
	chance := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1}))
	age := rapid.OneOf(rapid.Int64Range(0, 500), rapid.Just(int64(math.MaxInt64)))
	rapid.Check(t, func(t *rapid.T) {
		up := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) avail.UpNode {
			return avail.UpNode{
				FailuresPerStep: rate.Draw(t, "lF"),
				Reliability:     chance.Draw(t, "P"), UpSteps: age.Draw(t, "tau_U"),
			}
		}), 0, 6).Draw(t, "up")
		down := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) avail.DownNode {
			return avail.DownNode{
				RecoveriesPerStep: rate.Draw(t, "lR"),
				Unrecoverable:     chance.Draw(t, "Q"), DownSteps: age.Draw(t, "tau_D"),
			}
		}), 0, 6).Draw(t, "down")
		tau := rapid.Int64Range(0, 100).Draw(t, "tau")
		s, err := SetUp(up, tau, len(up))
		if err != nil || !near(s.All, s.Quorum) || len(up) > 0 && s.Any < s.All-1e-12 {
			t.Errorf("%+v, %v", s, err)
		}
		if later, _ := SetUp(up, tau+1, 0); later.All > s.All+1e-12 {
			t.Errorf("all stay up with %v for %d steps, with %v for one more", s.All, tau, later.All)
		}
		r, err := SetRecover(down, tau)
		if err != nil || !(r.All >= 0 && r.All <= 1 && r.Any >= 0 && r.Any <= 1) ||
			!(r.Expected <= float64(len(down))) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// atLeast and Quantile against all outcomes of a few events.
func TestPoissonBinomialAgainstAllOutcomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(
			rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1})), 0, 8,
		).Draw(t, "p")
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
			got, err := atLeast(k, p)
			if err != nil || math.Abs(got-above) > 1e-9 {
				t.Errorf("AtLeast(%d, %v) = %v, %v, want %v", k, p, got, err, above)
			}
			if k < len(p)+1 {
				above -= exactly[k]
			}
		}
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		low, err := avail.Quantile(q, p)
		shuffled, _ := atLeast(low, rapid.Permutation(p).Draw(t, "shuffled"))
		if err != nil || shuffled < 1-q-1e-9 {
			t.Errorf("Quantile(%v, %v) = %d, %v: at least so many with %v", q, p, low, err, shuffled)
		}
		all, _ := avail.AllOf(p)
		some := anyOf(p)
		every, _ := atLeast(len(p), p)
		if !near(all, every) || len(p) > 0 && (all > some+1e-12) || !(some >= 0 && some <= 1) {
			t.Errorf("all %v, any %v", all, some)
		}
	})
}

// Going on from a state reached is going on from the beginning; the limit is the
// availability; a scale of time does not matter.
func TestCTMCUpProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.OneOf(rapid.Float64Range(1e-3, 1e6),
			rapid.SampledFrom([]float64{5e-324, 1e-300, 1e300, math.MaxFloat64}))
		mttf, mttr := span.Draw(t, "mttf"), span.Draw(t, "mttr")
		a, b := rapid.Float64Range(0, 1e6).Draw(t, "a"), rapid.Float64Range(0, 1e6).Draw(t, "b")
		up, err := CTMCUp(mttf, mttr, a, true)
		down, err2 := CTMCUp(mttf, mttr, a, false)
		limit, _ := CTMCUp(mttf, mttr, math.Inf(1), true)
		if err != nil || err2 != nil || !(down >= 0 && down <= limit+1e-12 &&
			limit <= up+1e-12 && up <= 1) {
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
		span := rapid.OneOf(rapid.Float64Range(0, 1e6),
			rapid.SampledFrom([]float64{0, 5e-324, 1e300, math.MaxFloat64, math.Inf(1)}))
		cycles := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) avail.Cycle {
			return avail.Cycle{MTTFSeconds: span.Draw(t, "mttf"), MTTRSeconds: span.Draw(t, "mttr")}
		}), 0, 8).Draw(t, "cycles")
		shuffled := rapid.Permutation(cycles).Draw(t, "shuffled")
		for name, f := range map[string]func([]avail.Cycle) (float64, error){
			"GAE": GeneralAvailability, "mean": func(c []avail.Cycle) (float64, error) {
				return avail.MeanAvailability(c, nil)
			},
		} {
			a, err := f(cycles)
			b, _ := f(shuffled)
			if err != nil && !errors.Is(err, argument.ErrUndefined) || !(a >= 0 && a <= 1) || !near(a, b) {
				t.Errorf("%s of %v = %v, %v, shuffled %v", name, cycles, a, err, b)
			}
		}
	})
}

func TestPolicyProperties(t *testing.T) {
	standing := rapid.Custom(func(t *rapid.T) avail.Standing {
		return avail.Standing{
			Site: grid.SiteID(rapid.StringMatching(`[a-z]{3}`).Draw(t, "site")),
			Up:   rapid.Bool().Draw(t, "up"),
			PUp:  rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "p"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(standing, 0, 10, func(s avail.Standing) grid.SiteID {
			return s.Site
		}).Draw(t, "nodes")
		need, alpha := rapid.IntRange(0, 10).Draw(t, "need"), rapid.Float64Range(0, 1).Draw(t, "alpha")
		naa, found, err := avail.NAA(nodes, need)
		again, _, _ := avail.NAA(rapid.Permutation(nodes).Draw(t, "shuffled"), need)
		if err != nil || found && len(naa) != need || !slices.Equal(naa, again) {
			t.Fatalf("%v and %v, %v, %v", naa, again, found, err)
		}
		nsa, allowed, _ := NSA(nodes, need, alpha)
		accepted, _ := avail.SAA(float64(need), float64(len(nodes)), alpha)
		if allowed != (found && accepted) || allowed && !slices.Equal(nsa, naa) {
			t.Errorf("NSA = %v, %v; avail.SAA %v, avail.NAA %v, %v", nsa, allowed, accepted, naa, found)
		}
		if more, _ := avail.SAA(float64(need), float64(len(nodes)+1), alpha); accepted && !more {
			t.Error("a node more, and the job is rejected")
		}
	})
}
