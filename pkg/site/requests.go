package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// request is a sent request for leases. A lease counts from here: the submitter
// counts it from its answer, which is later, so the site's end comes first.
type request struct {
	to grid.SiteID
	at time.Time
}

// requests remembers the latest requests for leases by their numbers, which follow one another.
type requests struct {
	last uint64    // the number given out last
	ring []request // of number n at place (n-1) mod maxRequests
}

// begin lets the numbers go on above those of all earlier runs of the site, so that a lease
// granted before a restart extends nothing after it.
func (r *requests) begin(incarnation uint64) {
	*r = requests{last: incarnation << 32}
}

// number gives a request its number and remembers when it was sent.
func (r *requests) number(to grid.SiteID, now time.Time) uint64 {
	place := int(r.last % maxRequests)
	r.last++
	if place == len(r.ring) {
		r.ring = append(r.ring, request{})
	}
	r.ring[place] = request{to: to, at: now}
	return r.last
}

// recall finds a request that is not forgotten yet.
func (r *requests) recall(number uint64) (request, bool) {
	if number > r.last || r.last-number >= uint64(len(r.ring)) {
		return request{}, false
	}
	return r.ring[(number-1)%maxRequests], true
}
