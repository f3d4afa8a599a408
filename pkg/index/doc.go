// Package index measures how far a site is from a job in the virtual map: the
// computation index x, the data index y and the distance of the point (x, y, z)
// from the origin, where the job is. The availability index z comes from
// pkg/avail. Smaller is better everywhere.
//
// It works on the types of pkg/grid. The machines call Feasible and Measure at a site,
// and RankOffers and SoftMin at a submitter. Below them is mathematics on float64 in SI
// units (bit/s, seconds, FLOP/s), which answers nonsense with argument.ErrInvalid: Ratio,
// Potential, Distance and, for reservations rather than offers, ShortestExpectedDelay.
// The thesis' equations as printed are in pkg/papers/virtualmap, whose tests hold Measure
// against them.
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006 ("the thesis" below),
// sections 3.1 and 3.3. Where the thesis contradicts itself, the default is the
// repaired reading and a mode keeps the printed one.
//
// General rules of the mathematics: no number or a negative one is an invalid
// argument, also in an argument the result does not use; minus zero is zero; an
// infinite offer or link is legal; an infinite result means "cannot".
package index
