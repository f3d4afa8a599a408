package data

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// errShare means that a submitter has its share of the data room.
var errShare = errors.New("the submitter's share of the data room is used up")

// shareOf is the part of the quota that what is kept for one submitter may take:
// one in eight.
const shareOf = 8

// shares counts what is kept here for each submitter. It is safe for concurrent
// use.
type shares struct {
	limit int64 // bytes for one submitter; 0 = no limit

	mu   sync.Mutex
	lots map[grid.SiteID]map[grid.CID]*lot
}

// lot is data that is kept, or on its way here, for a submitter.
type lot struct {
	bytes int64
	uses  int // attempts that need it; it is counted once
}

func newShares(quota int64) *shares {
	return &shares{limit: quota / shareOf, lots: make(map[grid.SiteID]map[grid.CID]*lot)}
}

// enter notes one more use of data by a submitter.
func (s *shares) enter(tenant grid.SiteID, c grid.CID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lots[tenant] == nil {
		s.lots[tenant] = make(map[grid.CID]*lot)
	}
	l := s.lots[tenant][c]
	if l == nil {
		l = &lot{}
		s.lots[tenant][c] = l
	}
	l.uses++
}

// grow notes that so many bytes of the data are here, and fails with errShare
// when the submitter has more than its share then. The data must have been
// entered.
func (s *shares) grow(tenant grid.SiteID, c grid.CID, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lots[tenant][c]
	if l == nil {
		return nil
	}
	l.bytes = max(l.bytes, bytes)
	if used := s.usedLocked(tenant); s.limit > 0 && used > s.limit {
		return fmt.Errorf("%w: %s would be kept for %s, its eighth is %s",
			errShare, grid.FormatBytes(used), tenant, grid.FormatBytes(s.limit))
	}
	return nil
}

// leave ends one use.
func (s *shares) leave(tenant grid.SiteID, c grid.CID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lots[tenant][c]
	if l == nil {
		return
	}
	if l.uses--; l.uses > 0 {
		return
	}
	delete(s.lots[tenant], c)
	if len(s.lots[tenant]) == 0 {
		delete(s.lots, tenant)
	}
}

func (s *shares) usedLocked(tenant grid.SiteID) (sum int64) {
	for _, l := range s.lots[tenant] {
		sum += l.bytes
	}
	return sum
}

// FetchFor is Fetch on behalf of a submitter, of what can be had again: it does not wait for
// the disk. It ends with errShare as soon as what is kept for the submitter takes more than an
// eighth of the quota, whatever the data was said to measure. When it succeeds the data counts
// for the submitter until Discharge. An empty submitter is the site itself, which has no share
// to keep to.
func (s *Store) FetchFor(
	ctx context.Context, tenant grid.SiteID, c grid.CID, holders []grid.SiteID, progress Progress,
) (FetchResult, error) {
	if tenant == "" {
		return s.fetch(ctx, c, holders, progress)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.shares.enter(tenant, c)
	result, err := s.fetch(ctx, c, holders, func(done, total int64) {
		if err := s.shares.grow(tenant, c, done); err != nil {
			stop(err)
		}
		if progress != nil {
			progress(done, total)
		}
	})
	if cause := context.Cause(ctx); errors.Is(cause, errShare) {
		err = fmt.Errorf("fetch %s: %w", c, cause)
		s.metrics.refused.Inc()
	}
	if err != nil {
		s.shares.leave(tenant, c)
	}
	return result, err
}

// Charge counts data that is here for a submitter until Discharge, or fails with
// errShare and counts nothing. An empty submitter is the site itself.
func (s *Store) Charge(tenant grid.SiteID, c grid.CID) error {
	if tenant == "" {
		return nil
	}
	s.mu.Lock()
	var bytes int64
	if r, ok := s.roots[c]; ok {
		bytes = r.Stored
	}
	s.mu.Unlock()
	s.shares.enter(tenant, c)
	if err := s.shares.grow(tenant, c, bytes); err != nil {
		s.shares.leave(tenant, c)
		s.metrics.refused.Inc()
		return fmt.Errorf("keep %s: %w", c, err)
	}
	return nil
}

// Discharge ends what FetchFor or Charge began once.
func (s *Store) Discharge(tenant grid.SiteID, c grid.CID) {
	if tenant != "" {
		s.shares.leave(tenant, c)
	}
}

// keptFor counts the bytes that are kept, or on their way here, for a submitter.
func (s *Store) keptFor(tenant grid.SiteID) int64 {
	s.shares.mu.Lock()
	defer s.shares.mu.Unlock()
	return s.shares.usedLocked(tenant)
}
