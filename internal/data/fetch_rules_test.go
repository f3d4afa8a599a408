package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Every end of a fetch has its name in the metrics.
func TestEndsOfFetches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "ok"},
		{errNoHolder, "no_holder"},
		{ErrQuota, "no_room"},
		{ErrDiskFull, "no_room"},
		{context.Canceled, "cancelled"},
		{context.DeadlineExceeded, "cancelled"},
		{io.ErrUnexpectedEOF, "failed"},
	} {
		err := tt.err
		if err != nil {
			err = fmt.Errorf("fetch: %w", err)
		}
		if got := fetchOutcome(err); got != tt.want {
			t.Errorf("%v is called %s, want %s", err, got, tt.want)
		}
	}
}

// What was fetched is counted; what is here already is used now, is not asked for, and its
// progress is its end.
func TestFetchesAreCounted(t *testing.T) {
	t.Parallel()
	c := counters{obs.NewRegistry()}
	s, other := newPlayed(t, func(cfg *Config) { cfg.Metrics = c.reg }), newPlayed(t, nil)
	clock := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	p := somePeer(t)
	s.swap.give = from(other.Store)
	ref := mustAdd(t, other.Store, noise(1, 1000))
	if result := mustFetch(t, s.Store, ref.CID, siteOf(p)); result.Bytes != 1000 ||
		result.Took < time.Second || result.Took > time.Minute {
		t.Errorf("fetched %+v", result)
	}
	before := clock
	var told []int64
	result, err := s.Fetch(within(t), ref.CID, nil, func(done, all int64) {
		told = append(told, done, all)
	})
	if err != nil || result.Bytes != 0 || len(told) != 2 || told[0] != 1000 || told[1] != 1000 {
		t.Errorf("once more: %+v, %v, told %v", result, err, told)
	}
	if used := s.Roots()[0].LastUsed; !used.After(before) {
		t.Errorf("last used %s, want after %s", used, before)
	}
	if _, err := s.Fetch(within(t), "no-cid", nil, nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no CID: %v", err)
	}
	if _, err := s.Fetch(
		within(t), gridCID(hashed(t, cid.Raw, 0x12, 32)), nil, nil,
	); !errors.Is(err, errNoHolder) {
		t.Errorf("without holders: %v", err)
	}
	for name, want := range map[string]float64{
		`data_fetches_total{result="ok"}`:        2,
		`data_fetches_total{result="no_holder"}`: 1,
		"data_received_bytes_total":              1000,
		"data_used_bytes":                        1000,
	} {
		if got := c.of(t, name); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	wantIdle(t, s.Store)
	s.closed = true
	if _, err := s.Fetch(within(t), ref.CID, nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
}

// A fetch that cannot be noted moves nothing.
func TestFetchThatCannotBeNoted(t *testing.T) {
	t.Parallel()
	s, other := newPlayed(t, nil), newPlayed(t, nil)
	s.swap.give = from(other.Store)
	ref := mustAdd(t, other.Store, noise(1, 1000))
	if err := s.log.close(); err != nil {
		t.Fatal(err)
	}
	result, err := s.Fetch(within(t), ref.CID, []grid.SiteID{siteOf(somePeer(t))}, nil)
	if !errors.Is(err, os.ErrClosed) || result.Bytes != 0 || s.requests() != 0 || s.Has(ref.CID) {
		t.Errorf("moved %d, %v", result.Bytes, err)
	}
	wantIdle(t, s.Store)
}

// While it is fetched a root is not collected, and a pin outlives a fetch that fails.
func TestRootsThatAreFetched(t *testing.T) {
	t.Parallel()
	s, other, p := newPlayed(t, nil), newPlayed(t, nil), somePeer(t)
	s.swap.give = from(other.Store)
	ref := mustAdd(t, other.Store, noise(1, 1000))
	var while []root
	if _, err := s.Fetch(within(t), ref.CID, []grid.SiteID{siteOf(p)}, func(int64, int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		while = append(while, *s.roots[ref.CID])
	}); err != nil {
		t.Fatal(err)
	}
	if !while[0].Partial || while[0].busy != 1 {
		t.Errorf("while it is fetched it is noted as %+v", while[0])
	}
	if err := s.Pin(ref.CID, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.blocks.path(digestFor(t, rootOf(t, ref.CID)))); err != nil {
		t.Fatal(err)
	}
	_, _ = s.blocks.get(digestFor(t, rootOf(t, ref.CID))) // finds it gone
	s.checkRoots()
	if _, err := s.Fetch(within(t), ref.CID, nil, nil); !errors.Is(err, errNoHolder) {
		t.Errorf("for nothing: %v", err)
	}
	s.swap.give = from(other.Store)
	mustFetch(t, s.Store, ref.CID, siteOf(p))
	if r := s.Roots(); len(r) != 1 || !r[0].Pinned {
		t.Errorf("after a fetch that failed and another one: %+v, want it pinned", r)
	}
	wantIdle(t, s.Store)
}

// A graph is fetched once at a time, and as many graphs as there are slots.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPlayed(t, func(c *Config) { c.Fetches = 2 })
		ctx, cancel := context.WithCancel(t.Context())
		var ended []func()
		for _, id := range []grid.CID{"a", "b"} {
			end, err := s.turn(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			ended = append(ended, end)
		}
		got := make(chan error, 2)
		wait := func(ctx context.Context, id grid.CID) {
			end, err := s.turn(ctx, id)
			if err == nil {
				end()
			}
			got <- err
		}
		go wait(ctx, "a") // the same graph
		go wait(ctx, "c") // no slot
		synctest.Wait()
		if len(got) != 0 {
			t.Errorf("one did not wait: %v", <-got)
		}
		cancel()
		for range 2 {
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Errorf("a turn that was given up: %v", err)
			}
		}
		if len(s.fetches) != 2 || len(s.slots) != 2 {
			t.Errorf("%d graphs have a turn, %d slots are taken", len(s.fetches), len(s.slots))
		}
		go wait(t.Context(), "a")
		go wait(t.Context(), "c")
		synctest.Wait()
		ended[0]()
		for range 2 {
			if err := <-got; err != nil {
				t.Errorf("after its end: %v", err)
			}
		}
		late, stop := context.WithCancel(t.Context())
		stop()
		c := gridCID(hashed(t, cid.Raw, 0x12, 32))
		end, err := s.turn(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.Fetch(late, c, nil, func(int64, int64) { t.Error("progress without a turn") })
		if !errors.Is(err, context.Canceled) || result.Bytes != 0 {
			t.Errorf("a fetch that never had a turn moved %d bytes, %v", result.Bytes, err)
		}
		end()
		ended[1]()
		wantIdle(t, s.Store)
	})
}

// A graph that needs the whole quota is fetched, one that needs a byte more is not begun.
func TestFetchesOfTheWholeQuota(t *testing.T) {
	t.Parallel()
	other, p := newPlayed(t, nil), somePeer(t)
	ref := mustAdd(t, other.Store, noise(1, minQuota+1))
	for short, want := range map[int64]error{0: nil, 1: ErrQuota} {
		s := newPlayed(t, func(c *Config) { c.QuotaBytes = other.UsedBytes() - short })
		s.swap.give = from(other.Store)
		result, err := s.Fetch(within(t), ref.CID, []grid.SiteID{siteOf(p)}, nil)
		if !errors.Is(err, want) || (err != nil) != (s.requests() == 1) {
			t.Errorf("%d bytes short: %v after %d requests and %d bytes",
				short, err, s.requests(), result.Bytes)
		}
		wantIdle(t, s.Store)
	}
}
