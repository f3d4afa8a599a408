// Package index measures how far a site is from a job in the virtual map: the
// computation index x, the data index y and the distance of the point (x, y, z)
// from the origin, where the job is. The availability index z comes from
// pkg/avail. Smaller is better everywhere.
//
// The package has two layers. The exact mathematics works on float64 in SI units
// (bytes, bit/s, seconds, FLOP/s) and answers nonsense with ErrInvalidArgument:
// ProvisionRatio, Potential, ComputationIndex, DataIndex, DataIndexMulti,
// EffectiveBandwidth, YBounded, Distance, Rank and, for reservations rather than
// offers, ShortestExpectedDelay. The mesh layer works on the nouns of pkg/grid and
// is what the machines call: Feasible and Measure at a site, RankOffers and SoftMin
// at a submitter.
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006 ("the thesis" below),
// sections 3.1 and 3.3. Where the thesis contradicts itself, the default is the
// repaired reading and a mode keeps the printed one.
//
// General rules of the exact layer: no number or a negative one is an invalid
// argument, also in an argument the result does not use; minus zero is zero; an
// infinite offer or link is legal; an infinite result means "cannot".
package index
