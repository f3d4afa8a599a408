package data

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// FetchResult says what a fetch moved.
type FetchResult struct {
	Bytes int64         // of blocks that came over the network
	Took  time.Duration // from the call to the end, waiting included
}

// Progress is told how much of a graph is here, in bytes of blocks; done never
// falls and total is an estimate until both are equal at the end. It is called
// from the fetching goroutine, once for each block at most, and must be quick.
type Progress func(doneBytes, totalBytes int64)

// fetchRounds without a single block end a fetch.
const fetchRounds = 2

// Fetch brings a whole graph here from the named holders, of which the first
// grid.MaxHolders are asked; the host must know their addresses. What is here
// already is not moved again, and what arrived stays when the fetch fails or the
// process dies, for the next fetch of the same CID. Blocks come from all holders
// concurrently, so one that dies does not end the fetch while another delivers.
// Progress may be nil.
//
// It fails with ErrNoHolder, naming each holder and what was wrong with it, when
// none could be reached or none delivers any more; with ErrQuota or ErrDiskFull
// when there is no space; with ErrUnsupported or ErrTooLarge for what is no file
// or directory within the limits; and when ctx ends. What it brought survives a
// power failure when it returns.
func (s *Store) Fetch(
	ctx context.Context, c grid.CID, holders []grid.SiteID, progress Progress,
) (FetchResult, error) {
	result, err := s.fetch(ctx, c, holders, progress)
	if err == nil {
		err = s.settleHeld(ctx, c)
	}
	return result, err
}

// fetch is Fetch, but what it brings may be lost in a power failure.
func (s *Store) fetch(
	ctx context.Context, c grid.CID, holders []grid.SiteID, progress Progress,
) (FetchResult, error) {
	start := s.now()
	rootCID, err := parseCID(c)
	if err != nil {
		return FetchResult{}, fmt.Errorf("fetch: %w", err)
	}
	ctx, op, err := s.begin(ctx)
	if err != nil {
		return FetchResult{}, fmt.Errorf("fetch: %w", err)
	}
	defer op.end()
	if progress == nil {
		progress = func(int64, int64) {}
	}
	moved, err := s.fetchAlone(ctx, op, rootCID, newHolders(s.host.ID(), holders), progress)
	result := FetchResult{Bytes: moved, Took: s.now().Sub(start)}
	s.metrics.fetches.With(fetchOutcome(err)).Inc()
	s.metrics.receivedBytes.Add(float64(moved))
	if err != nil {
		return result, fmt.Errorf("fetch %s: %w", c, err)
	}
	return result, nil
}

func fetchOutcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, errNoHolder):
		return "no_holder"
	case errors.Is(err, ErrQuota), errors.Is(err, ErrDiskFull):
		return "no_room"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	default:
		return "failed"
	}
}

// fetchAlone waits for its turn, so that one graph is fetched once at a time.
func (s *Store) fetchAlone(
	ctx context.Context, op *operation, c cid.Cid, holders []*holder, progress Progress,
) (int64, error) {
	id := gridCID(c)
	end, err := s.turn(ctx, id)
	if err != nil {
		return 0, err
	}
	defer end()
	s.mu.Lock()
	if r, ok := s.roots[id]; ok && !r.Partial {
		op.useLocked(r)
		stored := r.Stored
		s.mu.Unlock()
		progress(stored, stored)
		return 0, nil
	}
	err = s.setPartialLocked(id)
	if err == nil {
		op.useLocked(s.roots[id])
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	f := newFetcher(s, op, c, holders, progress)
	err = f.run(ctx)
	if err == nil {
		_, err = s.enter(c)
	}
	if err != nil && f.done == 0 { // nothing to go on from
		s.mu.Lock()
		defer s.mu.Unlock()
		if r, ok := s.roots[id]; ok && r.Partial && !r.Pinned {
			return f.moved, errors.Join(err, s.dropLocked(id))
		}
	}
	if err == nil {
		progress(f.done, f.done)
	}
	return f.moved, err
}

// turn waits until nobody else fetches the same graph and a slot is free.
func (s *Store) turn(ctx context.Context, id grid.CID) (end func(), err error) {
	mine := make(chan struct{})
	for {
		s.mu.Lock()
		other, taken := s.fetches[id]
		if !taken {
			s.fetches[id] = mine
		}
		s.mu.Unlock()
		if !taken {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	leave := func() {
		s.mu.Lock()
		delete(s.fetches, id)
		s.mu.Unlock()
		close(mine)
	}
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
