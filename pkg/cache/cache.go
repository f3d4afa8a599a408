// Package cache keeps the requirements of announced jobs, so that a job that waits
// can be re-announced by its ID alone: bounded, least recently used first out, and
// forgetting each entry when its own time to live ends.
//
// Source: B. Khoo Boon Tat, "Multi-Dimensional Resource Allocation Strategy for
// Large-Scale Computational Grid Systems", thesis, NUS 2006, section 4.1: sites cache
// requirements, answer re-announcements from the cache, and ask for what they miss.
// Beyond the thesis, a job that was placed keeps its entry for a later failover but is
// the first to be evicted, and no submitter may hold more than an eighth of the entries:
// a flood evicts the flooder's own oldest ones. The site itself may hold half of them,
// and no other submitter evicts its entries.
package cache

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// defaultSize is the number of requirements a site keeps unless told otherwise.
const defaultSize = 4096

// The part of the entries that one submitter may hold, one in eight, and the part
// that the site itself may, one in two.
const (
	quotaShare = 8
	selfShare  = 2
)

var (
	// errSubmitter refuses an entry for a job that another submitter announced first.
	errSubmitter = errors.New("the job belongs to another submitter")
	// errTTL refuses an entry that would never be valid.
	errTTL = errors.New("time to live: want more than 0")
)

// Entry is one cached requirement.
type Entry[V any] struct {
	Job       grid.JobID
	Submitter grid.SiteID // who announced the job first; no other site can change it
	Value     V
	Expires   time.Time // the entry is gone from this instant on
	Placed    bool      // the job runs somewhere; the entry is kept for failover only
}

// Stats counts what happened since the cache was made.
type Stats struct {
	Hits        uint64 // Get found it
	Misses      uint64 // Get did not, for whatever reason
	Evictions   uint64 // entries dropped for space or quota before their time
	Expirations uint64 // entries dropped because their time to live ended
}

// Cache maps jobs to values of type V. It has one owner and reads no clock: now is an
// argument of every method that depends on it, and never decreases. The values are handed
// out as they are, and callers must not change them.
type Cache[V any] struct {
	size    int
	self    grid.SiteID
	entries map[grid.JobID]*kept[V] // for looking up only; the order is in the shelves
	all     *shelf[V]
	others  *shelf[V] // all but the site's own
	owners  map[grid.SiteID]*shelf[V]
	stats   Stats
}

// kept is an entry and its places on the shelves: on that of all, on its owner's, and on that of
// others if it is one.
type kept[V any] struct {
	Entry[V]
	places [shelves]place[V]
}

// New is an empty cache for size entries, at least 1, of the site of that name. A
// submitter's quota is an eighth of them, but never less than 1. The site's own
// quota is half of them, and only its own entries evict its own; with an empty
// name nobody is treated so.
func New[V any](size int, self grid.SiteID) (*Cache[V], error) {
	if size < 1 {
		return nil, fmt.Errorf("new cache: size: want at least 1, have %d", size)
	}
	return &Cache[V]{
		size:    size,
		self:    self,
		entries: make(map[grid.JobID]*kept[V]),
		all:     newShelf[V](ofAll),
		others:  newShelf[V](ofOthers),
		owners:  make(map[grid.SiteID]*shelf[V]),
	}, nil
}

// Put stores the value for ttl, as a job that waits, and makes it the most recently used
// entry; a value that the job had is replaced. To make space it evicts the entry that was
// not used for longest, of the submitter's own if its quota is used up, else of all but
// the site's own, and placed ones before waiting ones.
func (c *Cache[V]) Put(
	now time.Time, job grid.JobID, submitter grid.SiteID, value V, ttl time.Duration,
) error {
	if ttl <= 0 {
		return errTTL
	}
	if old, ok := c.valid(now, job); ok {
		if old.Submitter != submitter {
			return fmt.Errorf("put %s: %w", job, errSubmitter)
		}
		old.Value, old.Expires = value, now.Add(ttl)
		c.move(old, false)
		return nil
	}
	c.dropPlaced(now)
	own, known := c.owners[submitter]
	switch {
	case known && own.len() >= c.quota(submitter):
		c.evict(own)
	case c.all.len() < c.size:
	case c.others.len() > 0:
		c.evict(c.others)
	default:
		c.evict(c.all)
	}
	e := &kept[V]{Entry: Entry[V]{
		Job: job, Submitter: submitter, Value: value, Expires: now.Add(ttl),
	}}
	c.entries[job] = e
	if c.owners[submitter] == nil {
		c.owners[submitter] = newShelf[V](ofOwner)
	}
	c.shelve(e)
	return nil
}

// Get is the job's entry, which becomes the most recently used one. It counts a
// hit or a miss.
func (c *Cache[V]) Get(now time.Time, job grid.JobID) (Entry[V], bool) {
	e, ok := c.valid(now, job)
	if !ok {
		c.stats.Misses++
		return Entry[V]{}, false
	}
	c.stats.Hits++
	c.move(e, e.Placed)
	return e.Entry, true
}

