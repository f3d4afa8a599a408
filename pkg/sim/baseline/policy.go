package baseline

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// Policy says where jobs are tried, and how often. BACKFILL of the thesis has one copy of each job,
// on the first site that it fits on; REP has two, on two sites drawn at random.
type Policy struct {
	// Copies counts the runs of each job, 1 at least, no two on one site while there are others
	// that are large enough. All first copies are ahead of all second ones in the queue; nothing
	// is called off when one has ended.
	Copies int
	// Split lets a job be cut into shares of any size, one for each site, that run at the
	// same time.
	Split bool
	// FirstFit starts every job that fits, in the order of the queue, and promises a place to none:
	// wide jobs wait for as long as narrow ones come.
	FirstFit bool
	// Random tries the sites in an order drawn for each job, not in their own.
	Random bool
	// BestFit tries first the site that a job fills most, of those that have a place for the whole
	// job now, and then those with the most that is free.
	BestFit bool
	// Near tries first the site between which and the job's source and home data move fastest.
	Near bool
	// Seed gives all chance.
	Seed uint64

	// Retry says what becomes of a copy whose site fails; with several copies it is lost.
	Retry Retry
	// Admit says which jobs are taken at all, SAA of the thesis; nil: all.
	Admit func(Job) bool
	// Likely is the probability, 0 to 1, that a site that is up at an instant stays so for a time.
	// The likeliest sites are tried first, NAA of the thesis; nil: they are tried in their order.
	Likely func(site int, at, ahead time.Duration) float64
}

func (p Policy) validate(g Grid) error {
	if p.Copies < 1 || p.Copies > len(g.Sites) {
		return fmt.Errorf("%w: %d copies, want 1 to %d", argument.ErrInvalid, p.Copies, len(g.Sites))
	}
	if (p.BestFit || p.Near) && (p.Random || p.Likely != nil) || p.BestFit && p.Near {
		return fmt.Errorf("%w: best fit, near: want no other order of the sites beside it",
			argument.ErrInvalid)
	}
	if p.Retry > RetryFirst || p.Retry != RetryNever && p.Copies > 1 {
		return fmt.Errorf("%w: copies that are tried again: want one copy", argument.ErrInvalid)
	}
	return nil
}

// order lists the sites on which a job is tried.
func (p Policy) order(g Grid, j Job, chance *rand.Rand) []int {
	need, order := j.Need, make([]int, len(g.Sites))
	for i := range order {
		order[i] = i
	}
	if p.Random {
		chance.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	}
	if p.Near {
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(g.moving(j, a), g.moving(j, b))
		})
	}
	if !p.Split {
		return slices.DeleteFunc(order, func(s int) bool { return !g.Sites[s].Fits(need) })
	}
	if !hold(g.Sites, need) {
		return nil
	}
	return order
}

// bestFit puts sites in the order of what is free there, see Policy.BestFit.
func bestFit(sites []int, free []grid.Resources, need grid.Resources) []int {
	order := slices.Clone(sites)
	slices.SortStableFunc(order, func(a, b int) int {
		fitsA, fitsB := free[a].Fits(need), free[b].Fits(need)
		switch {
		case fitsA && fitsB:
			return cmp.Compare(free[a].MilliCPUs, free[b].MilliCPUs)
		case fitsA:
			return -1
		case fitsB:
			return 1
		default:
			return cmp.Compare(free[b].MilliCPUs, free[a].MilliCPUs)
		}
	})
	return order
}

// others lists the sites on which the next copy of a job is tried, when one runs: those without a
// share of it, unless they are too small.
func (p Policy) others(g Grid, need grid.Resources, order []int, shares []share) []int {
	var rest []int
	var sizes []grid.Resources
	for _, site := range order {
		if !slices.ContainsFunc(shares, func(sh share) bool { return sh.site == site }) {
			rest, sizes = append(rest, site), append(sizes, g.Sites[site])
		}
	}
	if len(rest) == 0 || p.Split && !hold(sizes, need) {
		return order
	}
	return rest
}

// chance draws a policy's orders.
func (p Policy) chance() *rand.Rand { return workload.Stream(p.Seed, "baseline: order of sites") }
