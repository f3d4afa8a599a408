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
	"maps"
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
	// ErrShare refuses what would take more than the share of a submitter or project.
	ErrShare = errors.New("the share of the submitter or the project is used up")
	// ErrDeadline refuses a place from which a deadline cannot be met.
	ErrDeadline = errors.New("the place ends after the deadline")
	// ErrWithin refuses what is to be bound to a reservation that is not there, or is
	// another submitter's.
	ErrWithin = errors.New("there is no such reservation of the submitter")
	// ErrFull refuses what no longer fits: capacity.ErrFull.
	ErrFull = capacity.ErrFull
)

// Planner plans one site. It has one owner and reads no clock: now is an argument
// and never decreases. Whatever it goes through, it does so in a fixed order, so that
// the same calls always give the same plan.
type Planner struct {
	config      Config
	site        *room
	rooms       map[grid.AttemptID]*room // the reservations to which something is bound
	limits      map[limitKey]*limit
	entries     map[grid.AttemptID]*entry
	queue       queue
	offers      []Offer   // ascending by number
	expires     time.Time // of the offer that expires first; zero = there is none
	next        uint64
	firm        int // open offers that are firm
	holding     int // reservations
	prioritised int // commitments with a priority
	late        int // commitments that are late
	outage      Outage
	now         time.Time // of the last settling, for forgetting the past alone
	strained    bool      // more is taken than there is: an outage, memory of what is suspended, what is lent
	dirty       bool      // capacity came free: those that wait may move up
	freed       time.Time // the earliest instant at which it did
	touched     []*entry  // in this settling
	changes     Changes
	skipped     int // stretches that the last search for a place skipped
}

// room is where commitments take their share: the site, or a reservation.
type room struct {
	holder  grid.AttemptID // the reservation; zero for the site
	line    *capacity.Timeline
	ceiling grid.Resources // what the present commitments may take: the total, or more after it fell
	running bag            // what uses cores
	movable bag            // what waits and may move, and what stands still
	fixed   bag            // what waits and may not move
}

// New is a planner without commitments.
func New(config Config) *Planner {
	if config.MaxOffers < 1 {
		config.MaxOffers = DefaultMaxOffers
	}
	if config.FailureHorizon <= 0 {
		config.FailureHorizon = DefaultFailureHorizon
	}
	config.Overestimate = min(max(config.Overestimate, 0), MaxOverestimate)
	return &Planner{
		config: config, site: &room{line: capacity.New(config.Total), ceiling: config.Total},
		rooms: map[grid.AttemptID]*room{}, limits: map[limitKey]*limit{}, entries: map[grid.AttemptID]*entry{},
		next: max(config.FirstOffer, 1),
	}
}

// Commitments is a copy of all commitments, ascending by attempt: what Restore
// wants.
func (p *Planner) Commitments() []Commitment {
	var list []Commitment
	for _, e := range p.all() {
		list = append(list, e.Commitment)
	}
	return list
}

// all is the entries, ascending by attempt.
func (p *Planner) all() []*entry {
	return slices.SortedFunc(maps.Values(p.entries), func(a, b *entry) int { return compareAttempts(a.Attempt, b.Attempt) })
}

