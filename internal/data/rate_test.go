package data

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestRateCaps moves data with an owner's cap on either side and measures what
// came through: never more than the cap and the burst of one block, whenever one
// looks, and no slower than the cap makes it, within 15 %, beyond what the same
// fetch takes without a cap on the machine as busy as it is.
func TestRateCaps(t *testing.T) {
	const (
		bps   = 20_000_000
		size  = 8 << 20
		bytes = bps / bitsPerByte // per second
	)
	for name, rates := range map[string]struct{ up, down int64 }{
		"upload": {up: bps}, "download": {down: bps},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := newSite(t, func(c *Config) { c.UploadBps = rates.up })
			to := newSite(t, func(c *Config) { c.DownloadBps = rates.down })
			to.knows(from)
			ref := mustAdd(t, from.Store, noise(7, size))
			uncapped := uncappedFetch(t, noise(8, size))
			began := time.Now()
			var beyond int64
			result, err := to.Fetch(within(t), ref.CID, []grid.SiteID{from.id}, func(done, _ int64) {
				// One burst waits for its turn, one is on its way.
				allowed := int64(time.Since(began).Seconds()*bytes) + 2*limitBurst
				beyond = max(beyond, done-allowed)
			})
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			rate := float64(result.Bytes-limitBurst) / took.Seconds() * bitsPerByte
			t.Logf("%d bytes in %s: %.2f Mbit/s after the burst of %d bytes, wanted %.0f",
				result.Bytes, took.Round(time.Millisecond), rate/1e6, limitBurst, bps/1e6)
			if rate > bps*1.15 {
				t.Errorf("%.2f Mbit/s, want at most %.0f within 15 %%", rate/1e6, bps/1e6)
			}
			capped := (size - limitBurst) * time.Second / bytes * 115 / 100
			if took > capped+2*uncapped {
				t.Errorf("took %s; the cap allows %s, and without one it took %s", took, capped, uncapped)
			}
			if beyond > 0 {
				t.Errorf("%d bytes more than cap and burst allowed by then", beyond)
			}
		})
	}
}

// uncappedFetch measures how long a fetch takes that no owner has capped.
func uncappedFetch(t *testing.T, content []byte) time.Duration {
	t.Helper()
	from, to := newSite(t, nil), newSite(t, nil)
	to.knows(from)
	ref := mustAdd(t, from.Store, content)
	began := time.Now()
	if _, err := to.Fetch(within(t), ref.CID, []grid.SiteID{from.id}, nil); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
