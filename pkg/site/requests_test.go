package site

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The requests remembered are the latest of this run, each as it was sent: a dumb twin keeps all.
func TestTheLatestRequestsAreRemembered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r requests
		var first uint64
		twin := map[uint64]request{}
		begin := func(incarnation uint64) {
			r.begin(incarnation)
			first = incarnation<<32 + 1
			clear(twin)
		}
		begin(rapid.Uint64Range(0, 9).Draw(t, "incarnation"))
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			if rapid.IntRange(0, 4).Draw(t, "restart") == 0 {
				begin(r.last>>32 + 1)
			}
			sent := rapid.SampledFrom([]int{0, 1, 7, maxRequests - 1, maxRequests, 6000})
			for i := range sent.Draw(t, "sent") {
				req := request{to: grid.SiteID(rune('a' + i%7)), at: epoch().Add(time.Duration(len(twin)))}
				n := r.number(req.to, req.at)
				if n != first+uint64(len(twin)) {
					t.Fatalf("request %d has number %d, want %d", len(twin), n, first+uint64(len(twin)))
				}
				twin[n] = req
			}
			oldest := first
			if len(twin) > maxRequests {
				oldest = r.last - maxRequests + 1
			}
			for _, n := range []uint64{
				0, 1, first - 1, first, oldest - 1, oldest, oldest + 1, r.last - 1, r.last, r.last + 1, 1 << 63,
			} {
				want, sent := twin[n]
				got, known := r.recall(n)
				if known != (sent && n >= oldest) || known && got != want {
					t.Fatalf("request %d of %d to %d: %+v, %t, want %+v", n, first, r.last, got, known, want)
				}
			}
		}
	})
}
