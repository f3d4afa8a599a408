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
// ErrQuota. Promises and firm offers to others hold no more than Config.Strangers,
// and all of them no more than Config.Promised: ErrFirm. What is held counts in
// the shares of submitter and project: errShare. In a reservation that is not there,
// or is another's, there is no offer: errWithin.
func (p *Planner) Open(
	now time.Time, ask Ask, quote Quote, firm bool, validity time.Duration,
) (Offer, error) {
	p.settle(now)
	if validity <= 0 {
		return Offer{}, fmt.Errorf("open offer: %w", errOffer)
	}
	if ask.Within != (grid.AttemptID{}) && !p.mayUse(ask.Within, ask.Submitter) {
		return Offer{}, fmt.Errorf("open offer: %w", errWithin)
	}
	o := Offer{
		Number: p.next, Submitter: ask.Submitter, Job: ask.Job, Quote: quote, Firm: firm,
		Expires: now.Add(validity), Project: ask.Project, Within: ask.Within,
	}
	old, replaces := p.openFor(ask.Submitter, ask.Job)
	if !replaces && p.overQuota(ask.Submitter) {
		return Offer{}, fmt.Errorf("open offer: %w", ErrQuota)
	}
	if firm || p.config.HoldAll {
		o.Holds = max(quote.Tasks, 1)
		if quote.End.Before(o.Expires) {
			o.Expires = quote.End // what is held is over then
		}
	}
	if replaces {
		p.giveBack(&p.offers[old], p.offers[old].Holds)
	}
	if err := p.offerFits(&o); err != nil {
		if replaces {
			p.takeAgain(&p.offers[old], p.offers[old].Holds)
		}
		return Offer{}, fmt.Errorf("open offer: %w", err)
	}
	if replaces {
		p.free(p.offers[old].Quote.Start)
		p.firm -= sign(p.offers[old].Firm)
		p.offers = slices.Delete(p.offers, old, old+1)
		p.noteExpiry()
	}
	p.next++
	p.enterOffer(o)
	return o, nil
}

// enterOffer takes what an offer holds. Its number is above all others.
func (p *Planner) enterOffer(o Offer) {
	if o.Within != (grid.AttemptID{}) {
		p.enter(o.Within)
	}
	p.firm += sign(o.Firm)
	p.takeAgain(&o, o.Holds)
	p.offers = append(p.offers, o)
	if p.expires.IsZero() || o.Expires.Before(p.expires) {
		p.expires = o.Expires
	}
}

// offerFits reports whether the capacity that an offer holds is free.
func (p *Planner) offerFits(o *Offer) error {
	s, holds := o.span(o.Holds)
	if !holds {
		return nil
	}
	if !plannable(s.start, s.end) || !s.need.Fits(grid.Resources{}) {
		return capacity.ErrInvalid
	}
	if free := p.roomOf(o.Within).line.Free(s.start, s.end); !enough(free, s.need) {
		return fmt.Errorf("%w: %+v is free of %+v", ErrFull, free, s.need)
	}
	return p.withinLimits(o.claim(), s)
}

// noteExpiry works out when the first offer expires.
func (p *Planner) noteExpiry() {
	p.expires = time.Time{}
	for i := range p.offers {
		if at := p.offers[i].Expires; p.expires.IsZero() || at.Before(p.expires) {
			p.expires = at
		}
	}
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
	for i := range slices.Backward(p.offers) { // closing one moves those behind it
		if p.offers[i].Job == job {
			p.close(i)
			n++
		}
	}
	return n
}

func (p *Planner) close(at int) Offer {
	o := p.offers[at]
	p.giveBack(&o, o.Holds)
	p.firm -= sign(o.Firm)
	p.offers = slices.Delete(p.offers, at, at+1)
	if o.Expires.Equal(p.expires) {
		p.noteExpiry()
	}
	if o.Holds > 0 {
		p.free(o.Quote.Start)
	}
	if r := p.rooms[o.Within]; r != nil {
		p.leave(r)
	}
	return o
}

func (p *Planner) openFor(submitter grid.SiteID, job grid.JobID) (int, bool) {
	for i := range p.offers {
		if o := &p.offers[i]; o.Job == job && o.Submitter == submitter {
			return i, true
		}
	}
	return 0, false
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

// covers reports whether the commitment takes no more than one task's share.
func (o *Offer) covers(c Commitment) bool {
	return o.Quote.Give.Fits(c.Give) && !c.Start.Before(o.Quote.Start) && !c.End.After(o.Quote.End)
}

// span is the capacity that the offer holds for some of its tasks.
func (o *Offer) span(tasks uint32) (span, bool) {
	return span{times(o.Quote.Give, tasks), o.Quote.Start, o.Quote.End}, tasks > 0
}

// giveBack gives back what the offer holds for some of its tasks, and takeAgain takes
// it.
func (p *Planner) giveBack(o *Offer, tasks uint32) {
	if s, holds := o.span(tasks); holds {
		p.put(p.roomOf(o.Within).line, s)
		p.putLimits(o.claim(), s)
	}
}

func (p *Planner) takeAgain(o *Offer, tasks uint32) {
	if s, holds := o.span(tasks); holds {
		p.take(p.roomOf(o.Within).line, s)
		p.takeLimits(o.claim(), s)
	}
}

// resize changes for how many tasks the offer holds capacity.
func (p *Planner) resize(o *Offer, tasks uint32) {
	p.giveBack(o, o.Holds)
	o.Holds = tasks
	p.takeAgain(o, o.Holds)
}

func times(r grid.Resources, n uint32) grid.Resources {
	k := int64(n)
	return grid.Resources{
		MilliCPUs: k * r.MilliCPUs, MemoryBytes: k * r.MemoryBytes, DiskBytes: k * r.DiskBytes,
		MFLOPS: k * r.MFLOPS, NetBps: k * r.NetBps,
	}
}
