package baseline

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Outage is a time in which a site is down: from From on until To, at which it is up again.
type Outage struct{ From, To time.Duration }

// Failures says when the sites of a grid are down. Nobody knows of an outage before it begins,
// nor of its end before that. A copy that runs on a site that fails has failed, with its shares on
// other sites, unless it ends at that very instant; its data can still be read.
type Failures struct {
	// Outages holds those of each site, in their order, with time between them; nil: none fails.
	Outages [][]Outage
	// End is from when on nothing begins any more; 0: never. Running copies go on.
	End time.Duration
}

// Retry says what becomes of a copy whose site fails.
type Retry uint8

// The ways to go on.
const (
	RetryNever Retry = iota // the copy is lost: the thesis counts failed jobs, each once
	RetryLast               // it goes to the end of the queue
	RetryFirst              // it goes to the front
)

func (f Failures) validate(sites int) error {
	if f.End < 0 || f.End > longest {
		return fmt.Errorf("%w: an end at %v: want at least 0", argument.ErrInvalid, f.End)
	}
	if f.Outages != nil && len(f.Outages) != sites {
		return fmt.Errorf("%w: outages of %d sites, want %d", argument.ErrInvalid, len(f.Outages), sites)
	}
	for i, outages := range f.Outages {
		last := time.Duration(-1)
		for _, o := range outages {
			if o.From <= last || o.To <= o.From || o.To > 4*longest {
				return fmt.Errorf("%w: site %d: an outage from %v to %v: want times that rise",
					argument.ErrInvalid, i, o.From, o.To)
			}
			last = o.To
		}
	}
	return nil
}

// turn is an instant at which a site fails or is back.
type turn struct {
	at   time.Duration
	site int
	down bool
}

// turns lists those of all sites in the order of time; what is back comes before what fails.
func (f Failures) turns() []turn {
	var all []turn
	for site, outages := range f.Outages {
		for _, o := range outages {
			all = append(all, turn{o.From, site, true}, turn{o.To, site, false})
		}
	}
	slices.SortFunc(all, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.at, b.at), compareBools(a.down, b.down), cmp.Compare(a.site, b.site))
	})
	return all
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// closed reports whether nothing begins any more.
func (s *scheduler) closed() bool { return s.grid.End > 0 && s.now >= s.grid.End }

// hopes reports whether something waits that a site which is back could take.
func (s *scheduler) hopes() bool {
	if len(s.turns) == 0 || s.closed() {
		return false
	}
	return slices.ContainsFunc(s.queues, func(q []replica) bool { return len(q) > 0 })
}

// takeTurns lets sites fail and be back whose time has come.
func (s *scheduler) takeTurns() {
	for len(s.turns) > 0 && s.turns[0].at <= s.now {
		t := s.turns[0]
		s.turns = s.turns[1:]
		s.down[t.site] = t.down
		if t.down {
			s.fail(t.site)
		}
	}
}

// fail ends all copies that have a share on a site.
func (s *scheduler) fail(site int) {
	var lost []*active
	for _, a := range s.running {
		if slices.ContainsFunc(a.shares, func(sh share) bool { return sh.site == site }) {
			lost = append(lost, a)
		}
	}
	slices.SortFunc(lost, func(a, b *active) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.number, b.number))
	})
	for _, a := range lost {
		heap.Remove(&s.running, slices.Index(s.running, a))
		s.end(a)
		for _, i := range a.runs {
			s.runs[i].Failed, s.runs[i].Start = true, min(s.runs[i].Start, s.now)
		}
		s.retry(a.replica)
	}
}

func (s *scheduler) retry(r replica) {
	queue := &s.queues[r.number]
	switch s.policy.Retry {
	case RetryLast:
		*queue = append(*queue, r)
	case RetryFirst:
		*queue = slices.Insert(*queue, 0, r)
	case RetryNever:
	}
}

// freeAt says what a site can give for a time from an instant on; nothing while it is down.
func (s *scheduler) freeAt(site int, from, to time.Duration) grid.Resources {
	if s.down[site] {
		return grid.Resources{}
	}
	return s.sites[site].Free(epoch().Add(from), epoch().Add(to))
}

// order lists the sites on which a copy is tried that begins after a time. If the policy says how
// likely sites stay up, these are the ones that are up, the likeliest to stay so first; of a copy
// that begins now, those that have a place for a part of it. NAA of the thesis, section 3.3.1,
// whose time is the job's run time.
func (s *scheduler) order(r replica, ahead time.Duration) []int {
	if s.policy.BestFit {
		return bestFit(s.orders[r.job], s.free, s.jobs[r.job].Need)
	}
	if s.policy.Likely == nil {
		return s.orders[r.job]
	}
	stays := make([]float64, len(s.grid.Sites))
	var order []int
	for _, site := range s.orders[r.job] {
		full := ahead == 0 && largest(s.jobs[r.job].Need, s.free[site]) <= 0
		if !s.down[site] && !full {
			stays[site] = s.policy.Likely(site, s.now, ahead+s.jobs[r.job].Estimate)
			order = append(order, site)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(stays[b], stays[a]) })
	return order
}
