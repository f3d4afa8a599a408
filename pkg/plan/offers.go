package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Open turns a quote, made at the same now, into an open offer with a number of its
// own. A firm offer, and with HoldAll a soft one too, holds capacity for
// Quote.Tasks tasks, or fails with ErrFull; it expires at the latest when its place
// is over. An open offer to the same submitter for
// the same job is replaced. No submitter but the site itself has more than an
// eighth of all open offers, and the others together leave an eighth to the site:
// ErrQuota. Firm offers to others hold no more than Config.FirmPercent: ErrFirm.
func (p *Planner) Open(now time.Time, ask Ask, quote Quote, firm bool, validity time.Duration) (Offer, error) {
	p.settle(now)
	if validity <= 0 {
		return Offer{}, fmt.Errorf("open offer: %w", ErrOffer)
	}
	o := Offer{
		Number: p.next, Submitter: ask.Submitter, Job: ask.Job, Quote: quote, Firm: firm, Expires: now.Add(validity),
	}
	old, replaces := p.openFor(ask.Submitter, ask.Job)
	if !replaces && p.overQuota(ask.Submitter) {
		return Offer{}, fmt.Errorf("open offer: %w", ErrQuota)
	}
	line := p.timeline.Clone()
	if replaces {
		must(p.offers[old].release(line, p.offers[old].Holds))
	}
	if firm || p.config.HoldAll {
		o.Holds = max(quote.Tasks, 1)
		if quote.End.Before(o.Expires) {
			o.Expires = quote.End // what is held is over then
		}
		if err := o.reserve(line); err != nil {
			return Offer{}, fmt.Errorf("open offer: %w", err)
		}
	}
	if !p.firmFits(o, replaces, old) {
		return Offer{}, fmt.Errorf("open offer: %w", ErrFirm)
	}
	if replaces {
		p.offers = slices.Delete(p.offers, old, old+1)
	}
	p.timeline, p.offers, p.next = line, append(p.offers, o), p.next+1
	return o, nil
}

// Withdraw closes an offer and gives back what it holds. It reports what it was.
func (p *Planner) Withdraw(number uint64) (Offer, bool) {
	at, known := p.findOffer(number)
	if !known {
		return Offer{}, false
	}
	return p.close(at), true
}

// WithdrawJob closes the open offers for a job ("cache clear") and returns how
// many there were.
func (p *Planner) WithdrawJob(job grid.JobID) int {
	n := 0
	for i, o := range slices.Backward(p.offers) { // closing one moves those behind it
		if o.Job == job {
			p.close(i)
			n++
		}
	}
	return n
}

func (p *Planner) close(at int) Offer {
	o := p.offers[at]
	must(o.release(p.timeline, o.Holds))
	p.offers = slices.Delete(p.offers, at, at+1)
	p.dirty = p.dirty || o.Holds > 0
	return o
}

func (p *Planner) openFor(submitter grid.SiteID, job grid.JobID) (int, bool) {
	i := slices.IndexFunc(p.offers, func(o Offer) bool { return o.Job == job && o.Submitter == submitter })
	return max(i, 0), i >= 0
}

// overQuota reports whether one more offer to the submitter is too many.
func (p *Planner) overQuota(submitter grid.SiteID) bool {
	if len(p.offers) >= p.config.MaxOffers {
		return true
	}
	if p.isSelf(submitter) {
		return false
	}
	share := max(p.config.MaxOffers/quotaShare, 1)
	theirs, others := 0, 0
	for i := range p.offers {
		if p.offers[i].Submitter == submitter {
			theirs++
		}
		if !p.isSelf(p.offers[i].Submitter) {
			others++
		}
	}
	kept := 0
	if p.config.Self != "" {
		kept = p.config.MaxOffers / quotaShare
	}
	return theirs >= share || others >= p.config.MaxOffers-kept
}

func (p *Planner) isSelf(submitter grid.SiteID) bool {
	return p.config.Self != "" && submitter == p.config.Self
}

// firmFits reports whether firm offers to others keep within their part of the
// capacity at every instant, with the new offer and without the one it replaces.
func (p *Planner) firmFits(o Offer, replaces bool, old int) bool {
	if percent := p.config.FirmPercent; percent <= 0 || percent >= 100 || !o.Firm || p.isSelf(o.Submitter) {
		return true
	}
	line := capacity.New(part(p.config.Total, p.config.FirmPercent))
	for i := range p.offers {
		other := &p.offers[i]
		if !other.Firm || p.isSelf(other.Submitter) || replaces && i == old {
			continue
		}
		if other.reserve(line) != nil { // the owner's ceilings fell since
			return false
		}
	}
	return o.reserve(line) == nil
}

// part is so many percent of what the owner gives.
func part(r grid.Resources, percent int) grid.Resources {
	of := func(v int64) int64 { return v/100*int64(percent) + v%100*int64(percent)/100 }
	return grid.Resources{
		MilliCPUs: of(r.MilliCPUs), MemoryBytes: of(r.MemoryBytes), DiskBytes: of(r.DiskBytes), MFLOPS: of(r.MFLOPS),
	}
}

// covers reports whether the commitment takes no more than one task's share.
func (o *Offer) covers(c Commitment) bool {
	return o.Quote.Give.Fits(c.Give) && !c.Start.Before(o.Quote.Start) && !c.End.After(o.Quote.End)
}

// reserve takes what the offer holds.
func (o *Offer) reserve(line *capacity.Timeline) error {
	if o.Holds == 0 {
		return nil
	}
	return line.Reserve(times(o.Quote.Give, o.Holds), o.Quote.Start, o.Quote.End)
}

// release gives back what the offer holds for some of its tasks.
func (o *Offer) release(line *capacity.Timeline, tasks uint32) error {
	if tasks == 0 {
		return nil
	}
	return line.Release(times(o.Quote.Give, tasks), o.Quote.Start, o.Quote.End)
}

func times(r grid.Resources, n uint32) grid.Resources {
	k := int64(n)
	return grid.Resources{
		MilliCPUs: k * r.MilliCPUs, MemoryBytes: k * r.MemoryBytes, DiskBytes: k * r.DiskBytes, MFLOPS: k * r.MFLOPS,
	}
}
