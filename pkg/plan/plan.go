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
// The rules of that paper which need no plan to be stated are functions of plain numbers
// in pkg/papers/openccs.
//
// Cores, memory, disk and bandwidth are hard. Computation is soft: a task may get less than
// it asks for and then runs longer, which the caller's Ask.Rate knows about.
//
// Commitments are of three classes. ClassFixTime begins at its start and is never
// moved; a reservation (Commitment.Holds) is one of them, and a room of its own for
// what is bound to it. ClassDeadline begins in time to end before its deadline.
// ClassVarTime is best effort: it waits in the order of the policy, moves up when
// something ends early, and which may overtake which is a matter of Backfill.
//
// Where they are in each other's way, this is the order of strength: running entries;
// Fix-Time; deadlines; of these, those that lost their places to an outage; firm
// offers; waiting entries. A new promise never moves one given before. A running entry goes
// on beyond its expected end, and also when the owner's ceilings fall below it, and then
// those that wait are moved; but when what it holds has been promised to another,
// from then on, it is suspended or ends, as it allows. An outage, capacity that is
// missing until some time, displaces promises that begin within it: they move inside
// their bounds, or have best effort suspended for them, or are lost, which is reported.
//
// Where to look, on the way of a request through the plan:
//
//	plan.go      the planner and what can be read of it
//	types.go     configuration, classes, commitments, offers, what Advance tells
//	quote.go     what a task could get: Ask and Quote
//	search.go    the search for a place, over all timelines that limit it
//	offers.go    open offers, soft and firm
//	limits.go    shares: of promises, of others, of one submitter, of one project
//	commit.go    offers become commitments; Release
//	entry.go     a commitment and the parts of time in which it takes something
//	order.go     which entry goes first: policy, strength, priorities
//	settle.go    Advance: what begins, ends, expires and overruns
//	moveup.go    what waits moves up when capacity came free; backfilling
//	late.go      inputs that are late: others borrow the place
//	outage.go    capacity that is missing for some time
//	resolve.go   promises that no longer fit find another place, strongest first
//	victims.go   best effort that is suspended for a promise
//	pushback.go  slack is used up before anything is suspended
//	within.go    reservations: timelines inside the timeline
//	state.go     the whole state, and its invariants
//	restore.go   commitments that a crash left behind
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
	// errAttempt refuses an attempt that is committed already.
	errAttempt = errors.New("the attempt is committed already")
	// errPast refuses a place that is over already.
	errPast = errors.New("the place lies in the past")
	// errOffer refuses an offer's validity of 0 or less.
	errOffer = errors.New("validity of an offer: want more than 0")
	// errShare refuses what would take more than the share of a submitter or project.
	errShare = errors.New("the share of the submitter or the project is used up")
	// errDeadline refuses a place from which a deadline cannot be met.
	errDeadline = errors.New("the place ends after the deadline")
	// errWithin refuses what is to be bound to a reservation that is not there, or is
	// another submitter's.
	errWithin = errors.New("there is no such reservation of the submitter")
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
	strained    bool      // more is taken than there is: by an outage, suspended or late entries
	dirty       bool      // capacity came free: those that wait may move up
	freed       time.Time // the earliest instant at which it did
	touched     []*entry  // in this settling
	changes     Changes
	skipped     int // stretches that the last search for a place skipped
}

// room is a place that commitments take their share of: the site, or a reservation.
type room struct {
	holder  grid.AttemptID // the reservation; zero for the site
	line    *capacity.Timeline
	ceiling grid.Resources // what the present commitments may take: the total, or more after it fell
	running bag            // what uses cores
	movable bag            // what waits and may move, and what is suspended
	fixed   bag            // what waits and may not move
}

// New is a planner without commitments.
func New(config Config) *Planner {
	if config.MaxOffers < 1 {
		config.MaxOffers = defaultMaxOffers
	}
	if config.Horizon <= 0 {
		config.Horizon = defaultHorizon
	}
	config.Overestimate = min(max(config.Overestimate, 0), MaxOverestimate)
	return &Planner{
		config: config, site: &room{line: capacity.New(config.Total), ceiling: config.Total},
		rooms: map[grid.AttemptID]*room{}, limits: map[limitKey]*limit{},
		entries: map[grid.AttemptID]*entry{}, next: max(config.FirstOffer, 1),
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
	return slices.SortedFunc(maps.Values(p.entries), func(a, b *entry) int {
		return a.Attempt.Compare(b.Attempt)
	})
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

// Free is the capacity that is free throughout [start, end), below 0 where more is taken
// than there is.
func (p *Planner) Free(start, end time.Time) grid.Resources { return p.site.line.Free(start, end) }

// FreeNow is the capacity that is free at an instant, 0 where more is taken than there is.
func (p *Planner) FreeNow(now time.Time) grid.Resources {
	free := p.Free(now, now.Add(1))
	return grid.Resources{
		MilliCPUs: max(free.MilliCPUs, 0), MemoryBytes: max(free.MemoryBytes, 0),
		DiskBytes: max(free.DiskBytes, 0), MFLOPS: max(free.MFLOPS, 0), NetBps: max(free.NetBps, 0),
	}
}

// Short is the resource of which less is free now than is needed, ReasonNone if there is enough
// of each; of computation there is if there is any. What is short, Quote gives no place at now.
func (p *Planner) Short(now time.Time, need grid.Resources) grid.Reason {
	reason := shortage(need, p.FreeNow(now))
	if reason == grid.ReasonWindow {
		return grid.ReasonNone
	}
	return reason
}

// Next is the instant at which Advance has something to do, and false if there is
// none: an offer expires, an attempt is due to start, to go on or to end.
func (p *Planner) Next() (time.Time, bool) {
	next := p.expires
	if len(p.queue) > 0 && (next.IsZero() || p.queue[0].due.Before(next)) {
		next = p.queue[0].due
	}
	return next, !next.IsZero()
}

// Promises reports whether anything waits for its time, is suspended, is reserved or
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

// hold takes the capacity of an entry, whether it is free or not.
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
		p.forget(line)
	}
}

func (p *Planner) put(line *capacity.Timeline, s span) {
	if s.start.Before(s.end) {
		must(line.Release(s.need, s.start, s.end))
		p.forget(line)
	}
}

// forget drops the past of a timeline; the site's is dropped at each settling.
func (p *Planner) forget(line *capacity.Timeline) {
	if line != p.site.line {
		line.Forget(p.now)
	}
}

func (p *Planner) findOffer(number uint64) (int, bool) {
	return slices.BinarySearchFunc(p.offers, number, func(o Offer, n uint64) int {
		return cmp.Compare(o.Number, n)
	})
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
