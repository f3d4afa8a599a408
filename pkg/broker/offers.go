package broker

import (
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// candidate is an offer that stands.
type candidate struct {
	offer   grid.Offer // with the distance on all axes, this submitter's own included
	quoted  float64    // the distance that the site said
	seq     uint32     // of the announcement that it answers
	left    uint32     // tasks it can still take
	at      time.Time
	expires time.Time
}

// newCandidate keeps an offer that can be taken; quoted is the distance as its site
// sees it.
func newCandidate(offer grid.Offer, quoted float64, seq uint32, now time.Time) *candidate {
	return &candidate{
		offer: offer, quoted: quoted, seq: seq, left: offer.TasksNow,
		at: now, expires: now.Add(offer.Validity),
	}
}

// keepNearest forgets the offers of a job that is placed, all but the nearest of those that stand:
// as many as there are answers. It needs a few of them should a site decline or fail, and in a
// mesh of 10,000 sites each of some thousand running jobs would keep as many.
func (e *enquiry) keepNearest(standing []*candidate) {
	if len(e.offers) <= maxAnswers {
		return
	}
	e.offers = make(map[grid.SiteID]*candidate, maxAnswers)
	for _, c := range standing[:min(len(standing), maxAnswers)] {
		e.offers[c.offer.Site] = c
	}
}

// asSeen is a distance in this submitter's map as the candidate's site would see
// it: without the axes that only the submitter knows.
func (c *candidate) asSeen(distance float64) float64 {
	d := c.offer.Parts.Distance
	if c.quoted == d {
		return distance
	}
	own := (d - c.quoted) * (d + c.quoted)
	return math.Sqrt(max(distance*distance-own, 0))
}
