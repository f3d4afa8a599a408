package ckpt

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// LossModel says what one outage costs, at worst: one whole segment between two
// checkpoints. OpenCCS shows curves and no formula; both models have their minima
// where its figure 2 has them. (The average loss of half a segment has not.)
type LossModel uint8

// The models.
const (
	LossOfWork LossModel = iota // a segment is the work in it: R/(n+1)
	// LossWithOverheads adds a segment's share of the checkpoints' time: (R+nC)/(n+1).
	LossWithOverheads
)

// Outages are what a task of some length must expect.
type Outages struct {
	RuntimeSeconds float64 // R, without checkpoints
	CostSeconds    float64 // C, what one checkpoint takes
	Count          int64   // k, how many outages to expect
}

func (o Outages) validate(model LossModel) error {
	if model > LossWithOverheads {
		return fmt.Errorf("%w: no such loss model: %d", argument.ErrInvalid, model)
	}
	return errors.Join(argument.Amount("run time", o.RuntimeSeconds),
		argument.Amount("cost of a checkpoint", o.CostSeconds), argument.AtLeast("outages", 0, o.Count))
}

// Total returns the task's time in the worst case with n evenly spaced checkpoints: R +
// nC + kR/(n+1), or R + nC + k(R+nC)/(n+1). OpenCCS, figure 2.
func (o Outages) Total(model LossModel, checkpoints int64) (float64, error) {
	err := errors.Join(o.validate(model), argument.AtLeast("checkpoints", 0, checkpoints))
	if err != nil {
		return 0, err
	}
	return o.total(model, float64(checkpoints)), nil
}

func (o Outages) total(model LossModel, n float64) float64 {
	overhead := 0.0
	if n > 0 {
		overhead = n * o.CostSeconds
	}
	lost := o.RuntimeSeconds
	if model == LossWithOverheads {
		lost += overhead
	}
	sum := o.RuntimeSeconds + overhead
	if o.Count > 0 {
		sum += float64(o.Count) * lost / (n + 1)
	}
	return sum
}

// maxCount bounds the number of checkpoints: beyond, float64 has no odd numbers.
const maxCount = 1 << 53

// CheckpointCount is the number of evenly spaced checkpoints for which Total is
// least, the smaller of two that are equally good. Without outages it is 0. With
// outages and checkpoints that cost nothing there is no least number, which is
// argument.ErrUndefined. OpenCCS, figure 2: a task of 60 minutes with checkpoints of 2
// minutes takes 0, 4 or 7 of them for 0, 1 or 2 outages.
func (o Outages) CheckpointCount(model LossModel) (int64, error) {
	if err := o.validate(model); err != nil {
		return 0, err
	}
	if o.Count == 0 {
		return 0, nil
	}
	if o.CostSeconds == 0 {
		return 0, fmt.Errorf("%w: checkpoints that cost nothing: the more, the better",
			argument.ErrUndefined)
	}
	// Total is convex in n: its minimum is beside the root of its derivative.
	worth := o.RuntimeSeconds / o.CostSeconds
	if model == LossWithOverheads {
		worth--
	}
	if !(worth > 0) || math.IsInf(o.RuntimeSeconds, 1) {
		return 0, nil
	}
	root := math.Sqrt(float64(o.Count))*math.Sqrt(worth) - 1
	if root > maxCount {
		return 0, fmt.Errorf("%w: more than %d checkpoints", argument.ErrUndefined, int64(maxCount))
	}
	best := max(math.Floor(root)-1, 0)
	// In whole numbers: beside maxCount one more is the same float64.
	for n := int64(best) + 1; float64(n) <= root+2; n++ {
		if o.total(model, float64(n)) < o.total(model, best) {
			best = float64(n)
		}
	}
	return int64(best), nil
}
