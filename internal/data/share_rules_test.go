package data

import (
	"errors"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A share is an eighth of the quota to the byte, what was counted is not counted less, and
// without a quota there is no bound.
func TestBoundOfAShare(t *testing.T) {
	t.Parallel()
	s := newShares(807)
	s.enter("a", "p")
	s.enter("a", "q")
	for _, tt := range []struct {
		c     grid.CID
		bytes int64
		used  int64
		full  bool
	}{
		{"p", 60, 60, false},
		{"q", 40, 100, false},
		{"q", 41, 101, true},
		{"q", 40, 101, true},
		{"unknown", 1000, 101, false},
	} {
		if err := s.grow("a", tt.c, tt.bytes); errors.Is(err, errShare) != tt.full {
			t.Errorf("%d bytes of %s: %v, want it full: %t", tt.bytes, tt.c, err, tt.full)
		}
		if got := s.usedLocked("a"); got != tt.used {
			t.Errorf("%d bytes are used, want %d", got, tt.used)
		}
	}
	if err := s.grow("b", "p", 1000); err != nil {
		t.Errorf("what was not entered: %v", err)
	}
	s.leave("b", "p")
	s.leave("a", "p")
	s.leave("a", "q")
	if len(s.lots) != 0 {
		t.Errorf("%d submitters are kept who have nothing here", len(s.lots))
	}
	free := newShares(0)
	free.enter("a", "p")
	if err := free.grow("a", "p", 1<<60); err != nil {
		t.Errorf("without a quota: %v", err)
	}
}

// What comes for a submitter counts for it, whatever becomes of it; a refusal is counted,
// and leaves nothing that counts.
func TestSharesOfFetches(t *testing.T) {
	t.Parallel()
	c := counters{obs.NewRegistry()}
	s := newPlayed(t, func(cfg *Config) { cfg.QuotaBytes, cfg.Metrics = 8<<20, c.reg }) // 1 MiB each
	other, p := newPlayed(t, nil), []grid.SiteID{siteOf(somePeer(t))}
	s.swap.give = from(other.Store)
	small, large := mustAdd(t, other.Store, noise(1, 1<<20)), mustAdd(t, other.Store, noise(2, 3<<19))
	if _, err := s.FetchFor(within(t), "alice", large.CID, p, nil); !errors.Is(err, errShare) ||
		!strings.Contains(err.Error(), "alice") {
		t.Errorf("1.5 MiB: %v, want errShare", err)
	}
	if got := s.keptFor("alice"); got != 0 {
		t.Errorf("%d bytes are kept after a refusal", got)
	}
	half := mustAdd(t, other.Store, noise(3, 1<<19))
	var told int64
	note := func(done, _ int64) { told = done }
	if _, err := s.FetchFor(within(t), "alice", half.CID, p, note); err != nil {
		t.Fatal(err)
	}
	stored := s.roots[half.CID].Stored
	if got := s.keptFor("alice"); got != stored || told != stored {
		t.Errorf("%d bytes are kept, told of %d; want %d", got, told, stored)
	}
	if _, err := s.FetchFor(within(t), "alice", half.CID, p, nil); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	if got := s.keptFor("alice"); got != stored {
		t.Errorf("%d bytes are kept for twice the same, want %d", got, stored)
	}
	s.Discharge("alice", half.CID)
	s.Discharge("", half.CID)
	if got := s.keptFor("alice"); got != stored {
		t.Errorf("%d bytes are kept while one use is left, want %d", got, stored)
	}
	if _, err := s.FetchFor(within(t), "bob", "no-cid", p, nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no CID: %v", err)
	}
	if got := len(s.shares.lots); got != 1 {
		t.Errorf("%d submitters have something here, want alice alone", got)
	}
	if _, err := s.FetchFor(within(t), "", small.CID, p, nil); err != nil || s.keptFor("") != 0 {
		t.Errorf("the site itself: %v, and %d bytes count", err, s.keptFor(""))
	}
	if err := s.Charge("", small.CID); err != nil || s.keptFor("") != 0 {
		t.Errorf("the site itself: %v, and %d bytes count", err, s.keptFor(""))
	}
	if err := s.Charge("carol", small.CID); !errors.Is(err, errShare) || s.keptFor("carol") != 0 {
		t.Errorf("1 MiB and what names it, of 1 MiB: %v, %d kept", err, s.keptFor("carol"))
	}
	if err := s.Charge("carol", half.CID); err != nil || s.keptFor("carol") != stored {
		t.Errorf("half of it: %v, %d kept", err, s.keptFor("carol"))
	}
	// Of what was refused above, all may have come before the fetch heard of it.
	absent := mustAdd(t, other.Store, noise(4, 3<<19))
	if err := s.Charge("carol", absent.CID); err != nil {
		t.Errorf("what is not here: %v", err)
	}
	if got := c.of(t, "data_refused_shares_total"); got != 2 {
		t.Errorf("%g refusals are counted, want 2", got)
	}
	wantIdle(t, s.Store)
}
