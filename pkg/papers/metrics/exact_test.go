package metrics

import (
	"math"
	"testing"
)

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
	for name, f := range map[string]func() (float64, float64, error){
		"sites":   func() (float64, float64, error) { return PlacingTime(-1, 1, nil) },
		"TTL":     func() (float64, float64, error) { return PlacingTime(1, -1, nil) },
		"compute": func() (float64, float64, error) { return PlacingTime(1, 1, []float64{1, -1}) },
	} {
		if paper, parallel, err := f(); paper != 0 || parallel != 0 || err == nil {
			t.Errorf("%s: %v and %v beside %v", name, paper, parallel, err)
		}
	}
}
