package eval

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
)

// Offer is a site's position in the virtual map of one job, as it told the job's submitter.
type Offer struct {
	At    time.Duration // it was sent, after the first job came
	Job   int           // place from 0
	Round uint32        // the announcement of the job that it answers, from 1
	Site  int
	// X and Y are the indices of computation and data. In a map of seconds they are the seconds
	// until the job would end there, and those that its data would be on the way.
	X, Y     float64
	Z        float64 // availability index, 0 to 1
	Distance float64
	Taken    bool // the job, or a part of it, was awarded to it
}

// offerBook notes offers, and which of them were taken.
type offerBook struct {
	offers []Offer
	cut    bool             // there were more than mostOffers
	open   map[offerKey]int // in offers
}

// mostOffers bounds what is kept of a run: some 100 MB.
const mostOffers = 1_000_000

// offerKey names an offer: sites number their own.
type offerKey struct {
	site   grid.SiteID
	number uint64
}

func newOfferBook() *offerBook { return &offerBook{open: make(map[offerKey]int)} }

// seeOffer notes what a message says of a site's position, if anyone wants to know.
func (r *meshRun) seeOffer(s sim.Sight) {
	if r.book == nil || s.Kind != sim.SightSent {
		return
	}
	switch m := s.Message.(type) {
	case protocol.Bid:
		if place, known := r.places[m.Job]; known {
			r.book.add(offerKey{s.Site, m.Offer.ID}, r.offer(s, place, m))
		}
	case protocol.Award:
		if at, known := r.book.open[offerKey{s.To, m.OfferID}]; known {
			r.book.offers[at].Taken = true
		}
	}
}

// offer reads a bid.
func (r *meshRun) offer(s sim.Sight, place int, m protocol.Bid) Offer {
	parts := m.Offer.Parts
	o := Offer{
		At: s.At - r.zero, Job: place, Round: m.Seq, Site: r.sites[s.Site],
		X: parts.X, Y: parts.Y, Z: parts.Z, Distance: parts.Distance,
	}
	if r.queued {
		o.X, o.Y = (parts.Wait + parts.Run).Seconds(), parts.StageIn.Seconds()
	}
	return o
}

// add notes an offer.
func (b *offerBook) add(key offerKey, o Offer) {
	if len(b.offers) == mostOffers {
		b.cut = true
		return
	}
	b.open[key] = len(b.offers)
	b.offers = append(b.offers, o)
}
