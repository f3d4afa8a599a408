package ckpt

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// The tests named after a paper quote the rule that they hold. Numbers computed by
// a second implementation are compared in internal/vectors.

// "The curve depicting the case of no resource outages occurring has its minimum
// in n = 0 ... approximately four checkpoints in the case of one expected outage,
// it is approximately 7 in the case of two outages" (OpenCCS, figure 2: one hour,
// two minutes for each checkpoint).
func TestPaperFigure2Counts(t *testing.T) {
	for outages, want := range []int64{0, 4, 7} {
		o := Outages{RuntimeSeconds: 3600, CostSeconds: 120, Count: int64(outages)}
		for _, model := range []LossModel{LossOfWork, LossWithOverheads} {
			if n, err := o.CheckpointCount(model); err != nil || n != want {
				t.Errorf("%d outages, model %d: %d checkpoints, %v, want %d", outages, model, n, err, want)
			}
		}
	}
	o := Outages{RuntimeSeconds: 3600, CostSeconds: 120, Count: 1}
	four, _ := o.Total(LossOfWork, 4)
	five, _ := o.Total(LossOfWork, 5)
	if four != 4800 || five != 4800 {
		t.Errorf("totals of 4 and 5 checkpoints = %v and %v s, want a tie at 4800", four, five)
	}
}

// "it is allowed only if the comparison of tc-Lf <= E evaluates to true ... a
// maximum number of omission limit should be defined" (FIBR paper, 3.2, steps 3
// and 4).
func TestPaperLFCASteps(t *testing.T) {
	l := LFCA{ExecutionSeconds: 10, MaxOmissions: 2}
	for _, step := range []struct {
		fail float64
		at   float64
		want Decision
	}{
		{0, 10, Take},
		{0, 10.1, Omit},
		{0, 20, Omit},
		{0, 30, Force},
		{0, 40, Omit},
		{45, 55, Take},
		{45, 44, Take}, // a clock that went back
		{0, 56, Omit},
	} {
		if step.fail > 0 {
			if err := l.Failed(step.fail); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := l.Request(step.at); err != nil || got != step.want {
			t.Errorf("request at %v: %v, %v, want %v", step.at, got, err, step.want)
		}
	}
}

// "If RE < Mf and I < alpha E ... I_new = I_old + I. Else ... I_new = I_old - I
// ... C < I_min <= I_new" (FIBR paper, 3.3, steps 2 and 3).
func TestPaperMFCASteps(t *testing.T) {
	m := MFCA{ExecutionSeconds: 100, GrowthLimit: 0.5, StepSeconds: 5, MinSeconds: 3, CostSeconds: 1}
	for _, c := range []struct{ interval, remaining, mean, want float64 }{
		{10, 50, 100, 15},         // stable: grow
		{10, 100, 100, 5},         // as long as the mean: shrink
		{49, 50, 100, 54},         // the limit may be passed by less than a step
		{50, 50, 100, 45},         // at the limit: shrink
		{4, 150, 100, 3},          // never below the shortest
		{1, 50, 100, 8},           // lifted first
		{10, 50, math.Inf(1), 15}, // no failure yet
	} {
		if got, err := m.Next(c.interval, c.remaining, c.mean); err != nil || got != c.want {
			t.Errorf("Next(%v, %v, %v) = %v, %v, want %v", c.interval, c.remaining, c.mean, got, err, c.want)
		}
	}
}

func TestInvalidArguments(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	good := MFCA{
		ExecutionSeconds: 100, GrowthLimit: 0.5, StepSeconds: 5, MinSeconds: 3, CostSeconds: 1,
	}
	with := func(change func(*MFCA)) error {
		m := good
		change(&m)
		_, err := m.Next(10, 10, 10)
		return err
	}
	_, eNext := good.Next(10, nan, 10)
	_, eRun := good.Run(-1, 10)
	endless := good
	endless.ExecutionSeconds = inf
	_, eEndless := endless.Run(1, 1)
	long := good
	long.ExecutionSeconds = 1e300
	_, eLong := long.Run(1, 1)
	_, eLFCA := (&LFCA{MaxOmissions: -1}).Request(1)
	_, eTime := (&LFCA{}).Request(nan)
	_, eYoung := Young(0, 1)
	_, eDaly := Daly(1, nan)
	_, eInterval := Execution{CostSeconds: 1, MTBFSeconds: 1}.ExpectedCompletion(0)
	_, eModel := Outages{}.Total(2, 0)
	_, eCount := Outages{Count: -1}.CheckpointCount(LossOfWork)
	for i, err := range []error{
		with(func(m *MFCA) { m.GrowthLimit = 1 }), with(func(m *MFCA) { m.GrowthLimit = 0 }),
		with(func(m *MFCA) { m.CostSeconds = 3 }), with(func(m *MFCA) { m.StepSeconds = -1 }),
		with(func(m *MFCA) { m.GrowthLimit = nan }),
		eNext, eRun, eEndless, eLong, eLFCA, eTime, (&LFCA{}).Failed(-1), eYoung, eDaly, eInterval,
		eModel, eCount,
	} {
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
	}
	for _, o := range []Outages{
		{RuntimeSeconds: 60, Count: 1}, {RuntimeSeconds: 1e300, CostSeconds: 1e-300, Count: 1},
	} {
		if _, err := o.CheckpointCount(LossOfWork); !errors.Is(err, argument.ErrUndefined) {
			t.Errorf("%+v: error = %v, want argument.ErrUndefined", o, err)
		}
	}
}

func spans() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(0, 1e5),
		rapid.SampledFrom([]float64{0, 5e-324, 1e-9, 1, 1e300, math.MaxFloat64, math.Inf(1)}))
}

func TestLFCAProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := LFCA{
			ExecutionSeconds: spans().Draw(t, "E"), MaxOmissions: rapid.Int64Range(0, 4).Draw(t, "most"),
		}
		inARow := int64(0)
		for range rapid.IntRange(0, 30).Draw(t, "requests") {
			at := spans().Draw(t, "at")
			if rapid.IntRange(0, 4).Draw(t, "event") == 0 {
				if err := l.Failed(at); err != nil {
					t.Fatal(err)
				}
				inARow = 0
				continue
			}
			switch got, err := l.Request(at); {
			case err != nil:
				t.Fatal(err)
			case got == Omit:
				inARow++
			case got == Force && inARow < l.MaxOmissions:
				t.Fatalf("forced after %d omissions, limit %d", inARow, l.MaxOmissions)
			default:
				inARow = 0
			}
			if inARow > l.MaxOmissions {
				t.Fatalf("%d omissions in a row, limit %d", inARow, l.MaxOmissions)
			}
		}
	})
}

func TestMFCAProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Float64Range(1e-3, 1e3).Draw(t, "least")
		m := MFCA{
			ExecutionSeconds: spans().Draw(t, "E"),
			GrowthLimit:      rapid.Float64Range(0.01, 0.99).Draw(t, "alpha"),
			StepSeconds:      spans().Draw(t, "step"), MinSeconds: least, CostSeconds: least / 2,
		}
		interval, remaining, mean := spans().Draw(t, "I"), spans().Draw(t, "RE"), spans().Draw(t, "Mf")
		next, err := m.Next(interval, remaining, mean)
		if err != nil || !(next >= least) || next > max(interval, least)+m.StepSeconds {
			t.Fatalf("Next = %v, %v", next, err)
		}
		if stable, _ := m.Next(interval, remaining, math.Inf(1)); stable < next {
			t.Errorf("a stabler site has a shorter interval: %v instead of %v", stable, next)
		}
	})
}

// Run against a loop over Next.
func TestMFCARunAgainstItsSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Float64Range(1, 10).Draw(t, "least")
		m := MFCA{
			ExecutionSeconds: rapid.Float64Range(0, 1000).
				Draw(t, "E"), GrowthLimit: rapid.Float64Range(0.01, 0.99).Draw(t, "alpha"),
			StepSeconds: rapid.Float64Range(0, 20).Draw(t, "step"),
			MinSeconds:  least, CostSeconds: least / 2,
		}
		first, mean := rapid.Float64Range(0, 100).Draw(t, "I0"), spans().Draw(t, "Mf")
		got, err := m.Run(first, mean)
		if err != nil {
			t.Fatal(err)
		}
		var want []float64
		interval := max(first, least)
		for at := interval; at < m.ExecutionSeconds; at += interval {
			want = append(want, at)
			interval, _ = m.Next(interval, m.ExecutionSeconds-at, mean)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Run = %v, want %v", got, want)
		}
	})
}

