package avail

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

func TestSetErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	bad := []Standing{{"a", false, 1.5}}
	_, eQuantile := Quantile(2, nil)
	_, eAll := AllOf([]float64{nan})
	_, eTerm := CapacityForecast(nil, nil, 1, nan)
	_, eForecastUp := CapacityForecast([]UpNode{{UpSteps: -1}}, nil, 1, 0)
	_, eForecastDown := CapacityForecast(nil, []DownNode{{DownSteps: -1}}, 1, 0)
	_, eHistory := ForecastError([]ForecastPair{{nan, 1}})
	_, eMean := MeanAvailability([]Cycle{{-1, 1}}, nil)
	_, eWeight := MeanAvailability([]Cycle{{1, 1}}, []float64{inf})
	_, eSAA := SAA(-1, 1, 1)
	_, _, eNAA := NAA(bad, 0)
	_, _, eNeed := NAA(nil, -1)
	for i, err := range []error{
		eQuantile, eAll, eTerm, eForecastUp, eForecastDown, eHistory, eMean, eWeight, eSAA, eNAA, eNeed,
	} {
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
	}
	_, uMean := MeanAvailability([]Cycle{{1, 1}, {0, 0}}, nil)
	_, uWeights := MeanAvailability([]Cycle{{1, 1}}, []float64{0})
	_, uHistory := ForecastError([]ForecastPair{{0, inf}, {inf, 0}})
	for i, err := range []error{uMean, uWeights, uHistory} {
		if !errors.Is(err, argument.ErrUndefined) {
			t.Errorf("case %d: error = %v, want argument.ErrUndefined", i, err)
		}
	}
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
		if err != nil || math.IsNaN(f.Paper) || !(f.Mean >= 0 && f.Mean <= n) ||
			!(f.Variance >= 0 && f.Variance <= n/4+1e-9) ||
			f.Low < 0 || float64(f.Low) > n {
			t.Fatalf("%+v, %v", f, err)
		}
		again, _ := CapacityForecast(rapid.Permutation(up).Draw(t, "up again"),
			rapid.Permutation(down).Draw(t, "down again"), tau, e)
		if !near(f.Mean, again.Mean) || !near(f.Paper, again.Paper) || !near(f.Variance, again.Variance) {
			t.Errorf("order matters: %+v and %+v", f, again)
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
	got, err := ForecastError(
		[]ForecastPair{{0, math.MaxFloat64}, {0, math.MaxFloat64}, {0, math.Inf(1)}},
	)
	if err != nil || !math.IsInf(got, 1) {
		t.Errorf("%v, %v, want +Inf", got, err)
	}
	got, err = ForecastError([]ForecastPair{{0, math.MaxFloat64}, {0, math.MaxFloat64}})
	if err != nil || math.IsNaN(got) {
		t.Errorf("%v, %v", got, err)
	}
}
