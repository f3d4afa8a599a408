// Package metrics says how well a grid could do: the thesis' comparison of running copies of a
// job with predicting failures (Replicate, Predict), and its bound on the time that placing a
// job takes (PlacingTime).
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006 ("the thesis"),
// sections 3.2.3 and 4.1. Where a formula of the thesis contradicts probability theory, the
// field with the plain name is the repaired one and the one named Paper is as printed.
//
// Times are float64 seconds, or any other unit if it is the same everywhere. A
// number that is none, negative or outside its range is an argument.ErrInvalid,
// also where the result does not depend on it. No result is ever NaN.
//
// No program calls it. It is compared with a second implementation in internal/vectors. How well
// a grid did is measured by pkg/metrics.
package metrics
