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
	abroad  bool // a neighbouring domain has made it
}

// newCandidate keeps an offer that can be taken; quoted is the distance as its site
// sees it.
func newCandidate(offer grid.Offer, quoted float64, seq uint32, now time.Time) *candidate {
	return &candidate{
		offer: offer, quoted: quoted, seq: seq, left: offer.TasksNow,
		at: now, expires: now.Add(offer.Validity),
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
