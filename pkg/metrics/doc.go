// Package metrics says how well a grid did, by the thesis' measures of a finished run, and how well
// one could do that runs copies of each job or predicts failures (Replicate, Predict).
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006 ("the thesis"),
// sections 2.3, 3.2.3 and 4.1. Where a formula of the thesis contradicts probability theory, the
// field with the plain name is the repaired one and the one named Paper is as printed.
//
// Times are float64 seconds, or any other unit if it is the same everywhere. A
// number that is none, negative or outside its range is an argument.ErrInvalid,
// also where the result does not depend on it. No result is ever NaN. It is compared with a
// second implementation in internal/vectors.
package metrics

import "math"

// Value is a measure that may be undefined, such as the mean of nothing. The zero
// value is undefined.
type Value struct {
	number  float64
	defined bool
}

// value is a defined measure, unless it came out as no number.
func value(v float64) Value {
	if math.IsNaN(v) {
		return Value{}
	}
	return Value{number: v, defined: true}
}

// Get is the measure and whether it is defined.
func (v Value) Get() (float64, bool) { return v.number, v.defined }
