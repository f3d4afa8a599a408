package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// arrival holds what the latest attempt's site has said of the leases it was granted. A grant is a
// promise from the moment it is sent; only a later request of the site shows whether it has
// arrived. So what is promised grows with what was seen to arrive: the first lease is a short
// one, a long one follows when the site says that it holds the short one, and a site that
// asks and asks and never has what it was granted is deaf: it gets no more, and the task moves
// when what was promised has ended.
type arrival struct {
	named     uint64    // the highest number of a request that named the attempt; 0: none has
	granted   uint64    // the highest number of a request that this run answered with a lease
	grantedAt time.Time // when
	long      bool      // the latest grant was a long one, and was not seen to arrive
	holds     bool      // the latest request said that the site holds the latest grant
	vain      int       // grants in a row that had not arrived when the site asked again
}

// Limits of leases that do not arrive.
const (
	maxVain   = 5 // so many grants in a row that do not arrive mean that the site is deaf
	vainParts = 4 // a grant has this part of a lease to arrive before the next request counts it
)

// deaf reports whether grants have not arrived at the attempt's site for too long.
func (h *arrival) deaf() bool { return h.vain >= maxVain }

// given notes that a request was answered with a lease.
func (h *arrival) given(renewal uint64, now time.Time, long bool) {
	h.granted, h.grantedAt, h.long = max(h.granted, renewal), now, long
}

// withheld notes that a request was answered with no lease: that none arrives says nothing.
func (h *arrival) withheld() { h.granted, h.vain = 0, 0 }

// hears takes what a request says is left of the attempt's lease. It reports whether that is
// news: a request that a later one has overtaken on its way tells nothing.
func (h *arrival) hears(renewal uint64, left, first time.Duration, in *run) bool {
	if renewal <= h.named {
		return false
	}
	h.named = renewal
	arrived := left > 0 && (!h.long || left > first)
	switch {
	case h.granted == 0 || renewal <= h.granted:
		return false // nothing was granted before it was sent
	case arrived:
		h.vain = 0
	case in.now.Sub(h.grantedAt) >= in.cfg.Lease/vainParts:
		h.vain++
	}
	h.holds = arrived
	return true
}

// latest is the latest end of a lease that a site can hold, or still come to hold, that has
// so much left: what is on its way counts for protocol.MaxLateLease at most.
func (c Config) latest(left time.Duration) time.Duration {
	left = max(left, protocol.MaxLateLease)
	return left + c.margin(left)
}
