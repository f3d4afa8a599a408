package metrics

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// "the probability of any replica to succeed is 1-K(1-alpha)" (thesis, 3.2.3): it
// is negative for a grid that is up 30 % of the time.
func TestPaperReplication(t *testing.T) {
	r, err := Replicate(
		Replication{Availability: 0.3, Copies: 2, RunSeconds: 10, Jobs: 5, Capacity: 100, Load: 40},
	)
	if err != nil || !near(r.PaperSuccess, -0.4) || !near(r.Success, 0.51) ||
		!near(r.MaxLoad, 15) ||
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
			ErrorRate: c.rate, Resources: c.resources, Attempts: c.attempts,
			RunSeconds: 10, Jobs: 3,
		})
		if err != nil || math.Abs(p.PaperSuccess-c.paper) > 1e-7 ||
			math.Abs(p.Success-c.want) > 1e-7 {
			t.Errorf("%+v: %+v, %v", c, p, err)
		}
	}
}

// As many nodes as all copies together have in the mean may be asked for; one more and copies
// wait for each other.
func TestLoadUpToTheLimitIsNoOverload(t *testing.T) {
	for load, overloaded := range map[float64]bool{
		0: false, 25: false, math.Nextafter(25, 26): true, 26: true,
	} {
		r, err := Replicate(Replication{
			Availability: 0.5, Copies: 2, RunSeconds: 10, Jobs: 5, Capacity: 100, Load: load,
		})
		queue, throughput := 50.0, 0.1
		if overloaded {
			queue, throughput = 75, 1/15.0
		}
		if err != nil || r.Overloaded != overloaded || r.MaxLoad != 25 ||
			!near(r.QueueSeconds, queue) || !near(r.Throughput, throughput) ||
			!near(r.AllFail, 0.25) {
			t.Errorf("%v nodes a job: %+v, %v", load, r, err)
		}
	}
}

// With predictions every job needs every attempt at most.
func TestAttemptsBoundTheQueue(t *testing.T) {
	p, err := Predict(Prediction{
		ErrorRate: 0.5, Resources: 2, Attempts: 4, RunSeconds: 10, Jobs: 3,
	})
	if err != nil || !near(p.OnceSuccess, 0.25) || !near(p.MaxQueueSeconds, 120) ||
		!near(p.MinThroughput, 1/40.0) || !near(p.Success, 1-math.Pow(0.75, 4)) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = Predict(Prediction{Resources: 1, Attempts: 1}); err != nil ||
		!math.IsInf(p.MinThroughput, 1) || p.OnceSuccess != 1 {
		t.Errorf("jobs that take no time: %+v, %v", p, err)
	}
}

// Who reads a number beside an error reads 0.
func TestNothingStandsBesideAnError(t *testing.T) {
	if r, err := Replicate(Replication{}); r != (Replicated{}) || err == nil {
		t.Errorf("Replicate: %+v beside %v", r, err)
	}
	if p, err := Predict(Prediction{}); p != (Predicted{}) || err == nil {
		t.Errorf("Predict: %+v beside %v", p, err)
	}
}

func TestInvalidStrategies(t *testing.T) {
	nan := math.NaN()
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
	for i, err := range []error{
		replicate(func(r *Replication) { r.Availability = 1.1 }),
		replicate(func(r *Replication) { r.Copies = 0 }),
		replicate(func(r *Replication) { r.Load = nan }),
		replicate(func(r *Replication) { r.Jobs = -1 }),
		replicate(func(r *Replication) { r.Capacity = -1 }),
		replicate(func(r *Replication) { r.RunSeconds = -1 }),
		predict(func(p *Prediction) { p.ErrorRate = nan }),
		predict(func(p *Prediction) { p.Resources = 0 }),
		predict(func(p *Prediction) { p.Attempts = 0 }),
		predict(func(p *Prediction) { p.Jobs = -1 }),
	} {
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
	}
}

func TestStrategyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fraction := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1e-12, 1}))
		many := rapid.OneOf(
			rapid.Int64Range(1, 9), rapid.SampledFrom([]int64{1, 1e9, math.MaxInt64}),
		)
		r := Replication{
			fraction.Draw(t, "alpha"), many.Draw(t, "K"), amounts().Draw(t, "H"),
			many.Draw(t, "J") - 1,
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
		if err != nil || !(b.Success >= 0 && b.Success <= 1) ||
			b.Success > b.PaperSuccess*(1+1e-9) ||
			!(b.MaxQueueSeconds >= 0) || !(b.MinThroughput >= 0) {
			t.Fatalf("%+v: %+v, %v", p, b, err)
		}
		if r.Copies < math.MaxInt64 {
			r.Copies++
			if more, _ := Replicate(r); more.Success < a.Success {
				t.Errorf("a copy more: success falls from %v to %v", a.Success, more.Success)
			}
		}
	})
}
