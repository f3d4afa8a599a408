package ckpt

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Where nothing fails an execution takes its work and a checkpoint after each interval but the
// last one, which may be shorter.
func TestWithoutFailuresOnlyCheckpointsCost(t *testing.T) {
	for _, c := range []struct{ work, interval, want float64 }{
		{25, 10, 25 + 2*3}, {20, 10, 20 + 3}, {10, 10, 10}, {9, 10, 9}, {10.5, 10, 10.5 + 3}, {0, 10, 0},
	} {
		e := Execution{WorkSeconds: c.work, CostSeconds: 3, MTBFSeconds: math.Inf(1), RestartSeconds: 7}
		if got, err := e.ExpectedCompletion(c.interval); err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// With failures each segment takes M (e^(length/M) - 1), and all of it e^(R/M) times as long.
func TestExpectedCompletionIsDalysFormula(t *testing.T) {
	for _, mtbf := range []float64{5, 50, 5000} {
		for _, interval := range []float64{3, 7, 10, 24, 25, 30} {
			e := Execution{WorkSeconds: 25, CostSeconds: 2, MTBFSeconds: mtbf, RestartSeconds: 4}
			sum, left := 0.0, e.WorkSeconds
			for ; left > interval; left -= interval {
				sum += mtbf * (math.Exp((interval+2)/mtbf) - 1)
			}
			want := math.Exp(4/mtbf) * (sum + mtbf*(math.Exp(left/mtbf)-1))
			if got, err := e.ExpectedCompletion(interval); err != nil || math.Abs(got-want) > 1e-9*want {
				t.Errorf("M = %v, every %v: %v, %v, want %v", mtbf, interval, got, err, want)
			}
		}
	}
}

// Young's and Daly's intervals are their formulas; where a checkpoint costs two mean times
// between failures or more Daly's is one of them.
func TestIntervalsAreTheirFormulas(t *testing.T) {
	for _, c := range []struct{ cost, mtbf float64 }{{1, 100}, {8, 4.5}, {3, 1.5}, {3, 1.4}, {10, 4}} {
		young := math.Sqrt(2 * c.cost * c.mtbf)
		r := math.Sqrt(c.cost / (2 * c.mtbf))
		daly := young*(1+r/3+r*r/9) - c.cost
		if c.cost >= 2*c.mtbf {
			daly = c.mtbf
		}
		if got, err := Young(c.cost, c.mtbf); err != nil || math.Abs(got-young) > 1e-12*young {
			t.Errorf("%+v: Young %v, %v, want %v", c, got, err, young)
		}
		if got, err := Daly(c.cost, c.mtbf); err != nil || math.Abs(got-daly) > 1e-12*daly {
			t.Errorf("%+v: Daly %v, %v, want %v", c, got, err, daly)
		}
	}
}

// In the worst case each outage costs one segment, and with the second model its share of the
// checkpoints' time, too.
func TestTotalIsTheWorstCase(t *testing.T) {
	o := Outages{RuntimeSeconds: 60, CostSeconds: 2, Count: 3}
	for n, want := range map[int64][2]float64{
		0: {60 + 3*60, 60 + 3*60}, 1: {62 + 3*30, 62 + 3*31}, 5: {70 + 3*10, 70 + 3*70/6.},
	} {
		for model, want := range want {
			if got, err := o.Total(LossModel(model), n); err != nil || math.Abs(got-want) > 1e-12*want {
				t.Errorf("%d checkpoints, model %d: %v, %v, want %v", n, model, got, err, want)
			}
		}
	}
}

// Where a checkpoint costs nearly as much as the task takes, how much of it counts: the number is
// the best of all that there are.
func TestTheLeastNumberOfAll(t *testing.T) {
	for _, runtime := range []float64{10, 99, 100, 101, 110, 150, 1000} {
		for _, outages := range []int64{1, 9, 10_000} {
			for _, model := range []LossModel{LossOfWork, LossWithOverheads} {
				o := Outages{RuntimeSeconds: runtime, CostSeconds: 100, Count: outages}
				best := int64(0)
				for n := range int64(1000) {
					if o.total(model, float64(n)) < o.total(model, float64(best)) {
						best = n
					}
				}
				if got, err := o.CheckpointCount(model); err != nil || got != best {
					t.Errorf("%+v, model %d: %d, %v, want %d", o, model, got, err, best)
				}
			}
		}
	}
}

// As many checkpoints as float64 has odd numbers are a number still, and more are not.
func TestTheMostCheckpointsThatCanBe(t *testing.T) {
	for runtime, most := range map[float64]bool{1 << 53: true, 1 << 55: false} {
		o := Outages{RuntimeSeconds: runtime, CostSeconds: 1, Count: 1 << 53}
		got, err := o.CheckpointCount(LossOfWork)
		if most && (err != nil || got < maxCount-2) || !most && !errors.Is(err, argument.ErrUndefined) {
			t.Errorf("a run of %v s: %d, %v", runtime, got, err)
		}
	}
}

// The longest run of checkpoints is allowed, one more is not, and an endless task is refused
// for what it is.
func TestRunsHaveAnEnd(t *testing.T) {
	m := MFCA{ExecutionSeconds: maxCheckpoints + 1, GrowthLimit: 0.5, MinSeconds: 1}
	if got, err := m.Run(1, 0); err != nil || len(got) != maxCheckpoints {
		t.Errorf("%d checkpoints, %v", len(got), err)
	}
	m.ExecutionSeconds++
	if got, err := m.Run(1, 0); err == nil || got != nil {
		t.Errorf("one more: %d checkpoints, %v", len(got), err)
	}
	m.ExecutionSeconds = math.Inf(1)
	if _, err := m.Run(1, 0); err == nil || !strings.Contains(err.Error(), "execution time") {
		t.Errorf("an endless task: %v", err)
	}
}

// The end of a task needs no checkpoint, and the first interval is at least the shortest.
func TestTheEndNeedsNoCheckpoint(t *testing.T) {
	m := MFCA{ExecutionSeconds: 30, GrowthLimit: 0.9, StepSeconds: 0, MinSeconds: 10, CostSeconds: 1}
	for first, want := range map[float64][]float64{0: {10, 20}, 10: {10, 20}, 30: nil, 29: {29}} {
		if got, err := m.Run(first, 100); err != nil || !slices.Equal(got, want) {
			t.Errorf("from %v s on: %v, %v, want %v", first, got, err, want)
		}
	}
}

// Who reads a number beside an error reads 0, and no decision but to take a checkpoint.
func TestNothingStandsBesideAnError(t *testing.T) {
	for name, f := range map[string]func() (float64, error){
		"young":    func() (float64, error) { return Young(0, 1) },
		"daly":     func() (float64, error) { return Daly(0, 1) },
		"expected": func() (float64, error) { return Execution{}.ExpectedCompletion(1) },
		"total":    func() (float64, error) { return Outages{Count: -1}.Total(LossOfWork, 1) },
		"no total": func() (float64, error) { return Outages{}.Total(LossOfWork, -1) },
		"next":     func() (float64, error) { return MFCA{}.Next(1, 1, 1) },
		"request": func() (float64, error) {
			d, err := (&LFCA{MaxOmissions: -1}).Request(1)
			return float64(d), err
		},
		"count": func() (float64, error) {
			n, err := Outages{Count: -1}.CheckpointCount(LossOfWork)
			return float64(n), err
		},
		"free checkpoints": func() (float64, error) {
			n, err := Outages{RuntimeSeconds: 60, Count: 1}.CheckpointCount(LossOfWork)
			return float64(n), err
		},
		"too many": func() (float64, error) {
			n, err := Outages{RuntimeSeconds: 1e300, CostSeconds: 1, Count: 1}.CheckpointCount(LossOfWork)
			return float64(n), err
		},
	} {
		if v, err := f(); v != 0 || err == nil {
			t.Errorf("%s: %v beside %v", name, v, err)
		}
	}
}

// Where there are no outages nothing is lost, not even of a run without end.
func TestNothingIsLostWithoutOutages(t *testing.T) {
	for _, runtime := range []float64{0, 60, math.Inf(1)} {
		got, err := Outages{RuntimeSeconds: runtime, CostSeconds: 2}.Total(LossOfWork, 3)
		if want := runtime + 6; got != want || err != nil {
			t.Errorf("a run of %v s takes %v s, %v; want %v s", runtime, got, err, want)
		}
	}
}
