package avail

import (
	"math"
	"testing"
)

// What is said of sets of independent events, against all of their outcomes.
func TestSetsAgainstAllOutcomes(t *testing.T) {
	for _, p := range [][]float64{
		nil, {0.3}, {0, 1}, {0.5, 0.5}, {0.9, 0.2, 0.7}, {0.1, 0.4, 0.6, 0.95}, {1, 1, 1},
	} {
		exactly := make([]float64, len(p)+1)
		for outcome := range 1 << len(p) {
			chance, happened := 1.0, 0
			for i, v := range p {
				if outcome>>i&1 == 1 {
					chance, happened = chance*v, happened+1
				} else {
					chance *= 1 - v
				}
			}
			exactly[happened] += chance
		}
		for n, v := range poissonBinomial(p) {
			if !near(v, exactly[n]) {
				t.Errorf("%v: %d happen with %v, want %v", p, n, v, exactly[n])
			}
		}
		all, err := AllOf(p)
		if err != nil || !near(all, exactly[len(p)]) || !near(anyOf(p), 1-exactly[0]) {
			t.Errorf("%v: all %v, any %v, %v", p, all, anyOf(p), err)
		}
		sum := 0.0
		for n, v := range exactly {
			if sum += v; v == 0 {
				continue
			}
			if got, err := Quantile(sum-v/2, p); err != nil || got != n {
				t.Errorf("%v: quantile %v is %d, %v, want %d", p, sum-v/2, got, err, n)
			}
		}
		if got, err := Quantile(0, p); err != nil || got != 0 {
			t.Errorf("%v: quantile 0 is %d, %v", p, got, err)
		}
	}
	if got, err := Quantile(0.5, []float64{0.5}); err != nil || got != 0 {
		t.Errorf("a half is reached with %d, %v", got, err)
	}
}

// The forecast's numbers are the sums over the nodes, and the mean is a number of nodes.
func TestForecastIsTheSum(t *testing.T) {
	up := []UpNode{{0.1, 0.2, 3}, {0.02, 0, 9}}
	down := []DownNode{{0.3, 0.1, 2}}
	const tau = 4
	stay1, stay2 := 1-0.8*(1-math.Exp(-0.4)), math.Exp(-0.08)
	back := 0.9 * (1 - math.Exp(-1.2))
	mean := stay1 + stay2 + back
	variance := stay1*(1-stay1) + stay2*(1-stay2) + back*(1-back)
	low := 0
	if (1-stay1)*(1-stay2)*(1-back) < lowQuantile {
		low = 1
	}
	sums := 1.0
	for _, n := range up {
		steps := n.UpSteps + tau - 1
		sums *= (1 - n.Reliability) * printed(n.FailuresPerStep, steps)
	}
	paper := 2*(1-sums) + 0.9*printed(0.3, 2+tau-1)
	f, err := CapacityForecast(up, down, tau, 0)
	if err != nil || !near(f.Mean, mean) || !near(f.Variance, variance) || !near(f.Paper, paper) ||
		f.Low != low {
		t.Errorf("%+v, %v, want %v, %v, %v, %d", f, err, paper, mean, variance, low)
	}
	for term, want := range map[float64]float64{-9: 0, 9: 3, 0.125: mean + 0.125} {
		got, err := CapacityForecast(up, down, tau, term)
		if err != nil || !near(got.Mean, want) || !near(got.Paper, paper+term) || got.Low != low {
			t.Errorf("error term %v: %+v, %v, want a mean of %v", term, got, err, want)
		}
	}
}

// printed is equation (3), term by term.
func printed(lambda float64, steps int64) float64 {
	sum := 0.0
	for t := range steps + 1 {
		sum += math.Exp(-lambda*float64(t)) * lambda * float64(t)
	}
	return lambda * sum
}

func TestSumsOfFailures(t *testing.T) {
	for _, lambda := range []float64{0, 0.001, 0.3, 5, 790} {
		for _, steps := range []int64{0, 1, 2, 17} {
			sum, err := FailureSum(lambda, steps)
			closed, errClosed := FailureSumClosed(lambda, steps)
			if want := min(printed(lambda, steps), 1); err != nil || errClosed != nil ||
				!near(sum, want) || !near(closed, want) {
				t.Errorf("%v, %d steps: %v, closed %v, want %v", lambda, steps, sum, closed, want)
			}
			one, err := FailureProbability(lambda, steps)
			if want := 1 - math.Exp(-lambda*float64(steps)); err != nil || !near(one, want) {
				t.Errorf("%v, %d steps: any %v, want %v", lambda, steps, one, want)
			}
		}
	}
	if got, err := FailureSumClosed(1e300, math.MaxInt64); got != 0 || err != nil {
		t.Errorf("so many that nothing is left: %v, %v", got, err)
	}
}

// The differences that cancel, against their power series: the sum of (-u)^n/n! from n = 2 on,
// times 1 or n - 1.
func TestDifferencesThatCancel(t *testing.T) {
	for _, u := range []float64{1e-9, 1e-4, 5e-3, below(1e-2), 1e-2, 0.02, 0.1} {
		excess, erlang := 0.0, 0.0
		for n := 14; n >= 2; n-- {
			term := math.Pow(-u, float64(n)) / math.Gamma(float64(n+1))
			excess, erlang = excess+term, erlang+term*float64(n-1)
		}
		limit := 1e-15 + 2*math.Pow(u, 5)/700 // the series ends before that
		if u >= 1e-2 {                        // the difference itself
			limit = 1e-16 / (u * u / 2) * 4
		}
		if got := excessOverExpm1(u); math.Abs(got/excess-1) > limit {
			t.Errorf("u = %v: %v, want %v", u, got, excess)
		}
		if got := erlang2(u); math.Abs(got/erlang-1) > limit {
			t.Errorf("u = %v: erlang %v, want %v", u, got, erlang)
		}
	}
	if got := erlang2(math.Inf(1)); got != 1 {
		t.Errorf("erlang of everything: %v", got)
	}
}

