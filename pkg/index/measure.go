package index

import (
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// DefaultLinkBps is the rate, in bit/s, that a transfer is expected to have when
// neither side knows its own: 100 Mbit/s.
const DefaultLinkBps = 100_000_000

// maxSpan bounds every duration of Measure, so that a few of them can be added: 73
// years, written as a power of two that a float64 holds exactly.
const maxSpan = time.Duration(1 << 61)

// Access tells how a site would reach one of the requirement's data sources.
type Access struct {
	Bytes       int64 // size of the source, or of what is still missing of it
	Local       bool  // the site has it
	Unreachable bool  // no site that has it is reachable
	DownBps     int64 // the site's own download rate, bit/s; 0 = unknown
	UpBps       int64 // the holder's upload rate, bit/s; 0 = unknown
}

// Site holds what a site knows of itself when it answers one announcement.
type Site struct {
	Capability   grid.Capability // what the owner gives
	Free         grid.Resources  // what is free of it during the window in question
	PotentialBps int64           // P_i, the site's upload to all its peers, bit/s; 0 = no peers
	Sources      []Access        // for each of the requirement's sources
	Up           float64         // probability that the site stays up until the task's end, 0 to 1
	Wait         time.Duration   // until the earliest start
	Priced       bool            // the owner names a price
	Price        float64         // of an hour of a core, in the owners' own unit, at least 0
}

// Feasible reports whether the site can run the task at all, and if not, why. The thesis
// has no hard limits (a site that offers nothing is still ranked, with a ratio of 1), so
// this is a predicate of its own: kind of work, platform, cores, memory, disk and
// bandwidth are hard, and so are inputs out of reach. Computation is soft, since half the
// speed only takes twice the time, but a site with none left refuses. What the owner's
// ceilings rule out is told before what is merely not free, so that a refusal says
// "never" whenever that is true. A site whose speed was not measured yet refuses what
// asks for computation, but not permanently; and so does a site that does not know its
// link's rate, of what asks for bandwidth.
func Feasible(req grid.Requirement, site Site) (grid.Refusal, bool) {
	c := &site.Capability
	switch {
	case !c.Runs(req.Kind):
		return grid.Refusal{Reason: grid.ReasonKind, Never: true}, false
	case req.Saves && !c.Saves:
		return grid.Refusal{Reason: grid.ReasonWhole, Never: true}, false
	case req.OS != "" && req.OS != c.OS, req.Arch != "" && req.Arch != c.Arch:
		return grid.Refusal{Reason: grid.ReasonPlatform, Never: true}, false
	}
	if refusal, short := shortage(req.Need, c.Total); short {
		refusal.Never = !unknown(refusal.Reason, c)
		return refusal, false
	}
	if refusal, short := shortage(req.Need, site.Free); short {
		return refusal, false
	}
	for i := range site.Sources {
		if src := &site.Sources[i]; src.Unreachable && !src.Local && src.Bytes > 0 {
			return grid.Refusal{Reason: grid.ReasonData, Want: src.Bytes}, false
		}
	}
	return grid.Refusal{}, true
}

// unknown reports whether the site is short of a thing only because it was not
// measured yet.
func unknown(short grid.Reason, c *grid.Capability) bool {
	switch short {
	case grid.ReasonComputation: // it is measured as soon as the machine is quiet
		return c.CoreMFLOPS <= 0
	case grid.ReasonBandwidth:
		return c.Total.NetBps <= 0
	default:
		return false
	}
}

// shortage is the first dimension in which there is too little.
func shortage(need, have grid.Resources) (grid.Refusal, bool) {
	refuse := func(reason grid.Reason, want, have int64) (grid.Refusal, bool) {
		return grid.Refusal{Reason: reason, Want: want, Have: max(have, 0)}, true
	}
	switch {
	case need.MilliCPUs > max(have.MilliCPUs, 0):
		return refuse(grid.ReasonCPUs, need.MilliCPUs, have.MilliCPUs)
	case need.MemoryBytes > max(have.MemoryBytes, 0):
		return refuse(grid.ReasonMemory, need.MemoryBytes, have.MemoryBytes)
	case need.DiskBytes > max(have.DiskBytes, 0):
		return refuse(grid.ReasonDisk, need.DiskBytes, have.DiskBytes)
	case need.NetBps > max(have.NetBps, 0):
		return refuse(grid.ReasonBandwidth, need.NetBps, have.NetBps)
	case need.MFLOPS > 0 && have.MFLOPS <= 0:
		return refuse(grid.ReasonComputation, need.MFLOPS, have.MFLOPS)
	default:
		return grid.Refusal{}, false
	}
}

// TaskMFLOPS is the computation, in MFLOP/s, that a site can give to one task: not
// more than is free, and not more than the task's cores deliver. A part of a core
// is rounded up, because a task runs on whole threads; a task that asks for no
// core gets one. A core of unknown speed sets no limit.
func TaskMFLOPS(need, free grid.Resources, coreMFLOPS int64) int64 {
	offered := max(free.MFLOPS, 0)
	if coreMFLOPS <= 0 {
		return offered
	}
	cores := max((need.MilliCPUs+999)/1000, 1)
	if cores <= offered/coreMFLOPS { // divided, for the product may overflow
		return cores * coreMFLOPS
	}
	return offered
}

// RunTime returns how long the task runs when given mflops MFLOP/s. The estimate holds
// for a site that offers exactly what is required (g): less takes longer in proportion.
// More shortens it in the seconds map; the thesis map does not know faster than required.
// A task that asks for no computation always takes its estimate. The result is at least 1
// ns, at most 73 years.
func RunTime(req grid.Requirement, mflops int64) time.Duration {
	return runTime(&req, mflops)
}

func runTime(req *grid.Requirement, mflops int64) time.Duration {
	g := req.Need.MFLOPS
	if g <= 0 || mflops == g || (mflops > g && req.Map == grid.MapThesis) {
		return min(max(req.Runtime, 0), maxSpan)
	}
	if mflops <= 0 {
		return maxSpan
	}
	return max(span(req.Runtime.Seconds()*float64(g)/float64(mflops)), 1)
}

// span is a number of seconds as a bounded duration.
func span(seconds float64) time.Duration {
	if !(seconds < maxSpan.Seconds()) {
		return maxSpan
	}
	return time.Duration(seconds * float64(time.Second))
}

// Measure returns the site's position in the requirement's map, or why it refuses; the
// flag says which. It allocates nothing.
//
// x is the computation index with the requirement's weights: computation offered
// to one task (TaskMFLOPS), memory, disk, and the site's potential against that of
// the largest source. y is the data index: what is not local, one after the
// other, at the smaller of the site's download and the holder's upload rate (the
// known one if one is unknown, DefaultLinkBps if both are), and local data at the
// disk's rate, or for nothing if that is unknown. z is 1 - P(stays up). A job that
// names axes of its own is measured on them (Axis in pkg/grid), those included
// that the site knows and only a few jobs ask for.
//
// The thesis map's distance is the root of x^2 + y^2 + z^2. Memory and disk being
// hard limits, every site that meets the requirement has x = 0 there but for its
// potential, so the map does not see how much faster one of them is.
//
// The seconds map measures the same three things in one unit, seconds: the root of
// (wait + run)^2 + stage-in^2 + loss^2, where loss = z (wait + stage-in + run) is
// the time expected to be lost by a failure, all of the task's being at stake.
func Measure(req grid.Requirement, site Site) (grid.Parts, grid.Refusal, bool) {
	if refusal, ok := Feasible(req, site); !ok {
		return grid.Parts{}, refusal, false
	}
	mflops := TaskMFLOPS(req.Need, site.Free, site.Capability.CoreMFLOPS)
	stageIn := stageInSeconds(&site)
	p := grid.Parts{
		X:       computation(&req, &site, mflops),
		Z:       unavailability(site.Up),
		Wait:    min(max(site.Wait, 0), maxSpan),
		StageIn: span(stageIn),
		Run:     runTime(&req, mflops),
	}
	if runtime := req.Runtime.Seconds(); runtime > 0 {
		p.Y = stageIn / runtime
	}
	p.PotentialUnknown = potentialUnknown(req.Sources)
	place(&req, &site, &p)
	return p, grid.Refusal{}, true
}

// computation is x. The requirement's weights are valid: Requirement.Validate
// refuses others.
func computation(req *grid.Requirement, site *Site, mflops int64) float64 {
	need, free := &req.Need, &site.Free
	term := func(k float64, offered, required int64) float64 {
		r := Ratio(float64(max(offered, 0)), float64(required))
		return k * r * r
	}
	return math.Sqrt(term(req.Weights.C, mflops, need.MFLOPS) +
		term(req.Weights.M, free.MemoryBytes, need.MemoryBytes) +
		term(req.Weights.F, free.DiskBytes, need.DiskBytes) +
		term(req.Weights.P, site.PotentialBps, sourcePotential(req.Sources)))
}

// sourcePotential is P_src: the thesis' jobs have one data source, ours may have
// many, and the largest of them stands for all. Unknown is 0, not required.
func sourcePotential(sources []grid.DataSource) int64 {
	var largest, potential int64
	for i := range sources {
		if sources[i].Bytes > largest {
			largest, potential = sources[i].Bytes, sources[i].PotentialBps
		}
	}
	return potential
}

// potentialUnknown reports whether there is data to bring whose P_src nobody
// named, so that x is without its term.
func potentialUnknown(sources []grid.DataSource) bool {
	for i := range sources {
		if sources[i].Bytes > 0 {
			return sourcePotential(sources) == 0
		}
	}
	return false
}

// stageInSeconds is the time to bring all inputs, one after the other. It is
// finite: sizes are bounded and every rate that counts is at least 1 bit/s.
func stageInSeconds(site *Site) float64 {
	sum := 0.0
	for i := range site.Sources {
		src := &site.Sources[i]
		bps := linkBps(src.DownBps, src.UpBps)
		if src.Local {
			if bps = site.Capability.DiskBps; bps <= 0 {
				continue
			}
		}
		sum += 8 * float64(max(src.Bytes, 0)) / float64(bps)
	}
	return sum
}

// linkBps is the rate between two sites that may not know their own.
func linkBps(down, up int64) int64 {
	switch {
	case down <= 0 && up <= 0:
		return DefaultLinkBps
	case down <= 0:
		return up
	case up <= 0:
		return down
	default:
		return min(down, up)
	}
}

// unavailability is z = 1 - P(up), and 1 for a probability that makes no sense:
// such a site must not look good.
func unavailability(up float64) float64 {
	if !(up >= 0 && up <= 1) {
		return 1
	}
	return 1 - up
}