// Commitment is the commitment to an attempt.
func (p *Planner) Commitment(attempt grid.AttemptID) (Commitment, bool) {
	e := p.entries[attempt]
	if e == nil {
		return Commitment{}, false
	}
	return e.Commitment, true
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

// Free is what is free throughout [start, end), below 0 where more is taken than
// there is.
func (p *Planner) Free(start, end time.Time) grid.Resources { return p.site.line.Free(start, end) }

// Total is the owner's ceilings.
func (p *Planner) Total() grid.Resources { return p.config.Total }

// NextOffer is the number the next offer will have, for Config.FirstOffer.
func (p *Planner) NextOffer() uint64 { return p.next }

// Next is the instant at which Advance has something to do, and false if there is
// none: an offer expires, an attempt is due to start, to go on or to end.
func (p *Planner) Next() (time.Time, bool) {
	next := p.expires
	if len(p.queue) > 0 && (next.IsZero() || p.queue[0].due.Before(next)) {
		next = p.queue[0].due
	}
	return next, !next.IsZero()
}

// Promises reports whether anything waits for its time, stands still, is reserved or
// offered firmly, so that Next matters even if nobody asks for anything.
func (p *Planner) Promises() bool {
	return p.firm+p.holding+len(p.site.movable)+len(p.site.fixed)+len(p.rooms) > 0
}

// SetCapacity changes the owner's ceilings. Commitments and firm offers stay where
// they are; nothing new fits where they take more than there is.
func (p *Planner) SetCapacity(total grid.Resources) {
	p.config.Total = total
	p.site.ceiling = larger(p.site.ceiling, total)
	p.site.line.SetTotal(total)
	p.resizeLimits()
	p.free(time.Time{})
}

// free notes that capacity came free from an instant on.
func (p *Planner) free(from time.Time) {
	if !p.dirty || from.Before(p.freed) {
		p.freed = from
	}
	p.dirty = true
}

// Commit promises to run an attempt in its place. If the number is that of an open
// offer that holds capacity, one task's share of the hold turns into the
// commitment; 0 is no offer. An attempt whose start is not after now has begun,
// unless it awaits data; the start may be past, as that of a firm offer which was
// awarded a little later. It fails with ErrFull if the place is taken, with ErrFirm or
// ErrShare if a limit is reached, with ErrDeadline if it would end too late and with
// ErrWithin if there is no such reservation, and then changes nothing; what keeps
// within the share of a firm offer always fits.
func (p *Planner) Commit(now time.Time, c Commitment, number uint64) error {
	p.settle(now)
	if err := p.admit(now, &c); err != nil {
		return fmt.Errorf("commit %s: %w", c.Attempt, err)
	}
	held, holds := p.findOffer(number)
	holds = holds && p.offers[held].Holds > 0 && p.offers[held].Within == c.Within
	covered := holds && p.offers[held].covers(c)
	if holds {
		p.resize(&p.offers[held], p.offers[held].Holds-1)
	}
	if err := p.fits(&c, covered); err != nil {
		if holds {
			p.resize(&p.offers[held], p.offers[held].Holds+1)
		}
		return fmt.Errorf("commit %s: %w", c.Attempt, err)
	}
	p.settleNew(p.insert(c), now, covered)
	return nil
}

// settleNew makes room for what begins at once, and looks again at those that wait if
// one more of them changes something.
func (p *Planner) settleNew(e *entry, now time.Time, covered bool) {
	if e.Running && p.strained && p.short(e, now) { // what is in the way was there on sufferance
		e.insists = covered
		l := p.lift(e.room, now)
		p.makeRoom(e, l)
		p.lower(l)
		p.free(now)
	}
	if e.Class == ClassVarTime && e.waits() && (p.config.Backfill != BackfillConservative || p.prioritised > 0 || p.late > 0) {
		p.free(now)
	}
}

// admit checks a commitment and fills in what Commit is to set.
func (p *Planner) admit(now time.Time, c *Commitment) error {
	if c.Holds {
		c.Class = ClassFixTime
	}
	switch {
	case p.entries[c.Attempt] != nil:
		return ErrAttempt
	case !c.End.After(now):
		return ErrPast
	case !c.valid():
		return capacity.ErrInvalid
	case c.Within != (grid.AttemptID{}) && !p.mayUse(c.Within, c.Submitter):
		return ErrWithin
	}
	c.Made, c.Suspended, c.Overran, c.Stopped, c.Late, c.Borrows, c.Left = now, false, false, false, false, false, 0
	c.AwaitsData = c.AwaitsData && !c.Holds
	c.Running = !c.Start.After(now) && !c.AwaitsData
	return p.bound(c)
}

// bound works out until when a promise may begin.
func (p *Planner) bound(c *Commitment) error {
	switch c.Class {
	case ClassFixTime:
		c.LatestStart = c.Start
	case ClassDeadline:
		if latest := p.latestStart(c.Deadline, c.End.Sub(c.Start)); c.LatestStart.IsZero() || c.LatestStart.After(latest) {
			c.LatestStart = latest
		}
		if c.Deadline.IsZero() || c.Start.After(c.LatestStart) {
			return ErrDeadline
		}
	case ClassVarTime:
	}
	return nil
}

// latestStart is when a run must begin to end before its deadline: OpenCCS, section
// "Deadline bound Jobs"; later by as much as runs are known to be over-estimated.
func (p *Planner) latestStart(deadline time.Time, run time.Duration) time.Time {
	return deadline.Add(p.spare(run) - run)
}

// spare is the part of a run by which it is known to end early.
func (p *Planner) spare(run time.Duration) time.Duration {
	return time.Duration(p.config.Overestimate * float64(run))
}

// fits reports whether there is room for a commitment: what was promised before in a
// firm offer fits although ceilings fell or limits are reached since.
func (p *Planner) fits(c *Commitment, covered bool) error {
	if covered {
		return nil
	}
	if free := p.roomOf(c.Within).line.Free(c.Start, c.End); !enough(free, c.Give) {
		return fmt.Errorf("%w: %+v is free of %+v", ErrFull, free, c.Give)
	}
	return p.withinLimits(claimOf(c), span{c.Give, c.Start, c.End})
}

// insert enters a commitment.
func (p *Planner) insert(c Commitment) *entry {
	e := &entry{Commitment: c, room: p.site, queue: -1}
	if !c.Stopped {
		e.room = p.enter(c.Within)
	}
	p.entries[c.Attempt] = e
	p.holding += sign(c.Holds)
	p.prioritised += sign(c.Priority != 0)
	p.late += sign(c.Late)
	p.hold(e)
	p.file(e)
	return e
}

// Release ends a commitment, begun or not, and gives its capacity back. It reports
// what it was. What was bound to a reservation ends with it.
func (p *Planner) Release(attempt grid.AttemptID) (Commitment, bool) {
	e := p.entries[attempt]
	if e == nil {
		return Commitment{}, false
	}
	p.remove(e)
	return e.Commitment, true
}

// remove takes an entry out of the plan.
func (p *Planner) remove(e *entry) {
	p.drop(e)
	e.gone = true
	p.unfile(e)
	delete(p.entries, e.Attempt)
	p.holding -= sign(e.Holds)
	p.prioritised -= sign(e.Priority != 0)
	p.late -= sign(e.Late)
	if e.room != p.site && p.rooms[e.Within] == e.room {
		p.leave(e.room)
	}
	p.dissolve(e)
	p.free(e.Start)
}

// hold takes what an entry takes, whether there is room or not.
func (p *Planner) hold(e *entry) {
	for _, s := range e.spans() {
		p.take(e.room.line, s)
		p.takeLimits(claimOf(&e.Commitment), s)
	}
}

// drop gives back what an entry takes, before it changes.
func (p *Planner) drop(e *entry) {
	for _, s := range e.spans() {
		p.put(e.room.line, s)
		p.putLimits(claimOf(&e.Commitment), s)
	}
}

// take and put change what is free on a timeline.
func (p *Planner) take(line *capacity.Timeline, s span) {
	if s.start.Before(s.end) {
		must(line.Force(s.need, s.start, s.end))
		line.Forget(p.now)
	}
}

func (p *Planner) put(line *capacity.Timeline, s span) {
	if s.start.Before(s.end) {
		must(line.Release(s.need, s.start, s.end))
		line.Forget(p.now)
	}
}

func (p *Planner) findOffer(number uint64) (int, bool) {
	return slices.BinarySearchFunc(p.offers, number, func(o Offer, n uint64) int { return cmp.Compare(o.Number, n) })
}

// larger is the larger of both, field by field.
func larger(a, b grid.Resources) grid.Resources { return a.Add(b).Sub(a.Min(b)) }

// enough reports whether a need can be taken of what is free. Where nothing is needed
// it does not matter that there is less than nothing.
func enough(free, need grid.Resources) bool { return larger(free, grid.Resources{}).Fits(need) }

func sign(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// must stops at a broken invariant: the plan and its timeline disagree.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("plan: broken invariant: %v", err))
	}
}