// Nothing is lost where numbers cancel, and infinities stay what they are.
func TestTotalIsExact(t *testing.T) {
	inf, huge := math.Inf(1), math.MaxFloat64
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{1e16, 1, -1e16}, 1},
		{[]float64{1, 1e16, -1e16}, 1},
		{[]float64{1e32, 1e16, 1, -1e16, -1e32}, 1},
		{[]float64{3, -1, 0.5}, 2.5},
		{[]float64{1, inf, 2}, inf},
		{[]float64{-inf, 5}, -inf},
		{[]float64{huge, huge}, inf},
	} {
		if got := total(c.values); got != c.want {
			t.Errorf("%v add up to %v, want %v", c.values, got, c.want)
		}
	}
	if got := total([]float64{inf, -inf}); !math.IsNaN(got) {
		t.Errorf("infinities of both signs add up to %v", got)
	}
	if got, err := ForecastError([]ForecastPair{{7, 5}, {1, 2}}); got != -0.5 || err != nil {
		t.Errorf("e_T = %v, %v, want -0.5", got, err)
	}
	if got, err := ForecastError(nil); got != 0 || err != nil {
		t.Errorf("without a history: %v, %v", got, err)
	}
}

func TestPriorsAreReckonedExactly(t *testing.T) {
	p, err := Prior{0.5, 100}.Observe(3, 40)
	if want := (Prior{3.5, 140}); p != want || err != nil || !near(p.Rate(), 3.5/140) {
		t.Errorf("%+v at a rate of %v, %v, want %+v", p, p.Rate(), err, want)
	}
	if s, err := p.Survival(60); err != nil || !near(s, math.Pow(140.0/200, 3.5)) {
		t.Errorf("survival %v, %v", s, err)
	}
	if none, err := (Prior{1, 1}).Observe(0, math.Inf(1)); none != (Prior{}) || err == nil {
		t.Errorf("after eternity: %+v, %v", none, err)
	}
}

// A refusal gives nothing but its error.
func TestNonsenseHasNoNumber(t *testing.T) {
	nan := math.NaN()
	all, e1 := AllOf([]float64{2})
	quantile, e2 := Quantile(0.5, []float64{2})
	sum, e3 := FailureSum(nan, 1)
	long, e4 := FailureSum(1, maxSteps+1)
	closed, e5 := FailureSumClosed(nan, 1)
	one, e6 := FailureProbability(nan, 1)
	mean, e7 := MeanAvailability([]Cycle{{nan, 1}}, nil)
	weighted, e8 := MeanAvailability([]Cycle{{1, 1}}, []float64{nan})
	wrong, e9 := ForecastError([]ForecastPair{{nan, 1}})
	cancel, e10 := ForecastError([]ForecastPair{{0, math.Inf(1)}, {0, math.Inf(-1)}})
	survives, e11 := Prior{}.Survival(1)
	accepted, e12 := SAA(nan, 1, 1)
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11, e12} {
		if err == nil {
			t.Errorf("case %d: no error", i)
		}
	}
	for i, v := range []float64{
		all, float64(quantile), sum, long, closed, one, mean, weighted, wrong, cancel, survives,
	} {
		if v != 0 {
			t.Errorf("case %d: %v beside an error", i, v)
		}
	}
	if accepted {
		t.Error("a job that asks for no number is accepted")
	}
	if chosen, enough, err := NAA(nil, -1); chosen != nil || enough || err == nil {
		t.Errorf("NAA: %v, %t, %v", chosen, enough, err)
	}
}

// Windows are half-open, and may go over Sunday midnight.
func TestWindowsAreHalfOpen(t *testing.T) {
	for _, c := range []struct {
		w    Window
		week float64
		want bool
	}{
		{Window{10, 20}, 10, true},
		{Window{10, 20}, below(10), false},
		{Window{10, 20}, below(20), true},
		{Window{10, 20}, 20, false},
		{Window{10, 10}, 10, false},
		{Window{20, 10}, 20, true},
		{Window{20, 10}, below(20), false},
		{Window{20, 10}, below(10), true},
		{Window{20, 10}, 10, false},
		{Window{20, 10}, 0, true},
	} {
		if got := c.w.Contains(c.week); got != c.want {
			t.Errorf("%+v contains %v: %t", c.w, c.week, got)
		}
	}
}

// A walk visits each quarter once, in turn, without a gap.
func TestAWalkHasNoGap(t *testing.T) {
	for _, c := range []struct{ week, seconds float64 }{
		{0, 900}, {100, 800}, {100, 801}, {WeekSeconds - 1, 902}, {450, WeekSeconds}, {5, 0},
	} {
		at, want := 0.0, int(c.week/900)
		walk(c.week, c.seconds, func(slot int, from, to float64) {
			if slot != want%slots || from != at || to <= from ||
				to != min(float64(want+1)*900-c.week, c.seconds) {
				t.Errorf("%+v: quarter %d from %v to %v, want %d from %v", c, slot, from, to, want, at)
			}
			at, want = to, want+1
		})
		if at != c.seconds {
			t.Errorf("%+v ends after %v", c, at)
		}
	}
	for slot, want := range map[int]int{
		0: 0, 95: 95, 96: 0, 5*96 - 1: 95, 5 * 96: 96, 6 * 96: 96, slots - 1: 191,
	} {
		if got := classOf(slot); got != want {
			t.Errorf("quarter %d is of class %d, want %d", slot, got, want)
		}
	}
}
