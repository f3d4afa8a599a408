// Package plan is a site's planner: it says when a task could start and end, keeps
// the offers that follow from that, and turns them into commitments.
//
// An offer is an entry in the plan. A soft one is a quote: it holds nothing and is
// made again at award. A firm one holds its capacity until it expires. With
// HoldAll soft offers hold too: that is the thesis' pre-emptive deduction, where
// a site's resources count as taken from its answer to "cache clear" (B. Khoo Boon
// Tat, "Multi-Dimensional Resource Allocation Strategy for Large-Scale
// Computational Grid Systems", NUS 2006, section 4.1). The rest is planning-based
// scheduling as in D. Battre et al., "Planning-based Scheduling for SLA-awareness
// and Grid Integration": every commitment has a place in time, and those that wait
// move up when others end early.
//
// The rules of that paper which need no plan to be stated, such as LatestStart and
// Order, are here as functions of plain numbers.
//
// Cores, memory and disk are hard. Computation is soft: a task may get less than
// it asks for and then runs longer, which the caller's Ask.Rate knows about.
//
// A commitment that has begun keeps its capacity until Release, also beyond its
// estimated end, and also when the owner's ceilings fall below it. Then those
// that wait are moved, never those that run.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var (
	// ErrQuota refuses an offer because too many are open, of this submitter or of
	// all of them together.
	ErrQuota = errors.New("too many open offers")
	// ErrFirm refuses a firm offer to a submitter other than the site itself, because
	// those together hold as much as they may.
	ErrFirm = errors.New("firm offers to others hold their share of the capacity")
	// ErrAttempt refuses an attempt that is committed already.
	ErrAttempt = errors.New("the attempt is committed already")
	// ErrPast refuses a place that is over already.
	ErrPast = errors.New("the place lies in the past")
	// ErrOffer refuses an offer's validity of 0 or less.
	ErrOffer = errors.New("validity of an offer: want more than 0")
	// ErrFull refuses what no longer fits: capacity.ErrFull.
	ErrFull = capacity.ErrFull
)

// Planner plans one site. It has one owner and reads no clock: now is an argument
// and never decreases. Lists are kept in order, so that the same calls always
// give the same plan.
type Planner struct {
	config      Config
	ceiling     grid.Resources // what the present commitments may take: Total, or more after it fell
	timeline    *capacity.Timeline
	commitments []Commitment // ascending by attempt
	offers      []Offer      // ascending by number
	next        uint64
	outage      outage
	dirty       bool // capacity came free: those that wait may move up
	changes     Changes
}

// New is a planner without commitments.
func New(config Config) *Planner {
	if config.MaxOffers < 1 {
		config.MaxOffers = DefaultMaxOffers
	}
	return &Planner{
		config: config, ceiling: config.Total, timeline: capacity.New(config.Total), next: max(config.FirstOffer, 1),
	}
}

// Restore is a planner with the commitments that a crash left behind. They all
// stay, even if they take more than the owner's ceilings today; what has begun
// and overran while nobody looked goes on. Of two for one attempt the first
// counts. Those that do not end after their start or give less than nothing are
// dropped.
func Restore(config Config, now time.Time, commitments []Commitment) *Planner {
	p := New(config)
	for _, c := range commitments {
		at, known := p.find(c.Attempt)
		if known || !c.Start.Before(c.End) || !c.Give.Fits(grid.Resources{}) {
			continue
		}
		c.Running = c.Running || !c.Start.After(now)
		p.commitments = slices.Insert(p.commitments, at, c)
		p.ceiling = p.ceiling.Add(c.Give)
	}
	p.replan(now)
	p.changes = Changes{}
	return p
}

// Commitments is a copy of all commitments, ascending by attempt: what Restore
// wants.
func (p *Planner) Commitments() []Commitment { return slices.Clone(p.commitments) }

// Commitment is the commitment to an attempt.
func (p *Planner) Commitment(attempt grid.AttemptID) (Commitment, bool) {
	at, known := p.find(attempt)
	if !known {
		return Commitment{}, false
	}
	return p.commitments[at], true
}

// Offers is a copy of all open offers, ascending by number.
func (p *Planner) Offers() []Offer { return slices.Clone(p.offers) }

