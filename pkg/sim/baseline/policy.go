package baseline

import (
	"fmt"
	"math/rand/v2"
	"slices"

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
	// Seed gives all chance.
	Seed uint64
}

func (p Policy) validate(g Grid) error {
	if p.Copies < 1 || p.Copies > len(g.Sites) {
		return fmt.Errorf("%w: %d copies, want 1 to %d", argument.ErrInvalid, p.Copies, len(g.Sites))
	}
	if p.Split && p.Copies > 1 {
		return fmt.Errorf("%w: copies that are cut are on no site of their own", argument.ErrInvalid)
	}
	return nil
}

// order lists the sites on which a job is tried.
func (p Policy) order(g Grid, need grid.Resources, chance *rand.Rand) []int {
	order := make([]int, len(g.Sites))
	for i := range order {
		order[i] = i
	}
	if p.Random {
		chance.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	}
	if !p.Split {
		return slices.DeleteFunc(order, func(s int) bool { return !g.Sites[s].Fits(need) })
	}
	if !hold(g.Sites, need) {
		return nil
	}
	return order
}

// others lists the sites on which the next copy of a job is tried, when one runs on a site.
func others(order []int, site int) []int {
	if len(order) == 1 {
		return order
	}
	return slices.DeleteFunc(order, func(s int) bool { return s == site })
}

// chance draws a policy's orders.
func (p Policy) chance() *rand.Rand { return workload.Stream(p.Seed, "baseline: order of sites") }
