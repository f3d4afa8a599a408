package eval

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/ckpt"
)

// Checkpoints asks what each rule makes of one task.
type Checkpoints struct {
	Run  time.Duration // without failures and checkpoints, above 0
	Cost time.Duration // of a checkpoint, above 0
	MTBF time.Duration // mean time between failures, above 0
	Most int           // checkpoints, up to which the curves go
}

// CheckpointsResult holds what they make of it. Times are seconds.
type CheckpointsResult struct {
	Outages []OutageCurve  `json:"outages"`
	Plans   []IntervalPlan `json:"plans"`
}

// OutageCurve is the time of a task with a number of outages, each of which costs a whole
// segment: figure 2 of OpenCCS.
type OutageCurve struct {
	Outages int64     `json:"outages"`
	Best    int64     `json:"best"`    // the number of checkpoints with which it is least
	Seconds []float64 `json:"seconds"` // with 0 checkpoints, 1, and so on
}

// IntervalPlan is when a rule takes checkpoints, and how long the task takes on average.
type IntervalPlan struct {
	Rule     string    `json:"rule"`
	Expected float64   `json:"expected,omitempty"`
	At       []float64 `json:"at"` // work done at each checkpoint
}

// mostCurve bounds the curves' points.
const mostCurve = 1000

// Plan answers.
func (c Checkpoints) Plan() (CheckpointsResult, error) {
	if c.Run <= 0 || c.Cost <= 0 || c.MTBF <= 0 || c.Most < 0 || c.Most > mostCurve {
		return CheckpointsResult{}, fmt.Errorf(
			"%w: run, cost, mtbf: want times above 0; most: 0 to %d checkpoints", ErrUsage, mostCurve)
	}
	if c.Run/c.Cost > mostPlanned || c.Run/c.MTBF > mostPlanned {
		return CheckpointsResult{}, fmt.Errorf(
			"%w: run: want at most %d times cost and mtbf", ErrUsage, mostPlanned)
	}
	var r CheckpointsResult
	for outages := range int64(3) {
		curve, err := c.curve(outages)
		if err != nil {
			return CheckpointsResult{}, err
		}
		r.Outages = append(r.Outages, curve)
	}
	var err error
	r.Plans, err = c.plans()
	return r, err
}

// mostPlanned bounds how many checkpoints a task could need.
const mostPlanned = 10_000

func (c Checkpoints) curve(outages int64) (OutageCurve, error) {
	o := ckpt.Outages{
		RuntimeSeconds: c.Run.Seconds(), CostSeconds: c.Cost.Seconds(), Count: outages,
	}
	best, err := o.CheckpointCount(ckpt.LossOfWork)
	curve := OutageCurve{Outages: outages, Best: best}
	for n := range c.Most + 1 {
		total, wrong := o.Total(ckpt.LossOfWork, int64(n))
		curve.Seconds, err = append(curve.Seconds, total), errors.Join(err, wrong)
	}
	return curve, err
}

func (c Checkpoints) plans() ([]IntervalPlan, error) {
	run, cost, mtbf := c.Run.Seconds(), c.Cost.Seconds(), c.MTBF.Seconds()
	e := ckpt.Execution{WorkSeconds: run, CostSeconds: cost, MTBFSeconds: mtbf}
	segments, err1 := e.Segments()
	young, err2 := ckpt.Young(cost, mtbf)
	daly, err3 := ckpt.Daly(cost, mtbf)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	var plans []IntervalPlan
	for _, p := range []struct {
		rule     string
		interval float64
	}{{"equal segments", run / float64(segments)}, {"Young", young}, {"Daly", daly}} {
		plan := IntervalPlan{Rule: p.rule, At: []float64{}}
		// What rounding adds to the last segment is no segment of its own.
		for at := p.interval; at < run*(1-1e-9); at += p.interval {
			plan.At = append(plan.At, at)
		}
		expected, err := e.ExpectedCompletion(p.interval * (1 + 1e-12))
		if err != nil {
			return nil, err
		}
		if !math.IsInf(expected, 1) { // JSON has no infinity
			plan.Expected = expected
		}
		plans = append(plans, plan)
	}
	// As in the experiment ckpt: it begins with Daly's interval and steps by half of it.
	rule := ckpt.MFCA{
		ExecutionSeconds: run, GrowthLimit: .25, StepSeconds: daly / 2, MinSeconds: 2 * cost,
		CostSeconds: cost,
	}
	at, err := rule.Run(daly, mtbf)
	return append(plans, IntervalPlan{Rule: "MFCA", At: append([]float64{}, at...)}), err
}
