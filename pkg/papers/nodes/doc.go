// Package nodes has what the thesis, and probability theory, say of nodes and sets of them
// that may fail: the conditional survival of fitted lifetimes (Exponential, Weibull,
// HyperExponential), whether a set of nodes stays up or comes back (SetUp, SetRecover,
// atLeast), a Markov chain of two states (CTMCUp), and the policies as printed
// (GeneralAvailability, NSA).
//
// No program calls it: the machines call pkg/avail, which learns from a site's own past
// and has the parts of the thesis that are used. What is here is the oracle of tests:
// internal/vectors compares it with a second implementation, and the tests beside it show
// what goes wrong with the printed equations.
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006 ("the thesis"), sections 3.2
// and 3.3.1.
//
// Times are float64 seconds. An argument that is no number or negative is an
// argument.ErrInvalid, also where the result does not depend on it; arguments without an
// answer are an argument.ErrUndefined.
package nodes
