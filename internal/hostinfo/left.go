package hostinfo

import (
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Load describes the use of the machine by others, and what must be left to them.
type Load struct {
	Cores      float64        // processors of the machine, more than 0
	Others     yield.Reading  // processors that others than this site use, stolen ones included
	Stolen     yield.Reading  // of these, processors that the host gives to other guests
	Reserve    float64        // processors that stay free beside what others use
	Floor      float64        // processors; what others use below this does not count
	Fair       bool           // jobs do not yield to others but share the processors with them
	Held       grid.Resources // what this site's own jobs hold
	FreeMemory int64          // bytes nobody uses; -1 = unknown
	FreeDisk   int64          // likewise
}

// Left returns what others leave of the nominal capability: the ceilings within what is
// free now, and the speed of a core without what the host steals of it. What is
// unknown takes nothing away. The computation falls with the cores; where it is
// known it stays at least 1, since computation is soft. What is left is never more
// than the nominal, and never less than what the site's own jobs hold.
func Left(nominal grid.Capability, l Load) grid.Capability {
	out := nominal
	share := 1.0 // of the computation
	if l.Others.Known && l.Others.Value > l.Floor && nominal.Total.MilliCPUs > 0 {
		share = l.coresLeft(&out.Total)
	}
	if l.Stolen.Known && l.Cores > 0 {
		out.CoreMFLOPS = part(nominal.CoreMFLOPS, 1-l.Stolen.Value/l.Cores)
	}
	out.Total.MFLOPS = max(part(nominal.Total.MFLOPS, share), min(l.Held.MFLOPS, nominal.Total.MFLOPS))
	if l.FreeMemory >= 0 {
		out.Total.MemoryBytes = within(
			float64(l.Held.MemoryBytes+l.FreeMemory), l.Held.MemoryBytes, nominal.Total.MemoryBytes,
		)
	}
	if l.FreeDisk >= 0 {
		out.Total.DiskBytes = within(
			float64(l.Held.DiskBytes+l.FreeDisk), l.Held.DiskBytes, nominal.Total.DiskBytes,
		)
	}
	return out
}

// coresLeft takes away the cores that others use and gives the share of the
// computation that is left. Where jobs do not yield, the cores stay on offer, and
// every process gets a part in proportion to what it wants.
func (l Load) coresLeft(total *grid.Resources) float64 {
	const milli = 1000
	given := float64(total.MilliCPUs)
	if l.Fair {
		return milli * l.Cores / (given + milli*l.Others.Value) // more than all is all
	}
	total.MilliCPUs = within(
		milli*(l.Cores-l.Others.Value-l.Reserve), l.Held.MilliCPUs, total.MilliCPUs,
	)
	return float64(total.MilliCPUs) / given
}

// part is a share of what is known, at least 1; 0 stays unknown.
func part(of int64, share float64) int64 {
	if of <= 0 {
		return 0
	}
	return within(float64(of)*share, 1, of)
}

// within holds a value between two bounds, of which the upper one wins.
func within(v float64, low, high int64) int64 {
	switch {
	case math.IsNaN(v) || v < float64(low):
		return min(low, high)
	case v >= float64(high):
		return high
	default:
		return int64(v)
	}
}

// hysteresis is the part of the nominal by which something must change to be told.
const hysteresis = .1

// Differs reports whether now is worth telling those who were told before: an
// amount changed by more than a tenth of its nominal, or everything is left again.
func Differs(nominal, told, now grid.Capability) bool {
	full := now.Total == nominal.Total && now.CoreMFLOPS == nominal.CoreMFLOPS
	if full {
		return told.Total != now.Total || told.CoreMFLOPS != now.CoreMFLOPS
	}
	far := func(nominal, told, now int64) bool {
		return math.Abs(float64(now-told)) > hysteresis*float64(nominal)
	}
	n, t, l := nominal.Total, told.Total, now.Total
	return far(n.MilliCPUs, t.MilliCPUs, l.MilliCPUs) ||
		far(n.MemoryBytes, t.MemoryBytes, l.MemoryBytes) ||
		far(n.DiskBytes, t.DiskBytes, l.DiskBytes) || far(n.MFLOPS, t.MFLOPS, l.MFLOPS) ||
		far(nominal.CoreMFLOPS, told.CoreMFLOPS, now.CoreMFLOPS)
}
