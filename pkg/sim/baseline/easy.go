package baseline

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

// look starts what can start now. The first in the queue that cannot gets a promise, the
// earliest one there is; those behind it start if they fit beside that: EASY backfilling (D.
// Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995), where a machine is any of the sites.
func (s *scheduler) look() error {
	var promised []share
	blocked := false
	for number := range s.queues {
		kept := s.queues[number][:0]
		for _, r := range s.queues[number] {
			shares := s.fit(r)
			switch {
			case shares != nil:
				if err := s.begin(r, shares); err != nil {
					return err
				}
				continue
			case !blocked && !s.policy.FirstFit:
				var err error
				if promised, err = s.promise(r); err != nil {
					return err
				}
				blocked = true
			}
			kept = append(kept, r)
		}
		s.queues[number] = kept
	}
	for _, sh := range promised {
		s.sites[sh.site].Release(sh.attempt)
	}
	return nil
}

// fit looks for a place for a copy that begins now; nil is none.
func (s *scheduler) fit(r replica) []share {
	need := s.jobs[r.job].Need
	if s.policy.Split {
		if !hold(s.free, need) {
			return nil
		}
		return s.cut(r, s.now)
	}
	for _, site := range s.order(r, 0) {
		if !s.free[site].Fits(need) {
			continue
		}
		shares := []share{{site: site, take: need}}
		end := s.now + s.span(r, shares, s.now)
		if s.sites[site].Free(s.clock(), epoch().Add(end)).Fits(need) {
			return shares
		}
	}
	return nil
}

// span is the time for which a copy is expected to hold its resources, from an instant on.
func (s *scheduler) span(r replica, shares []share, from time.Duration) time.Duration {
	j := s.jobs[r.job]
	start, out := from, time.Duration(0)
	for _, sh := range shares {
		start = max(start, s.links.arrival(from, portion(j.In, sh.take, j.Need), j.Source, sh.site))
		out = max(out, s.grid.transfer(portion(j.Out, sh.take, j.Need), sh.site, j.Home))
	}
	return start + j.Estimate + out - from
}

// promise keeps the earliest place for a copy for which there is none now.
func (s *scheduler) promise(r replica) ([]share, error) {
	at, length, shares := s.earliest(r)
	for i := range shares {
		if err := s.enter(&shares[i], at, at+length); err != nil {
			return nil, fmt.Errorf("job %d: %w", r.job, err)
		}
	}
	return shares, nil
}

// earliest is when, for how long and where a copy can have its place first, by the estimates of
// running copies.
func (s *scheduler) earliest(r replica) (at, length time.Duration, shares []share) {
	if s.policy.Split {
		for _, a := range s.due {
			at = max(a.due, s.now+1)
			if shares = s.cut(r, at); shares != nil {
				return at, s.span(r, shares, at), shares
			}
		}
		return 0, 0, nil
	}
	need := s.jobs[r.job].Need
	for _, site := range s.orders[r.job] {
		if s.down[site] {
			continue
		}
		here := []share{{site: site, take: need}}
		span := s.span(r, here, s.now)
		q, reason := s.sites[site].EarliestStart(s.clock(), plan.Ask{
			Need: need, Rate: func(grid.Resources) (int64, time.Duration) { return need.MFLOPS, span },
		})
		if start := q.Start.Sub(epoch()); reason == grid.ReasonNone && (shares == nil || start < at) {
			at, length, shares = start, span, here
		}
	}
	return at, length, shares
}

// cut divides a copy over the sites in their order, as much on each as is free there from an
// instant on; nil if that does not suffice. Before it is known which sites it will be, as much time
// is counted as it takes with the slowest ways.
func (s *scheduler) cut(r replica, at time.Duration) []share {
	need := s.jobs[r.job].Need
	var slowest time.Duration
	for _, site := range s.orders[r.job] {
		slowest = max(slowest, s.span(r, []share{{site: site, take: need}}, at))
	}
	var shares []share
	rest := need.MilliCPUs
	for _, site := range s.order(r, at-s.now) {
		free := s.freeAt(site, at, at+slowest)
		take := part(need, min(rest, largest(need, free)))
		if take.MilliCPUs <= 0 {
			continue
		}
		shares = append(shares, share{site: site, take: take})
		if rest -= take.MilliCPUs; rest == 0 {
			return shares
		}
	}
	return nil
}

// largest counts the thousandths of a processor of a job that fit into free resources, each with
// its part of all else that the job needs.
func largest(need, free grid.Resources) int64 {
	most := free.MilliCPUs
	for _, f := range [][2]int64{
		{need.MemoryBytes, free.MemoryBytes},
		{need.DiskBytes, free.DiskBytes},
		{need.MFLOPS, free.MFLOPS},
		{need.NetBps, free.NetBps},
	} {
		if f[0] > 0 {
			most = min(most, int64(float64(need.MilliCPUs)*float64(f[1])/float64(f[0])))
		}
	}
	return most
}

// part is the need of so many thousandths of a processor of a job.
func part(need grid.Resources, milliCPUs int64) grid.Resources {
	of := func(whole int64) int64 {
		return int64(float64(whole) * float64(milliCPUs) / float64(need.MilliCPUs))
	}
	return grid.Resources{
		MilliCPUs: milliCPUs, MemoryBytes: of(need.MemoryBytes), DiskBytes: of(need.DiskBytes),
		MFLOPS: of(need.MFLOPS), NetBps: of(need.NetBps),
	}
}

// portion is a share's part of a job's data.
func portion(bytes int64, take, need grid.Resources) int64 {
	return int64(float64(bytes) * float64(take.MilliCPUs) / float64(need.MilliCPUs))
}
