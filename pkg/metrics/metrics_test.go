package metrics

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// The tests named after the paper quote the rule that they hold. Numbers computed
// by a second implementation are compared in internal/vectors.

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= max(1e-12, 1e-9*max(math.Abs(a), math.Abs(b)))
}

func is(t *testing.T, name string, got Value, want float64) {
	t.Helper()
	if v, ok := got.Get(); !ok || !near(v, want) {
		t.Errorf("%s = %v, want %v", name, got, want)
	}
}

// "by tracking the time when the first job enters the scheduler until the time the
// last job exits" (thesis, 2.3), which need not be the job submitted last.
func TestPaperSummary(t *testing.T) {
	s, err := Summarise([]Job{
		{SubmitSeconds: 2, Started: true, StartSeconds: 5, RunSeconds: 50, Nodes: 2},
		{
			SubmitSeconds: 3, Started: true, StartSeconds: 4, RunSeconds: 10, Nodes: 1, Outcome: Failed,
			Failures: 3,
		},
		{SubmitSeconds: 1, Outcome: Rejected},
	}, 4)
	if err != nil {
		t.Fatal(err)
	}
	is(t, "AWT", s.AverageWaitSeconds, 2)
	is(t, "QCT", s.CompletionSeconds, 54)
	is(t, "AGU", s.Utilization, 110.0/216)
	is(t, "JPR", s.CompletedRate, 1.0/54)
	is(t, "JFR", s.FailedRate, 1.0/54)
	is(t, "JRR", s.RejectedRate, 1.0/54)
	is(t, "failures per second", s.FailureRate, 3.0/54)
}

func TestSummaryOfLittle(t *testing.T) {
	if s, err := Summarise([]Job{{Outcome: Rejected}}, 1); s != (Summary{}) || err != nil {
		t.Errorf("nothing started: %+v, %v", s, err)
	}
	s, err := Summarise([]Job{{Started: true}}, 1)
	if err != nil || s.Utilization != (Value{}) || s.CompletedRate != (Value{}) {
		t.Errorf("no time passed: %+v, %v", s, err)
	}
	is(t, "AWT", s.AverageWaitSeconds, 0)
	is(t, "QCT", s.CompletionSeconds, 0)
	s, err = Summarise([]Job{{Started: true, RunSeconds: 1}}, 0)
	if err != nil || s.Utilization != (Value{}) {
		t.Errorf("no nodes: %+v, %v", s, err)
	}
	is(t, "JPR", s.CompletedRate, 1)
}

func TestInvalidArguments(t *testing.T) {
	nan := math.NaN()
	job := func(j Job) error { _, err := Summarise([]Job{j}, 1); return err }
	_, eNodes := Summarise(nil, nan)
	for i, err := range []error{
		eNodes, job(Job{SubmitSeconds: -1}), job(Job{StartSeconds: nan}), job(Job{RunSeconds: -1}),
		job(Job{Nodes: -1}), job(Job{Outcome: 3}), job(Job{Failures: -1}),
		job(Job{Started: true, SubmitSeconds: 5, StartSeconds: 3}),
	} {
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
	}
	if s, err := Summarise([]Job{{Nodes: -1}}, 1); s != (Summary{}) || err == nil {
		t.Errorf("%+v beside %v", s, err)
	}
}

func amounts() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(0, 1e6),
		rapid.SampledFrom([]float64{0, 5e-324, 1e300, math.MaxFloat64, math.Inf(1)}))
}

func jobs(span *rapid.Generator[float64]) *rapid.Generator[[]Job] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Job {
		j := Job{
			SubmitSeconds: span.Draw(t, "s"), Started: rapid.Bool().Draw(t, "started"),
			RunSeconds: span.Draw(t, "E"), Nodes: span.Draw(t, "nodes"),
			Outcome:  Outcome(rapid.IntRange(0, 2).Draw(t, "outcome")),
			Failures: rapid.Int64Range(0, 9).Draw(t, "failures"),
		}
		j.StartSeconds = j.SubmitSeconds + span.Draw(t, "wait")
		return j
	}), 0, 12)
}

func (s Summary) all() []Value {
	return []Value{
		s.AverageWaitSeconds, s.CompletionSeconds, s.Utilization, s.CompletedRate, s.FailedRate,
		s.RejectedRate, s.FailureRate,
	}
}

func TestSummaryIsNeverNaN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := Summarise(jobs(amounts()).Draw(t, "jobs"), amounts().Draw(t, "nodes"))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range s.all() {
			if number, defined := v.Get(); !(number >= 0) || !defined && number != 0 {
				t.Errorf("value %d = %v", i, v)
			}
		}
	})
}

// The order of jobs and the beginning of time do not matter, the unit of time
// scales, and a grid that never ran more than it has is used at most fully.
func TestSummaryProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(0, 1e4).Draw(t, "whole"))
		})
		list := jobs(whole).Draw(t, "jobs")
		s, _ := Summarise(list, 16)
		moved := rapid.Permutation(list).Draw(t, "shuffled")
		for i := range moved {
			moved[i].SubmitSeconds = 8 * (moved[i].SubmitSeconds + 64)
			moved[i].StartSeconds = 8 * (moved[i].StartSeconds + 64)
			moved[i].RunSeconds *= 8
		}
		m, err := Summarise(moved, 16)
		if err != nil {
			t.Fatal(err)
		}
		for i, factor := range []float64{8, 8, 1, 1.0 / 8, 1.0 / 8, 1.0 / 8, 1.0 / 8} {
			a, b := s.all()[i], m.all()[i]
			if a.defined != b.defined || math.Abs(a.number*factor-b.number) > 1e-6*max(1, b.number) {
				t.Errorf("value %d: %v became %v", i, a, b)
			}
		}
	})
}

// A grid of one node is used for as much of the time as its jobs ran, one of half a node, which
// a mean may give, for twice as much, and of none nothing is said.
func TestUseOfASmallGrid(t *testing.T) {
	jobs := []Job{{Nodes: 1, SubmitSeconds: 0, Started: true, StartSeconds: 6, RunSeconds: 2}}
	for nodes, want := range map[float64]float64{1: 0.25, 0.5: 0.5, 2: 0.125} {
		s, err := Summarise(jobs, nodes)
		if got, known := s.Utilization.Get(); err != nil || !known || got != want {
			t.Errorf("%v nodes: used for %v, %v, want %v", nodes, got, err, want)
		}
	}
	if s, err := Summarise(jobs, 0); err != nil {
		t.Error(err)
	} else if got, known := s.Utilization.Get(); known {
		t.Errorf("no nodes are used for %v", got)
	}
}
