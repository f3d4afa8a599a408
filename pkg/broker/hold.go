package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// holding is the request to some sites to make their offers firm, until all of them
// have answered or the award window is over (Migol 6.2.1).
type holding struct {
	awaited map[grid.SiteID]*candidate // asked and silent so far, with the offer each had made
	firm    map[grid.SiteID]*candidate // sites that hold what they offered
}

func newHolding() holding {
	return holding{awaited: make(map[grid.SiteID]*candidate), firm: make(map[grid.SiteID]*candidate)}
}

// enough reports whether no further site is to be asked: the top ones were, and those
// asked suffice for the tasks.
func (h *holding) enough(top int, tasks uint32) bool {
	asked := len(h.awaited) + len(h.firm)
	if asked < top {
		return false
	}
	places := h.held()
	for _, site := range sortedSites(h.awaited) {
		places += min(h.awaited[site].left, tasks)
	}
	return places >= tasks || asked >= maxHolds
}

// held counts the tasks that the firm offers take.
func (h *holding) held() uint32 {
	var places uint32
	for _, site := range sortedSites(h.firm) {
		places += h.firm[site].left
	}
	return places
}

// latest is the last offer of a site that is held, or asked for.
func (h *holding) latest(site grid.SiteID) uint64 {
	for _, held := range []map[grid.SiteID]*candidate{h.firm, h.awaited} {
		if c := held[site]; c != nil {
			return c.offer.ID
		}
	}
	return 0
}

// involves reports whether a site was asked and has not said no.
func (h *holding) involves(site grid.SiteID) bool {
	return h.awaited[site] != nil || h.firm[site] != nil
}

// check implements stage.
func (h *holding) check(j *job) error {
	if j.open == 0 || !j.traits.firm {
		return errors.New("asks sites to hold their offers for nothing")
	}
	return nil
}

// gathering is the request to some sites to hold their shares of a common start.
type gathering struct {
	holding
	shares []share
	at     time.Time
	tries  int // divisions that came to nothing because a site did not hold
}

// check implements stage.
func (g *gathering) check(j *job) error {
	if len(j.waiting) != len(j.tasks) {
		return fmt.Errorf("a common start is looked for, and %d of %d parts wait",
			len(j.waiting), len(j.tasks))
	}
	return g.holding.check(j)
}

// isComplete reports whether all shares are held.
func (g *gathering) isComplete(now time.Time) bool {
	complete := g.at.After(now)
	for _, share := range g.shares {
		c := g.firm[share.site]
		complete = complete && c != nil && c.left >= share.parts && c.expires.After(now)
	}
	return complete
}

// holding is the request to hold offers that is under way, or nil.
func (j *job) holding() *holding {
	switch s := j.stage.(type) {
	case *holding:
		return s
	case *gathering:
		return &s.holding
	default:
		return nil
	}
}

// Bounds on the search for a site that promises.
const (
	maxHolds = 64 // sites that are asked to hold at the same time
	maxHasty = 2  // announcements without a pause when all that had offered were taken meanwhile
	maxEmpty = 2  // complete rounds without an offer before a silent member is waited for no more
)
