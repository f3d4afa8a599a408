package avail

import (
	"math"
	"slices"
	"testing"
)

// The tests named after the paper, the thesis, hold what its rules give. Numbers
// computed by a second implementation are compared in internal/vectors.

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