// CheckpointCount against trying them all.
func TestCheckpointCountIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Outages{
			RuntimeSeconds: float64(rapid.IntRange(0, 2000).Draw(t, "R")),
			CostSeconds:    float64(rapid.IntRange(1, 50).Draw(t, "C")),
			Count:          rapid.Int64Range(0, 8).Draw(t, "k"),
		}
		model := rapid.SampledFrom([]LossModel{LossOfWork, LossWithOverheads}).Draw(t, "model")
		n, err := o.CheckpointCount(model)
		if err != nil {
			t.Fatal(err)
		}
		best, want := math.Inf(1), int64(0)
		for i := range int64(200) {
			if total, _ := o.Total(model, i); total < best {
				best, want = total, i
			}
		}
		if n != want {
			t.Errorf("%d checkpoints, want %d", n, want)
		}
		o.Count++
		if more, _ := o.CheckpointCount(model); more < n {
			t.Errorf("one outage more: %d instead of %d checkpoints", more, n)
		}
	})
}

func TestTotalsAreNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Outages{spans().Draw(t, "R"), spans().Draw(t, "C"), rapid.Int64Range(0, 100).Draw(t, "k")}
		model := rapid.SampledFrom([]LossModel{LossOfWork, LossWithOverheads}).Draw(t, "model")
		n := rapid.Int64Range(0, 100).Draw(t, "n")
		if total, err := o.Total(model, n); err != nil || !(total >= o.RuntimeSeconds) {
			t.Errorf("%+v, %d checkpoints: %v, %v", o, n, total, err)
		}
		if n, err := o.CheckpointCount(model); n < 0 ||
			err != nil && !errors.Is(err, argument.ErrUndefined) {
			t.Errorf("%+v: %d checkpoints, %v", o, n, err)
		}
	})
}

func TestIntervalProperties(t *testing.T) {
	positive := rapid.OneOf(rapid.Float64Range(1e-3, 1e7),
		rapid.SampledFrom([]float64{1e-300, 1e300, math.MaxFloat64, math.Inf(1)}))
	rapid.Check(t, func(t *rapid.T) {
		e := Execution{
			spans().Draw(t, "W"), positive.Draw(t, "C"), positive.Draw(t, "M"), spans().Draw(t, "R"),
		}
		young, err1 := Young(e.CostSeconds, e.MTBFSeconds)
		daly, err2 := Daly(e.CostSeconds, e.MTBFSeconds)
		if err1 != nil || err2 != nil || !(young > 0) || !(daly > 0) {
			t.Fatalf("Young = %v, %v; Daly = %v, %v", young, err1, daly, err2)
		}
		for _, interval := range []float64{young, daly, positive.Draw(t, "tau")} {
			total, err := e.ExpectedCompletion(interval)
			if err != nil || !(total >= e.WorkSeconds*(1-1e-12)) {
				t.Errorf("%+v, every %v: %v, %v", e, interval, total, err)
			}
		}
	})
}

// Twice the time unit, twice the intervals; and for rare failures Daly's interval
// is hard to beat.
func TestDalyIsNearTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cost, mtbf := rapid.Float64Range(1, 100).Draw(t, "C"), rapid.Float64Range(1e4, 1e6).Draw(t, "M")
		daly, _ := Daly(cost, mtbf)
		if double, _ := Daly(2*cost, 2*mtbf); math.Abs(double-2*daly) > 1e-9*double {
			t.Errorf("Daly(2C, 2M) = %v, want %v", double, 2*daly)
		}
		young, _ := Young(cost, mtbf)
		if math.Abs(young-daly) > 0.2*young+cost {
			t.Errorf("Young %v and Daly %v are far apart", young, daly)
		}
		e := Execution{WorkSeconds: 1000 * daly, CostSeconds: cost, MTBFSeconds: mtbf}
		best, _ := e.ExpectedCompletion(daly)
		for _, factor := range []float64{0.25, 0.5, 2, 4} {
			if other, _ := e.ExpectedCompletion(factor * daly); other < best*(1-1e-3) {
				t.Errorf("every %v s takes %v, Daly's %v s %v", factor*daly, other, daly, best)
			}
		}
	})
}
