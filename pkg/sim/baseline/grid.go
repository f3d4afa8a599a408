package baseline

import (
	"fmt"
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Grid is the sites of a grid and the ways between them.
type Grid struct {
	// Sites holds what each site gives. Its nodes are its MilliCPUs in thousandths.
	Sites []grid.Resources
	// Bps is the rate from the first site to the second in bit/s, above 0, infinite where
	// a transfer takes no time; from a site to itself that of its disk.
	Bps [][]float64
	Failures
}

// Job is one job of the grid's queue.
type Job struct {
	Submit   time.Duration  // since the start; nobody knows of it before
	Need     grid.Resources // all of it together
	Run      time.Duration  // nobody knows it before it ends
	Estimate time.Duration  // what its user says of Run, at least as long
	In, Out  int64          // bytes of its input and of its output
	Source   int            // the site that holds its input
	Home     int            // the site that its output goes to
}

// validate tells what is wrong with a grid.
func (g Grid) validate() error {
	if len(g.Sites) == 0 {
		return fmt.Errorf("%w: a grid without sites", argument.ErrInvalid)
	}
	if len(g.Bps) != len(g.Sites) {
		return fmt.Errorf("%w: rates from %d sites, want %d", argument.ErrInvalid, len(g.Bps),
			len(g.Sites))
	}
	for i, s := range g.Sites {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("site %d: %w", i, err)
		}
		if len(g.Bps[i]) != len(g.Sites) {
			return fmt.Errorf("%w: rates from site %d to %d sites, want %d", argument.ErrInvalid, i,
				len(g.Bps[i]), len(g.Sites))
		}
		for k, bps := range g.Bps[i] {
			if !(bps > 0) {
				return fmt.Errorf("%w: rate from site %d to site %d: %v: want one above 0",
					argument.ErrInvalid, i, k, bps)
			}
		}
	}
	return g.Failures.validate(len(g.Sites))
}

// longest bounds all times of a job far below overflow.
const longest = 10 * 365 * 24 * time.Hour

func (g Grid) validateJob(j Job) error {
	switch {
	case j.Submit < 0 || j.Submit > longest:
		return fmt.Errorf("%w: submitted at %v", argument.ErrInvalid, j.Submit)
	case j.Run <= 0 || j.Estimate < j.Run || j.Estimate > longest:
		return fmt.Errorf("%w: runs for %v, estimated %v: want a time, and no less estimated",
			argument.ErrInvalid, j.Run, j.Estimate)
	case j.In < 0 || j.Out < 0:
		return fmt.Errorf("%w: %d bytes in, %d out", argument.ErrInvalid, j.In, j.Out)
	case min(j.Source, j.Home) < 0 || max(j.Source, j.Home) >= len(g.Sites):
		return fmt.Errorf("%w: from site %d to site %d of %d", argument.ErrInvalid, j.Source, j.Home,
			len(g.Sites))
	case j.Need.MilliCPUs <= 0:
		return fmt.Errorf("%w: a job that needs no processor", argument.ErrInvalid)
	default:
		return j.Need.Validate()
	}
}

// transfer is the time that bytes are on the way between two sites that nothing else uses.
func (g Grid) transfer(bytes int64, from, to int) time.Duration {
	seconds := 8 * float64(bytes) / g.Bps[from][to]
	return time.Duration(math.Ceil(min(seconds, longest.Seconds()) * float64(time.Second)))
}

// moving is the time for which a job's data move to and from a site that runs all of it.
func (g Grid) moving(j Job, site int) time.Duration {
	return g.transfer(j.In, j.Source, site) + g.transfer(j.Out, site, j.Home)
}

// hold reports whether sites together are large enough for a job that is cut.
func hold(sites []grid.Resources, need grid.Resources) bool {
	rest := need.MilliCPUs
	for _, free := range sites {
		if rest -= min(rest, max(largest(need, free), 0)); rest == 0 {
			return true
		}
	}
	return false
}
