package broker

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// place is one site's offer to the parts of a job that run together.
type place struct {
	site  grid.SiteID
	room  uint32        // how many parts it can run at the same time
	ready time.Duration // until they could start there, their inputs moved
	run   time.Duration // of a part
	bps   int64         // the lower of its declared rates up and down, bit/s; 0 = it declares none
}

// share is the parts that one site gets.
type share struct {
	place
	parts uint32
}

// endless is a time that nobody knows the end of.
const endless = time.Duration(math.MaxInt64)

// divide decides which sites the parts of a job run on, all at the same time. The
// places are the standing offers, nearest first, one of a site. It gives the shares
// nearest first, or none if the places do not suffice.
//
//   - never: the nearest site that takes all parts.
//   - if-needed: the same; if there is none, as few sites as it takes, and of those the
//     nearest. Sites of unknown rates come in only if the others do not suffice.
//   - greedy (thesis 2.1: jobs are "divisible into any size prior to execution"; 3.1.3:
//     the order of sites is that of their "advantage in handling job fragmentation"):
//     as many on each as it takes, nearest first; unless one site that takes all is
//     expected to end no later.
//
// Expected is as completion computes it, so communication is counted.
func divide(mode grid.Split, parts uint32, commBytes int64, places []place) []share {
	places = slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.room == 0 })
	single := singles(parts, places)
	switch {
	case parts == 0:
		return nil
	case mode == grid.SplitGreedy:
		return sooner(earliest(single, commBytes), nearestFirst(parts, places), commBytes)
	case len(single) > 0:
		return single[0]
	case mode == grid.SplitNever:
		return nil
	}
	if commBytes > 0 {
		known := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.bps == 0 })
		if shares := fewest(parts, known); shares != nil {
			return shares
		}
	}
	return fewest(parts, places)
}

// singles are the divisions onto one site.
func singles(parts uint32, places []place) [][]share {
	var all [][]share
	for _, p := range places {
		if p.room >= parts {
			all = append(all, []share{{p, parts}})
		}
	}
	return all
}

// earliest is the division that is expected to end first, the first of those on a tie.
func earliest(divisions [][]share, commBytes int64) []share {
	var best []share
	for _, d := range divisions {
		best = sooner(best, d, commBytes)
	}
	return best
}

// sooner is the division that is expected to end first, the first of two on a tie.
func sooner(a, b []share, commBytes int64) []share {
	if a == nil || b != nil && completion(b, commBytes) < completion(a, commBytes) {
		return b
	}
	return a
}

// nearestFirst puts as many parts on each site as it takes.
func nearestFirst(parts uint32, places []place) []share {
	var shares []share
	for _, p := range places {
		n := min(p.room, parts)
		shares = append(shares, share{p, n})
		if parts -= n; parts == 0 {
			return shares
		}
	}
	return nil
}

// fewest takes as few sites as possible, and of those the nearest: a site is taken if
// as many others as are still allowed can take the rest.
func fewest(parts uint32, places []place) []share {
	count, enough := least(parts, places)
	if !enough {
		return nil
	}
	var taken []place
	for i, p := range places {
		if len(taken) == count {
			break
		}
		rest := parts - min(parts, p.room+roomOf(taken))
		if n, enough := least(rest, places[i+1:]); enough && n <= count-len(taken)-1 {
			taken = append(taken, p)
		}
	}
	return nearestFirst(parts, taken)
}

// least returns the smallest number of sites that hold the parts, and whether there are so many.
func least(parts uint32, places []place) (int, bool) {
	bySize := slices.SortedFunc(slices.Values(places), func(a, b place) int {
		return cmp.Compare(b.room, a.room)
	})
	for n, p := range bySize {
		if parts == 0 {
			return n, true
		}
		parts -= min(parts, p.room)
	}
	return len(bySize), parts == 0
}

// roomOf adds up the parts that places take; it does not wrap.
func roomOf(places []place) uint32 {
	sum := uint64(0)
	for _, p := range places {
		sum += uint64(p.room)
	}
	return uint32(min(sum, math.MaxUint32/2))
}

// completion is the time until the last part is expected to end: all begin when the
// last can, none ends before the slowest, since they need each other, and what they
// exchange is added.
func completion(shares []share, commBytes int64) time.Duration {
	var ready, run time.Duration
	for _, s := range shares {
		ready, run = max(ready, s.ready), max(run, s.run)
	}
	return add(add(ready, run), communication(shares, commBytes))
}

// communication is the time that the exchange adds: none on one site. Between sites
// each part's bytes pass the slowest path, whose rate is the lowest that one of its
// ends declares. Where one declares none the path is unknown, and the time endless:
// a guess could be wrong by any factor, and a division that is known goes before.
func communication(shares []share, commBytes int64) time.Duration {
	if len(shares) < 2 || commBytes <= 0 {
		return 0
	}
	slowest := int64(math.MaxInt64)
	for _, s := range shares {
		if s.bps <= 0 {
			return endless
		}
		slowest = min(slowest, s.bps)
	}
	seconds := 8 * float64(commBytes) / float64(slowest)
	if seconds >= endless.Seconds() {
		return endless
	}
	return time.Duration(seconds * float64(time.Second))
}

// readyOf is the longest time until a share could start.
func readyOf(shares []share) time.Duration {
	var ready time.Duration
	for _, s := range shares {
		ready = max(ready, s.ready)
	}
	return ready
}

// add adds times that are not negative; endless stays endless.
func add(a, b time.Duration) time.Duration {
	if a > endless-b {
		return endless
	}
	return a + b
}
