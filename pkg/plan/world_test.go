package plan

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// world drives a planner through operations that are drawn from somewhere, and knows
// what was promised. In a calm world every task ends in time, its inputs are here, and
// no capacity is lost: there nothing may ever be moved back.
type world struct {
	t      fataler
	draw   func(n int) int // 0 to n-1
	p      *Planner
	now    time.Time
	calm   bool
	lossy  bool // outages, crashes and falling ceilings
	tasks  int
	strict bool                          // nothing was lost so far
	told   map[grid.AttemptID]Commitment // what was promised, as it was committed
	// offered: it has the place of an offer, wherever that is in the order.
	offered map[grid.AttemptID]bool
	moved   map[grid.AttemptID]bool // was Late: its own fault
	policy  bool                    // conservative all the time
	heard   listener
	// closely: what waits and what begins is looked at, too. What an outage, a loan and an
	// overrun together allow is not all stated there, so that only known plays are.
	closely bool
	could   map[grid.AttemptID]bool // begin earlier than planned
	loans   bool                    // more was taken than there is
	hear    func(...any)            // is told of answers and changes, for the ledger; may be nil
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newWorld(t fataler, draw func(n int) int) *world {
	w := &world{
		t: t, draw: draw, now: start, strict: true, policy: true, told: map[grid.AttemptID]Commitment{},
		moved: map[grid.AttemptID]bool{}, offered: map[grid.AttemptID]bool{},
	}
	w.calm = draw(2) == 0
	w.lossy = !w.calm && draw(2) == 0
	config := Config{
		Total: grid.Resources{MilliCPUs: 8, MemoryBytes: 12, MFLOPS: 10, NetBps: 9}, MaxOffers: 16,
		Self: "self", HoldAll: draw(4) == 0, Policy: grid.Policy(draw(5)), Horizon: secs(40),
	}
	if draw(2) == 0 {
		config.Promised, config.Strangers = 75, 50
		config.Submitter, config.Project = 60, 90
	}
	if draw(3) == 0 {
		config.Backfill, w.policy = grid.Backfill(draw(3)), false
	}
	config.Fairshare = draw(8) == 0
	w.p, w.heard, w.could = New(config), listener{}, map[grid.AttemptID]bool{}
	return w
}

// tell lets the ledger hear of something.
func (w *world) tell(what ...any) {
	if w.hear != nil {
		w.hear(what...)
	}
}

func (w *world) step() {
	switch op := w.draw(24); {
	case op < 7:
		w.commit()
	case op < 9:
		w.open()
	case op < 11:
		w.award()
	case op < 13:
		w.release()
	case op < 18:
		w.pass(w.draw(12))
	case op == 18:
		w.policies()
	case op == 19:
		w.ready()
	case op == 20:
		w.reserve()
	case op == 21:
		w.snapshot()
	case op == 22:
		w.p.WithdrawJob(grid.JobID(fmt.Sprint("j", w.draw(4))))
	default:
		w.lose()
	}
	w.check()
}

func (w *world) ask() Ask {
	run := secs(1 + w.draw(20))
	flops := int64(w.draw(9))
	a := Ask{
		Submitter: []grid.SiteID{"a", "b", "self"}[w.draw(3)],
		Job:       grid.JobID(fmt.Sprint("j", w.draw(4))), Project: []string{"", "p", "q"}[w.draw(3)],
		Count: uint32(w.draw(3)), Class: Class(w.draw(3)),
		Need: grid.Resources{
			MilliCPUs: int64(w.draw(6)), MemoryBytes: int64(w.draw(6)), MFLOPS: flops,
			NetBps: int64(w.draw(6)),
		},
		StageIn: secs(w.draw(3)), NowOnly: w.draw(4) == 0,
	}
	if !w.exact() {
		a.Rate = func(free grid.Resources) (int64, time.Duration) {
			if flops == 0 {
				return 0, run
			}
			f := min(free.MFLOPS, flops)
			return f, run * time.Duration(flops) / time.Duration(f)
		}
	} else {
		a.Rate = func(grid.Resources) (int64, time.Duration) { return 0, run }
		a.Need.MFLOPS = 0
	}
	switch a.Class {
	case ClassFixTime:
		a.NowOnly, a.At = false, w.now.Add(secs(w.draw(60)))
	case ClassDeadline:
		a.Window.Deadline = w.now.Add(secs(1 + w.draw(80)))
	case ClassVarTime:
		if w.draw(3) == 0 {
			a.Window.NotBefore = w.now.Add(secs(w.draw(20)))
		}
	}
	return a
}

// exact reports whether all is in whole seconds and nothing is stretched, so that the
// dumb twin can say what a quote must be.
func (w *world) exact() bool { return w.calm && !w.p.config.HoldAll }

func commitmentOf(n int, a Ask, q Quote) Commitment {
	return Commitment{
		Attempt: attempt(n), Submitter: a.Submitter, Project: a.Project, Give: q.Give, Class: a.Class,
		NotBefore: a.Window.NotBefore, Deadline: a.Window.Deadline, LatestStart: q.LatestStart,
		Start: q.Start, End: q.End, Within: a.Within,
	}
}

func (w *world) commit() {
	a := w.ask()
	if len(w.p.rooms) > 0 && w.draw(2) == 0 || w.draw(8) == 0 {
		for _, c := range w.p.Commitments() {
			if c.Holds && c.Submitter == a.Submitter {
				a.Within = c.Attempt
			}
		}
	}
	q, reason := w.p.Quote(w.now, a)
	first, why := w.p.EarliestStart(w.now, a)
	w.tell(q, reason, first, why)
	if w.exact() {
		w.compare(a, q, reason)
	}
	if reason != grid.ReasonNone {
		return
	}
	c := commitmentOf(w.tasks, a, q)
	w.tasks++
	c.Overrun, c.Priority = grid.Overrun(w.draw(2)), int32(max(w.draw(12)-9, 0))
	if w.calm {
		c.Priority = 0
	}
	c.AwaitsData = !w.calm && w.draw(4) == 0
	if err := w.p.Commit(w.now, c, 0); err != nil {
		w.t.Fatalf("what was quoted cannot be committed: %v: %+v", err, q)
	}
	w.note(c.Attempt)
}

func (w *world) note(a grid.AttemptID) {
	if c, ok := w.p.Commitment(a); ok {
		w.told[a], w.heard[a] = c, c
		w.could[a] = w.earlier(w.p.entries[a])
	}
}

func (w *world) reserve() {
	a := Ask{
		Class: ClassFixTime, Submitter: []grid.SiteID{"a", "b"}[w.draw(2)],
		At: w.now.Add(secs(w.draw(40))),
		Need: grid.Resources{
			MilliCPUs: int64(1 + w.draw(4)), MemoryBytes: int64(1 + w.draw(4)), NetBps: int64(w.draw(4)),
		},
		Rate: func(grid.Resources) (int64, time.Duration) { return 0, secs(20) },
	}
	q, reason := w.p.Quote(w.now, a)
	if reason != grid.ReasonNone {
		return
	}
	c := commitmentOf(w.tasks, a, q)
	w.tasks++
	c.Holds = true
	if err := w.p.Commit(w.now, c, 0); err != nil {
		w.t.Fatalf("what was quoted cannot be reserved: %v", err)
	}
	w.note(c.Attempt)
}

func (w *world) open() {
	a := w.ask()
	if q, reason := w.p.Quote(w.now, a); reason == grid.ReasonNone {
		o, err := w.p.Open(w.now, a, q, w.draw(3) > 0, secs(1+w.draw(30)))
		w.tell(o, err)
	}
}

func (w *world) award() {
	offers := w.p.Offers()
	if len(offers) == 0 {
		return
	}
	o := offers[w.draw(len(offers))]
	c := Commitment{
		Attempt: attempt(w.tasks), Submitter: o.Submitter, Project: o.Project, Class: ClassVarTime,
		Give: o.Quote.Give, Start: o.Quote.Start, End: o.Quote.End, Within: o.Within,
	}
	w.tasks++
	greedy := w.draw(4) == 0
	if greedy {
		c.Give = c.Give.Add(cores(1 + int64(w.draw(8))))
	}
	w.p.settle(w.now)
	before := w.p.State()
	err := w.p.Commit(w.now, c, o.Number)
	w.tell(err)
	if err != nil {
		if diff := cmp.Diff(before, w.p.State()); diff != "" {
			w.t.Fatalf("a commitment that was refused (%v) changed (-before +after):\n%s", err, diff)
		}
	}
	stands := o.Quote.End.After(w.now) && o.Expires.After(w.now)
	if !greedy && o.Holds > 0 && err != nil && stands && w.strict {
		w.t.Fatalf("an offer was not kept: %v: %+v", err, o)
	}
	if err == nil {
		w.note(c.Attempt)
		w.offered[c.Attempt] = true
		w.could = w.couldNow() // what it held counted as a promise, and this does not
	}
}

func (w *world) release() {
	if all := w.p.Commitments(); len(all) > 0 {
		w.end(all[w.draw(len(all))].Attempt)
	}
}

func (w *world) end(a grid.AttemptID) {
	w.p.Release(a)
	delete(w.told, a)
	delete(w.heard, a)
}

func (w *world) policies() {
	b := grid.Backfill(w.draw(3))
	if w.policy {
		b = grid.BackfillConservative
	}
	w.p.SetPolicy(grid.Policy(w.draw(5)), b)
}

func (w *world) ready() {
	for _, c := range w.p.Commitments() {
		if c.AwaitsData && w.draw(2) == 0 {
			w.p.Ready(w.now, c.Attempt)
			return
		}
	}
}

func (w *world) lose() {
	if !w.lossy {
		return
	}
	w.advance() // tells what began before
	w.strict = false
	switch w.draw(3) {
	case 0:
		w.p.SetOutage(grid.Resources{
			MilliCPUs: int64(w.draw(9)), MemoryBytes: int64(w.draw(5)), NetBps: int64(w.draw(9)),
		}, w.now.Add(secs(w.draw(60))))
	case 1:
		w.p.SetCapacity(grid.Resources{
			MilliCPUs: int64(w.draw(10)), MemoryBytes: 12, MFLOPS: 10, NetBps: int64(4 + w.draw(6)),
		})
	default:
		config := w.p.config
		config.FirstOffer = w.p.nextOffer()
		w.listenAnew(w.p.Commitments())
		w.p = Restore(config, w.now, w.p.Commitments())
		for _, c := range w.p.Commitments() { // Restore does not tell what has begun or moved
			heard := w.heard[c.Attempt]
			heard.Running, heard.Start = c.Running, c.Start
			w.heard[c.Attempt] = heard
		}
	}
}

// difference is cmp.Diff, which takes its time, of what differs.
func difference(x, y any) string {
	if reflect.DeepEqual(x, y) {
		return ""
	}
	return cmp.Diff(x, y)
}

func (w *world) snapshot() {
	before := w.p.State()
	p, err := fromState(before)
	if err != nil {
		w.t.Fatalf("FromState: %v", err)
	}
	if diff := difference(before, p.State()); diff != "" {
		w.t.Fatalf("-old +new:\n%s", diff)
	}
	old, _ := w.p.Next()
	if next, _ := p.Next(); !next.Equal(old) {
		w.t.Fatalf("the next is %v, was %v", next, old)
	}
	later := w.now.Add(secs(w.draw(20)))
	if w.draw(2) == 0 { // both go the same way
		q, err := fromState(before)
		if err != nil {
			w.t.Fatalf("FromState: %v", err)
		}
		if diff := difference(q.Advance(later), p.Advance(later)); diff != "" {
			w.t.Fatalf("-one +other:\n%s", diff)
		}
		p, _ = fromState(before)
	}
	w.p = p
}

// pass lets time pass from one instant at which something is due to the next.
func (w *world) pass(seconds int) {
	until := w.now.Add(secs(seconds))
	for i := 0; ; i++ {
		next, some := w.p.Next()
		if i > 10_000 {
			w.t.Fatalf("the plan is never done at %v", next)
		}
		if !some || next.After(until) {
			break
		}
		w.now = later(w.now, next)
		w.advance()
	}
	w.now = until
	w.advance()
	if next, some := w.p.Next(); some && !next.After(w.now) {
		w.t.Fatalf("Advance has left something to do at %v", next)
	}
}

func (w *world) advance() {
	if w.calm {
		for _, c := range w.p.Commitments() {
			if c.Running && !c.Holds && !c.End.After(w.now) {
				w.end(c.Attempt)
			}
		}
	}
	before := map[grid.AttemptID]Commitment{}
	for _, c := range w.p.Commitments() {
		before[c.Attempt] = c
	}
	queue := w.p.waiting(w.p.site)
	changes := w.p.Advance(w.now)
	w.tell(changes)
	w.listen(changes)
	if w.closely {
		w.nobodyIsLeftBehind()
		w.fitsWhatBegins(before, changes)
	}
	w.inTurn(queue, before)
	for _, c := range slices.Concat(changes.Over, changes.Lost) {
		delete(w.told, c.Attempt)
	}
	for _, c := range changes.Stopped {
		if w.draw(4) > 0 {
			w.end(c.Attempt)
		}
	}
	if w.calm {
		w.calmly(before, changes)
	}
	if w.strict {
		for _, c := range changes.Lost {
			if !w.moved[c.Attempt] && !c.AwaitsData && c.Within == (grid.AttemptID{}) {
				w.t.Fatalf("%+v is lost for nothing", c)
			}
		}
	}
	if next, some := w.p.Next(); some && !next.After(w.now) {
		w.t.Fatalf("Advance has left something to do at %v: %+v", next, w.p.Commitments())
	}
}

// inTurn checks what backfilling promises in a calm world where the order never changes:
// the first of those that wait is not put back; without backfilling nobody overtakes.
func (w *world) inTurn(queue []*entry, before map[grid.AttemptID]Commitment) {
	if !w.calm || w.p.config.Policy != grid.PolicyFCFS || w.p.prioritised > 0 || len(queue) == 0 {
		return
	}
	if c, there := w.p.Commitment(queue[0].Attempt); there && c.Start.After(before[c.Attempt].Start) {
		w.t.Fatalf("the first in the queue was put back: %+v became %+v", before[c.Attempt], c)
	}
	if w.p.config.Backfill != grid.BackfillNone {
		return
	}
	var last time.Time
	for _, e := range queue {
		if w.offered[e.Attempt] || !e.LatestStart.IsZero() || !before[e.Attempt].Start.After(w.now) {
			continue // what is due begins in the place it has, whatever the order has become since
		}
		if c, there := w.p.Commitment(e.Attempt); there && c.Start.Before(last) {
			w.t.Fatalf("%+v overtakes one that starts at %v", c, last)
		} else if there {
			last = c.Start
		}
	}
}

// calmly checks what changed in a world where nothing goes wrong.
func (w *world) calmly(before map[grid.AttemptID]Commitment, changes Changes) {
	for _, c := range slices.Concat(changes.Suspended, changes.Resumed, changes.Stopped,
		changes.Lost) {
		if c.Within == (grid.AttemptID{}) {
			w.t.Fatalf("%+v was disturbed by nothing", c)
		}
	}
	for _, o := range changes.Withdrawn {
		if o.Expires.After(w.now) && o.Within == (grid.AttemptID{}) {
			w.t.Fatalf("%+v was withdrawn for nothing", o)
		}
	}
	if !w.policy {
		return
	}
	for _, c := range w.p.Commitments() {
		if old, known := before[c.Attempt]; known && c.Start.After(old.Start) {
			w.t.Fatalf("%+v was moved back, to %v", old, c.Start)
		}
	}
}
