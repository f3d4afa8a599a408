package sim

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// SightKind says what was seen.
type SightKind uint8

// The kinds of a Sight.
const (
	SightSent     SightKind = iota + 1 // a message left a site; one for each receiver of a broadcast
	SightLost                          // a message did not arrive; Number is the one of its SightSent
	SightReported                      // a machine reported something
	SightRuns                          // an attempt runs, or runs again
	SightFrozen                        // an attempt that ran stopped: frozen, or about to be gone
	SightGone                          // an attempt's sandbox is gone
	SightUp                            // a site's agent was started
	SightDown                          // a site's agent was killed
)

// Sight is one thing that happened in a world, as Config.Watch is told of it.
// Fields that the kind says nothing of are zero.
type Sight struct {
	At      time.Duration // true time since the start
	Kind    SightKind
	Site    grid.SiteID      // where; of a message: its sender
	To      grid.SiteID      // of a message: its receiver
	Number  int              // of a message, from 1 in the order of sending
	Message protocol.Message // of SightSent
	Attempt grid.AttemptID   // the attempt that runs, is frozen or gone
	Broker  bool             // of a report: by the submitter's machine, not the site's
	Report  step.Report
}

// see tells the watcher of something, if there is one.
func (w *World) see(s Sight) {
	if w.cfg.Watch != nil {
		s.At = w.elapsed
		w.cfg.Watch(s)
	}
}

// seeAttempt tells the watcher of an attempt at a host.
func (h *host) seeAttempt(kind SightKind, id grid.AttemptID) {
	h.world.see(Sight{Kind: kind, Site: h.spec.ID, Attempt: id})
}

// seeLost tells the watcher that a message did not arrive; number 0 is a copy that
// nobody misses.
func (h *host) seeLost(to *host, number int) {
	if number > 0 {
		h.world.see(Sight{Kind: SightLost, Site: h.spec.ID, To: to.spec.ID, Number: number})
	}
}