// Offer is the open offer of that number.
func (p *Planner) Offer(number uint64) (Offer, bool) {
	at, known := p.findOffer(number)
	if !known {
		return Offer{}, false
	}
	return p.offers[at], true
}

// Free is what is free throughout [start, end).
func (p *Planner) Free(start, end time.Time) grid.Resources { return p.timeline.Free(start, end) }

// Total is the owner's ceilings.
func (p *Planner) Total() grid.Resources { return p.config.Total }

// NextOffer is the number the next offer will have, for Config.FirstOffer.
func (p *Planner) NextOffer() uint64 { return p.next }

// Next is the instant at which Advance has something to do, and false if there is
// none: an offer expires, an attempt is due to start or to end.
func (p *Planner) Next() (time.Time, bool) {
	var next time.Time
	earlier := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for i := range p.offers {
		earlier(p.offers[i].Expires)
	}
	for i := range p.commitments {
		if c := &p.commitments[i]; c.Running {
			earlier(c.End)
		} else {
			earlier(c.Start)
		}
	}
	return next, !next.IsZero()
}

// SetCapacity changes the owner's ceilings. Commitments and firm offers stay where
// they are; nothing new fits where they take more than there is.
func (p *Planner) SetCapacity(total grid.Resources) {
	p.config.Total = total
	p.ceiling = larger(p.ceiling, total)
	p.timeline.SetTotal(total)
	p.dirty = true
}

// Commit promises to run an attempt in its place. If the number is that of an open
// offer that holds capacity, one task's share of the hold turns into the
// commitment; 0 is no offer. An attempt whose start is not after now has begun; the
// start may be past, as that of a firm offer which was awarded a little later. It
// fails with ErrFull if the place is taken, and then changes nothing; what keeps
// within the share of a firm offer never fails so.
func (p *Planner) Commit(now time.Time, c Commitment, number uint64) error {
	p.settle(now)
	at, known := p.find(c.Attempt)
	if known {
		return fmt.Errorf("commit %s: %w", c.Attempt, ErrAttempt)
	}
	if !c.End.After(now) {
		return fmt.Errorf("commit %s: %w", c.Attempt, ErrPast)
	}
	c.Running = !c.Start.After(now)
	line := p.timeline.Clone()
	held, holds := p.findOffer(number)
	if holds = holds && p.offers[held].Holds > 0; holds {
		o := &p.offers[held]
		must(o.release(line, 1))
		if o.covers(c) { // promised before: that the ceilings fell since does not matter
			line.SetTotal(p.ceiling)
		}
	}
	if err := line.Reserve(c.Give, c.Start, c.End); err != nil {
		return fmt.Errorf("commit %s: %w", c.Attempt, err)
	}
	line.SetTotal(p.config.Total)
	if holds {
		p.offers[held].Holds--
	}
	p.timeline = line
	p.commitments = slices.Insert(p.commitments, at, c)
	return nil
}

// Release ends a commitment, begun or not, and gives its capacity back. It reports
// what it was.
func (p *Planner) Release(attempt grid.AttemptID) (Commitment, bool) {
	at, known := p.find(attempt)
	if !known {
		return Commitment{}, false
	}
	c := p.commitments[at]
	must(p.timeline.Release(c.Give, c.Start, c.End))
	p.commitments = slices.Delete(p.commitments, at, at+1)
	p.dirty = true
	return c, true
}

func (p *Planner) find(attempt grid.AttemptID) (int, bool) {
	return slices.BinarySearchFunc(p.commitments, attempt, func(c Commitment, a grid.AttemptID) int {
		switch {
		case c.Attempt.Less(a):
			return -1
		case a.Less(c.Attempt):
			return 1
		default:
			return 0
		}
	})
}

func (p *Planner) findOffer(number uint64) (int, bool) {
	return slices.BinarySearchFunc(p.offers, number, func(o Offer, n uint64) int { return cmp.Compare(o.Number, n) })
}

// larger is the larger of both, field by field.
func larger(a, b grid.Resources) grid.Resources { return a.Add(b).Sub(a.Min(b)) }

// must stops at a broken invariant: the plan and its timeline disagree.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("plan: broken invariant: %v", err))
	}
}