// Peek is Get without counting and without making the entry younger.
func (c *Cache[V]) Peek(now time.Time, job grid.JobID) (Entry[V], bool) {
	if e, ok := c.valid(now, job); ok {
		return e.Entry, true
	}
	return Entry[V]{}, false
}

// SetPlaced marks a job as placed (after "cache clear: placed"), makes its entry the most recently
// used of its kind and reports whether there was one. The entry is kept for as long at most as keep
// says of its value: while the job may fail over. Nobody says to all when it ends.
func (c *Cache[V]) SetPlaced(now time.Time, job grid.JobID, keep func(V) time.Duration) bool {
	e, ok := c.valid(now, job)
	if ok {
		c.move(e, true)
		if until := now.Add(keep(e.Value)); until.Before(e.Expires) {
			e.Expires = until
		}
	}
	return ok
}

// Remove drops the job's entry (after "cache clear: ended") and reports whether
// there was one. It counts nothing.
func (c *Cache[V]) Remove(job grid.JobID) bool {
	e, ok := c.entries[job]
	if ok {
		c.drop(e)
	}
	return ok
}

// Entries is a copy of all valid entries in the order in which they would be
// evicted; Restore makes a cache of them.
func (c *Cache[V]) Entries(now time.Time) []Entry[V] {
	entries := make([]Entry[V], 0, len(c.entries))
	for _, placed := range []bool{true, false} {
		for e := range c.inOrder(now, placed) {
			entries = append(entries, e.Entry)
		}
	}
	return entries
}

// Waiting is the jobs that are not placed, least recently used first.
func (c *Cache[V]) Waiting(now time.Time) []grid.JobID {
	jobs := make([]grid.JobID, 0, c.all.waiting.n)
	for e := range c.inOrder(now, false) {
		jobs = append(jobs, e.Job)
	}
	return jobs
}

// inOrder goes through the valid entries that are placed, or that wait, least recently used
// first.
func (c *Cache[V]) inOrder(now time.Time, placed bool) iter.Seq[*kept[V]] {
	return func(yield func(*kept[V]) bool) {
		for e := c.all.row(placed).first; e != nil; {
			next := e.places[ofAll].behind
			if _, ok := c.valid(now, e.Job); ok && !yield(e) {
				return
			}
			e = next
		}
	}
}

// Len is the number of entries, those included whose time has ended unnoticed.
func (c *Cache[V]) Len() int { return len(c.entries) }

// Stats is the counters.
func (c *Cache[V]) Stats() Stats { return c.stats }

// valid is the job's entry; one whose time has ended is dropped instead.
func (c *Cache[V]) valid(now time.Time, job grid.JobID) (*kept[V], bool) {
	e, ok := c.entries[job]
	if ok && !now.Before(e.Expires) {
		c.drop(e)
		c.stats.Expirations++
		return nil, false
	}
	return e, ok
}

// dropPlaced drops the placed jobs whose time has ended, up to the first whose has not.
func (c *Cache[V]) dropPlaced(now time.Time) {
	for e := c.all.placed.first; e != nil; e = c.all.placed.first {
		if _, stays := c.valid(now, e.Job); stays {
			return
		}
	}
}

func (c *Cache[V]) evict(from *shelf[V]) {
	if e := from.oldest(); e != nil {
		c.drop(e)
		c.stats.Evictions++
	}
}

// quota returns how many entries a submitter may hold.
func (c *Cache[V]) quota(submitter grid.SiteID) int {
	if c.isOwn(submitter) {
		return max(c.size/selfShare, 1)
	}
	return max(c.size/quotaShare, 1)
}

func (c *Cache[V]) isOwn(submitter grid.SiteID) bool { return c.self != "" && submitter == c.self }

// shelve puts an entry on all its shelves, behind those of its kind.
func (c *Cache[V]) shelve(e *kept[V]) {
	c.all.add(e)
	c.owners[e.Submitter].add(e)
	if !c.isOwn(e.Submitter) {
		c.others.add(e)
	}
}

// take takes an entry from its shelves.
func (c *Cache[V]) take(e *kept[V]) {
	c.all.remove(e)
	c.owners[e.Submitter].remove(e)
	if !c.isOwn(e.Submitter) {
		c.others.remove(e)
	}
}

// move makes an entry the most recently used one of those that are placed, or that wait.
func (c *Cache[V]) move(e *kept[V], placed bool) {
	c.take(e)
	e.Placed = placed
	c.shelve(e)
}

func (c *Cache[V]) drop(e *kept[V]) {
	c.take(e)
	if c.owners[e.Submitter].len() == 0 {
		delete(c.owners, e.Submitter)
	}
	delete(c.entries, e.Job)
}
