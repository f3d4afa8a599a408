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

// "the probability of any replica to succeed is 1-K(1-alpha)" (thesis, 3.2.3): it
// is negative for a grid that is up 30 % of the time.
func TestPaperReplication(t *testing.T) {
	r, err := Replicate(
		Replication{Availability: 0.3, Copies: 2, RunSeconds: 10, Jobs: 5, Capacity: 100, Load: 40},
	)
	if err != nil || !near(r.PaperSuccess, -0.4) || !near(r.Success, 0.51) || !near(r.MaxLoad, 15) ||
		!r.Overloaded ||
		!near(r.QueueSeconds, 75) || !near(r.Throughput, 1.0/15) {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = Replicate(
		Replication{Availability: 0.5, Copies: 2, RunSeconds: 10, Jobs: 5, Capacity: 100, Load: 25},
	)
	if err != nil || !near(r.PaperThreshold, 0.5) || !near(r.PaperSuccess, 0) ||
		!near(r.Success, 0.75) || r.Overloaded {
		t.Errorf("at the threshold: %+v, %v", r, err)
	}
}

// The thesis' examples of certainty (3.2.3) are none.
func TestPaperPrediction(t *testing.T) {
	for _, c := range []struct {
		attempts, resources int64
		rate                float64
		paper, want         float64
	}{
		{2, 4, 0.15, 1.0440125, 0.77152197},
		{2, 2, 0.25, 1.125, 0.80859375},
		{4, 4, 0.25, 1.265625, 0.78163032},
	} {
		p, err := Predict(Prediction{
			ErrorRate: c.rate, Resources: c.resources, Attempts: c.attempts, RunSeconds: 10, Jobs: 3,
		})
		if err != nil || math.Abs(p.PaperSuccess-c.paper) > 1e-7 || math.Abs(p.Success-c.want) > 1e-7 {
			t.Errorf("%+v: %+v, %v", c, p, err)
		}
	}
}

// "2n.TTL + max(CT_n)" (thesis, 4.1) and what a broadcast needs.
func TestPaperPlacingTime(t *testing.T) {
	paper, parallel, err := PlacingTime(100, 0.5, []float64{0.1, 0.3, 0.2})
	if err != nil || !near(paper, 100.3) || !near(parallel, 1.3) {
		t.Errorf("%v, %v, %v", paper, parallel, err)
	}
	paper, parallel, err = PlacingTime(0, math.Inf(1), nil)
	if paper != 0 || !math.IsInf(parallel, 1) || err != nil {
		t.Errorf("no sites: %v, %v, %v", paper, parallel, err)
	}
}

func TestInvalidArguments(t *testing.T) {
	nan := math.NaN()
	job := func(j Job) error { _, err := Summarise([]Job{j}, 1); return err }
	replicate := func(change func(*Replication)) error {
		r := Replication{Availability: 0.5, Copies: 1}
		change(&r)
		_, err := Replicate(r)
		return err
	}
	predict := func(change func(*Prediction)) error {
		p := Prediction{Resources: 1, Attempts: 1}
		change(&p)
		_, err := Predict(p)
		return err
	}
	_, eNodes := Summarise(nil, nan)
	_, _, eSites := PlacingTime(-1, 1, nil)
	_, _, eTTL := PlacingTime(1, -1, nil)
	_, _, eCompute := PlacingTime(1, 1, []float64{nan})
	for i, err := range []error{
		eNodes, eSites, eTTL, eCompute,
		job(Job{SubmitSeconds: -1}), job(Job{StartSeconds: nan}), job(Job{RunSeconds: -1}),
		job(Job{Nodes: -1}),
		job(Job{Outcome: 3}),
		job(Job{Failures: -1}), job(Job{Started: true, SubmitSeconds: 5, StartSeconds: 3}),
		replicate(func(r *Replication) { r.Availability = 1.1 }),
		replicate(func(r *Replication) { r.Copies = 0 }),
		replicate(func(r *Replication) { r.Load = nan }), replicate(func(r *Replication) { r.Jobs = -1 }),
		replicate(func(r *Replication) { r.Capacity = -1 }),
		replicate(func(r *Replication) { r.RunSeconds = -1 }),
		predict(func(p *Prediction) { p.ErrorRate = nan }),
		predict(func(p *Prediction) { p.Resources = 0 }),
		predict(func(p *Prediction) { p.Attempts = 0 }), predict(func(p *Prediction) { p.Jobs = -1 }),
	} {
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
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

func TestStrategyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fraction := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1e-12, 1}))
		many := rapid.OneOf(rapid.Int64Range(1, 9), rapid.SampledFrom([]int64{1, 1e9, math.MaxInt64}))
		r := Replication{
			fraction.Draw(t, "alpha"), many.Draw(t, "K"), amounts().Draw(t, "H"), many.Draw(t, "J") - 1,
			amounts().Draw(t, "S"), amounts().Draw(t, "L"),
		}
		a, err := Replicate(r)
		if err != nil || !(a.Success >= 0 && a.Success <= 1 && a.AllFail >= 0) ||
			!near(a.Success+a.AllFail, 1) ||
			a.PaperSuccess > a.Success+1e-12 || !(a.QueueSeconds >= 0) || !(a.Throughput >= 0) ||
			!(a.MaxLoad >= 0) {
			t.Fatalf("%+v: %+v, %v", r, a, err)
		}
		p := Prediction{
			fraction.Draw(t, "Er"), many.Draw(t, "k"), many.Draw(t, "R"), amounts().Draw(t, "H2"),
			many.Draw(t, "J2") - 1,
		}
		b, err := Predict(p)
		if err != nil || !(b.Success >= 0 && b.Success <= 1) || b.Success > b.PaperSuccess*(1+1e-9) ||
			!(b.MaxQueueSeconds >= 0) || !(b.MinThroughput >= 0) {
			t.Fatalf("%+v: %+v, %v", p, b, err)
		}
		if r.Copies < math.MaxInt64 {
			r.Copies++
			if more, _ := Replicate(r); more.Success < a.Success {
				t.Errorf("a copy more: success falls from %v to %v", a.Success, more.Success)
			}
		}
		sites := many.Draw(t, "n")
		paper, parallel, err := PlacingTime(sites,
			amounts().Draw(t, "TTL"), []float64{amounts().Draw(t, "CT")})
		if err != nil || !(parallel >= 0) || paper < parallel {
			t.Errorf("%d sites: %v and %v, %v", sites, paper, parallel, err)
		}
	})
}
