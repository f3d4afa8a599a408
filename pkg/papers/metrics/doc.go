// Package metrics is the thesis' bound on the time that placing a job takes (PlacingTime).
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006 ("the thesis"), section 4.1.
//
// Times are float64 seconds, or any other unit if it is the same everywhere. A
// number that is none, negative or outside its range is an argument.ErrInvalid. No result is ever
// NaN.
//
// No program calls it. It is compared with a second implementation in internal/vectors. How well
// a grid did, or could do, is in pkg/metrics.
package metrics
