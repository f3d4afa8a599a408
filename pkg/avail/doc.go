// Package avail estimates the availability index z = 1 - P(the site stays up until
// the task's end), 0 being best.
//
// What a scheduler wants to know is whether a node that has been up for a while
// stays up for some time to come: the conditional survival S(t+tau)/S(t) of a
// lifetime distribution. Model gives it for a site with a past to learn from, Prior
// for one of which little or nothing is known yet.
//
// Around it stand what a submitter asks of many nodes: whether all of them stay up
// (AllOf), how many there will be (CapacityForecast), whether a job asks for too much
// (SAA) and which nodes it should get (NAA).
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006 ("the thesis"), section
// 3.2, equations (3) to (11), and section 3.3.1. The equations that a forecast prints
// beside its own are here as printed: their sum is the probability of at least two
// failures rather than one and counts a node's whole age instead of its future, so that
// a node which is merely old counts as dead. See FailureSum. The rest of the thesis'
// mathematics is in pkg/papers/nodes, beside the tests that show so.
//
// Where to look:
//
//	model.go      what a site has learned: survival, and how sure that is
//	fit.go        learning a Model from a History
//	hazard.go     failure rates by age and by the hour of the week
//	prior.go      what is believed before anything was learned
//	spans.go      a site's past: spans of being up, and how they ended
//	thesis.go     equations (3) to (6)
//	sets.go       several nodes at a time, the Poisson-binomial distribution
//	capacity.go   how many nodes there will be: equation (11)
//	policies.go   SAA and NAA
//
// Times are float64 seconds in the mathematics and time.Duration in Prior.Up. An
// argument that is no number or negative is an argument.ErrInvalid, also where the
// result does not depend on it; arguments without an answer are argument.ErrUndefined.
package avail
