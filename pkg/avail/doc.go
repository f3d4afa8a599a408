// Package avail estimates the availability index z = 1 - P(the site stays up until
// the task's end), 0 being best.
//
// What a scheduler wants to know is whether a node that has been up for a while
// stays up for some time to come: the conditional survival S(t+tau)/S(t) of a
// lifetime distribution. Exponential, Weibull and HyperExponential give it for
// fitted lifetimes, Prior for a node of which little or nothing is known yet.
//
// Around it stand what a submitter asks of many nodes: whether a set of them stays
// up (AllOf, AtLeast, SetUp), how many there will be (CapacityForecast, CTMCUp),
// whether a job asks for too much (SAA) and which nodes it should get (NAA, NSA).
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006 ("the thesis"), section
// 3.2, equations (3) to (11), and section 3.3.1. The printed equations are here
// too, for reproduction only: their sum is the probability of at least two failures
// rather than one and counts a node's whole age instead of its future, so that a
// node which is merely old counts as dead. See FailureSum.
//
// Times are float64 seconds in the mathematics and time.Duration in Prior.Up. An
// argument that is no number or negative is an ErrInvalidArgument, also where the
// result does not depend on it; arguments without an answer are ErrUndefined.
package avail
