package gossip

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// rates holds a token bucket for each submitter. It is safe for concurrent use.
type rates struct {
	limit rate.Limit // tokens per second
	burst int
	most  int // submitters watched at a time

	mu      sync.Mutex
	buckets map[grid.SiteID]*rate.Limiter
	swept   time.Time
}

func newRates(perSecond float64, burst, most int) *rates {
	return &rates{
		limit: rate.Limit(perSecond), burst: burst, most: most,
		buckets: make(map[grid.SiteID]*rate.Limiter),
	}
}

// ready reports whether the submitter may send one more message, without counting
// it: that it comes from the submitter is not verified yet, and a forged message
// must not use up the submitter's tokens.
func (r *rates) ready(site grid.SiteID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	bucket, ok := r.buckets[site]
	return !ok || bucket.TokensAt(now) >= 1
}

// tokenBytes may be sent for one token: larger messages cost more of them.
const tokenBytes = 4 << 10

// take reports whether the submitter may send one more message of that size, and counts
// it. When too many submitters are watched, those that were silent long enough to have
// all their tokens are dropped; if there are none, new ones must wait.
func (r *rates) take(site grid.SiteID, now time.Time, bytes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	bucket, ok := r.buckets[site]
	if !ok {
		if len(r.buckets) >= r.most && now.Sub(r.swept) > time.Second {
			r.swept = now
			maps.DeleteFunc(r.buckets, func(_ grid.SiteID, b *rate.Limiter) bool {
				return b.TokensAt(now) >= float64(r.burst)
			})
		}
		if len(r.buckets) >= r.most {
			return false
		}
		bucket = rate.NewLimiter(r.limit, r.burst)
		r.buckets[site] = bucket
	}
	return bucket.AllowN(now, r.tokens(bytes))
}

// tokens are the price of a message of that size.
func (r *rates) tokens(bytes int) int { return min(1+bytes/tokenBytes, r.burst) }
