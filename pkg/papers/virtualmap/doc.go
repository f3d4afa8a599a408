// Package virtualmap has the thesis' virtual map as it is printed, on float64 in SI units
// (bytes, bit/s, seconds, FLOP/s): the computation index x, the data index y, and the
// order of points by their distance from the job.
//
// No program calls it: the machines call pkg/index, which says the same of the nouns of
// pkg/grid, refuses what cannot fit and allocates nothing. What is here is the oracle of
// the tests that hold pkg/index against the printed equations, and of internal/vectors,
// which compares them with a second implementation.
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006 ("the thesis"), section 3.1.
// Where the thesis contradicts itself, the default is the repaired reading and a mode
// keeps the printed one.
//
// General rules: no number or a negative one is an argument.ErrInvalid, also in an
// argument that the result does not use; minus zero is zero; an infinite offer or link is
// legal; an infinite result means "cannot".
package virtualmap
