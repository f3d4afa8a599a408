package data

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestASubmitterKeepsAtMostAnEighth(t *testing.T) {
	const quota = 32 << 20 // 4 MiB for a submitter
	a, b := newSite(t, nil), newSite(t, func(c *Config) { c.QuotaBytes = quota })
	b.knows(a)
	holders := []grid.SiteID{a.id}
	small := mustAdd(t, a.Store, noise(1, 3<<20))
	large := mustAdd(t, a.Store, noise(2, 20<<20))
	other := mustAdd(t, a.Store, noise(3, 3<<20))
	if _, err := b.FetchFor(within(t), "alice", small.CID, holders, nil); err != nil {
		t.Fatalf("3 of 4 MiB: %v", err)
	}
	if err := b.Pin(small.CID, time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, err := b.FetchFor(within(t), "alice", large.CID, holders, nil)
	if !errors.Is(err, errShare) || !Lacks(err) {
		t.Errorf("20 MiB more: %v (want of space %t), want errShare", err, Lacks(err))
	}
	// What had come when the share was full was little more than the share.
	if used := b.UsedBytes(); used > quota/shareOf+maxWindow*maxBlockBytes/4 {
		t.Errorf("%d bytes were taken in for a share of %d", used, quota/shareOf)
	}
	if _, err := b.FetchFor(within(t), "bob", other.CID, holders, nil); err != nil {
		t.Errorf("another submitter's data: %v", err)
	}
	if _, err := b.FetchFor(within(t), "bob", small.CID, holders, nil); !errors.Is(err, errShare) {
		t.Errorf("what is here already, beyond the share: %v, want errShare", err)
	}
	if _, err := b.FetchFor(within(t), "", large.CID, holders, nil); err != nil {
		t.Errorf("the site itself: %v, want no share", err)
	}
	if !b.Has(small.CID) {
		t.Error("what was pinned is gone")
	}
	out := mustAdd(t, b.Store, noise(4, 2<<20))
	if err := b.Charge("alice", out.CID); !errors.Is(err, errShare) {
		t.Errorf("an output beyond the share: %v, want errShare", err)
	}
	b.Discharge("alice", small.CID)
	if err := b.Charge("alice", out.CID); err != nil {
		t.Errorf("an output when there is space again: %v", err)
	}
	for _, when := range []string{"as often as it was taken", "once too often"} {
		b.Discharge("alice", out.CID)
		if got := b.keptFor("alice"); got != 0 {
			t.Errorf("discharged %s: %d bytes are kept for who has nothing here", when, got)
		}
	}
}

// twinShares counts naively.
type twinShares map[grid.SiteID]map[grid.CID][]int64

func (w twinShares) used(tenant grid.SiteID) (sum int64) {
	for _, uses := range w[tenant] {
		if len(uses) > 0 {
			sum += uses[0]
		}
	}
	return sum
}

func TestSharesAgainstTheirTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := newShares(shareOf*100), twinShares{}
		size := map[grid.CID]int64{"p": 10, "q": 45, "r": 60, "s": 101}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			tenant := grid.SiteID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"))
			c := grid.CID(rapid.SampledFrom([]string{"p", "q", "r", "s"}).Draw(t, "data"))
			if w[tenant] == nil {
				w[tenant] = map[grid.CID][]int64{}
			}
			if rapid.Bool().Draw(t, "leave") {
				s.leave(tenant, c)
				if n := len(w[tenant][c]); n > 0 {
					w[tenant][c] = w[tenant][c][:n-1]
				}
			} else {
				s.enter(tenant, c)
				w[tenant][c] = append(w[tenant][c], size[c])
				err := s.grow(tenant, c, size[c])
				if full := w.used(tenant) > 100; full != errors.Is(err, errShare) {
					t.Fatalf("%d of 100 used: %v", w.used(tenant), err)
				}
				if err != nil {
					s.leave(tenant, c)
					w[tenant][c] = w[tenant][c][:len(w[tenant][c])-1]
				}
			}
			for tenant := range w {
				if got := s.usedLocked(tenant); got != w.used(tenant) || got > 100 {
					t.Fatalf("%s has %d, want %d of at most 100", tenant, got, w.used(tenant))
				}
			}
		}
	})
}
