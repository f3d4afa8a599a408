package ckpt

import (
	"errors"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// maxSegments bounds the number of segments of one execution.
const maxSegments = 1 << 20

// Segments is into how many equal segments the work is best cut, with a checkpoint after
// each but the last: the n for which ExpectedCompletion of WorkSeconds/n is least, that is
// (n-1) (e^((w/n+C)/M) - 1) + (e^(w/nM) - 1). It is the optimum under exponential failures of
// a known rate (Daly 2006), at least 1 and at most 2^20, and 1 without work. The restart does
// not count: it costs as much for all n.
func (e Execution) Segments() (int64, error) {
	if err := errors.Join(
		checkCost(e.CostSeconds, e.MTBFSeconds), argument.Amount("work", e.WorkSeconds),
		finite("work", e.WorkSeconds),
	); err != nil {
		return 0, err
	}
	// Young's interval is near the best one; from there on it is downhill to both sides, as the
	// time is convex in n.
	n := math.Floor(e.WorkSeconds / young(e.CostSeconds, e.MTBFSeconds))
	n = min(max(n, 1), maxSegments)
	for n > 1 && e.cut(n-1) < e.cut(n) {
		n--
	}
	for n < maxSegments && e.cut(n+1) < e.cut(n) {
		n++
	}
	return int64(n), nil
}

// cut returns how long the work takes in n equal segments, without restarts.
func (e Execution) cut(n float64) float64 {
	segment := e.WorkSeconds / n
	return (n-1)*e.inflated(segment+e.CostSeconds) + e.inflated(segment)
}
