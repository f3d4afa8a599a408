package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// world drives a planner through operations that are drawn from somewhere, and knows
// what was promised. In a calm world every task ends in time, its inputs are here, and
// no capacity is lost: there nothing may ever be moved back.
type world struct {
	t       fataler
	draw    func(n int) int // 0 to n-1
	p       *Planner
	now     time.Time
	calm    bool
	lossy   bool // outages, crashes and falling ceilings
	tasks   int
	strict  bool                          // nothing was lost so far
	told    map[grid.AttemptID]Commitment // what was promised, as it was committed
	offered map[grid.AttemptID]bool       // it has the place of an offer, wherever that is in the order
	moved   map[grid.AttemptID]bool       // was Late: its own fault
	policy  bool                          // conservative all the time
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newWorld(t fataler, draw func(n int) int) *world {
	w := &world{
		t: t, draw: draw, now: start, strict: true, policy: true, told: map[grid.AttemptID]Commitment{}, moved: map[grid.AttemptID]bool{},
		offered: map[grid.AttemptID]bool{},
	}
	w.calm = draw(2) == 0
	w.lossy = !w.calm && draw(2) == 0
	config := Config{
		Total: grid.Resources{MilliCPUs: 8, MemoryBytes: 12, MFLOPS: 10}, MaxOffers: 16, Self: "self",
		HoldAll: draw(4) == 0, Policy: Policy(draw(5)), FailureHorizon: secs(40),
	}
	if draw(2) == 0 {
		config.PromisePercent, config.FirmPercent = 75, 50
		config.SubmitterPercent, config.ProjectPercent = 60, 90
	}
	if draw(3) == 0 {
		config.Backfill, w.policy = Backfill(draw(3)), false
	}
	config.Fairshare = draw(8) == 0
	w.p = New(config)
	return w
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
		Submitter: []grid.SiteID{"a", "b", "self"}[w.draw(3)], Job: grid.JobID(fmt.Sprint("j", w.draw(4))),
		Project: []string{"", "p", "q"}[w.draw(3)], Count: uint32(w.draw(3)), Class: Class(w.draw(3)),
		Need:    grid.Resources{MilliCPUs: int64(w.draw(6)), MemoryBytes: int64(w.draw(6)), MFLOPS: flops},
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
		Attempt: attempt(n), Submitter: a.Submitter, Project: a.Project, Give: q.Give, Class: a.Class, NotBefore: a.Window.NotBefore,
		Deadline: a.Window.Deadline, LatestStart: q.LatestStart, Start: q.Start, End: q.End, Within: a.Within,
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
	if w.exact() {
		w.compare(a, q, reason)
	}
	if reason != grid.ReasonNone {
		return
	}
	c := commitmentOf(w.tasks, a, q)
	w.tasks++
	c.Overrun, c.Priority = Overrun(w.draw(2)), int32(max(w.draw(12)-9, 0))
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
		w.told[a] = c
	}
}

func (w *world) reserve() {
	a := Ask{
		Class: ClassFixTime, Submitter: []grid.SiteID{"a", "b"}[w.draw(2)], At: w.now.Add(secs(w.draw(40))),
		Need: grid.Resources{MilliCPUs: int64(1 + w.draw(4)), MemoryBytes: int64(1 + w.draw(4))},
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
		_, _ = w.p.Open(w.now, a, q, w.draw(3) > 0, secs(1+w.draw(30)))
	}
}

func (w *world) award() {
	offers := w.p.Offers()
	if len(offers) == 0 {
		return
	}
	o := offers[w.draw(len(offers))]
	c := Commitment{
		Attempt: attempt(w.tasks), Submitter: o.Submitter, Project: o.Project, Class: ClassVarTime, Give: o.Quote.Give,
		Start: o.Quote.Start, End: o.Quote.End, Within: o.Within,
	}
	w.tasks++
	err := w.p.Commit(w.now, c, o.Number)
	if o.Holds > 0 && err != nil && o.Quote.End.After(w.now) && o.Expires.After(w.now) && w.strict {
		w.t.Fatalf("an offer was not kept: %v: %+v", err, o)
	}
	if err == nil {
		w.note(c.Attempt)
		w.offered[c.Attempt] = true
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
}

func (w *world) policies() {
	b := Backfill(w.draw(3))
	if w.policy {
		b = BackfillConservative
	}
	w.p.SetPolicy(Policy(w.draw(5)), b)
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
	w.strict = false
	switch w.draw(3) {
	case 0:
		w.p.SetOutage(grid.Resources{MilliCPUs: int64(w.draw(9)), MemoryBytes: int64(w.draw(5))}, w.now.Add(secs(w.draw(60))))
	case 1:
		w.p.SetCapacity(grid.Resources{MilliCPUs: int64(w.draw(10)), MemoryBytes: 12, MFLOPS: 10})
	default:
		config := w.p.config
		config.FirstOffer = w.p.NextOffer()
		w.p = Restore(config, w.now, w.p.Commitments())
	}
}

func (w *world) snapshot() {
	before := w.p.State()
	p, err := FromState(before)
	if err != nil {
		w.t.Fatalf("FromState: %v", err)
	}
	if diff := cmp.Diff(before, p.State()); diff != "" {
		w.t.Fatalf("-old +new:\n%s", diff)
	}
	old, _ := w.p.Next()
	if next, _ := p.Next(); !next.Equal(old) {
		w.t.Fatalf("the next is %v, was %v", next, old)
	}
	later := w.now.Add(secs(w.draw(20)))
	if w.draw(2) == 0 { // both go the same way
		q, err := FromState(before)
		if err != nil {
			w.t.Fatalf("FromState: %v", err)
		}
		if diff := cmp.Diff(q.Advance(later), p.Advance(later)); diff != "" {
			w.t.Fatalf("-one +other:\n%s", diff)
		}
		p, _ = FromState(before)
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
	if !w.calm || w.p.config.Policy != FCFS || w.p.prioritised > 0 || len(queue) == 0 {
		return
	}
	if c, there := w.p.Commitment(queue[0].Attempt); there && c.Start.After(before[c.Attempt].Start) {
		w.t.Fatalf("the first in the queue was put back: %+v became %+v", before[c.Attempt], c)
	}
	if w.p.config.Backfill != BackfillNone {
		return
	}
	var last time.Time
	for _, e := range queue {
		if w.offered[e.Attempt] || !e.LatestStart.IsZero() {
			continue
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
	for _, c := range slices.Concat(changes.Suspended, changes.Resumed, changes.Stopped, changes.Lost) {
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

// check looks at every promise and at every instant.
func (w *world) check() {
	if err := w.p.Check(); err != nil {
		w.t.Fatalf("%v", err)
	}
	for _, c := range w.p.Commitments() {
		old, known := w.told[c.Attempt]
		w.moved[c.Attempt] = w.moved[c.Attempt] || c.Late || !known
		if !known || w.moved[c.Attempt] || !w.strict || c.Suspended {
			continue
		}
		switch c.Class {
		case ClassFixTime:
			if !c.Start.Equal(old.Start) || !c.Running && !c.Start.After(w.now) && !c.AwaitsData && !w.p.dirty && c.Start.Before(w.now) {
				w.t.Fatalf("a fixed start moved: %+v became %+v", old, c)
			}
		case ClassDeadline:
			if c.Start.After(old.LatestStart) || !c.Running && c.End.After(old.Deadline) || c.Start.Before(c.NotBefore) {
				w.t.Fatalf("a deadline is not kept: %+v became %+v", old, c)
			}
		case ClassVarTime:
			if c.Start.Before(c.NotBefore) {
				w.t.Fatalf("%+v starts too early", c)
			}
			if w.calm && !old.LatestStart.IsZero() && c.Start.After(old.LatestStart) {
				w.t.Fatalf("%+v starts after its guaranteed latest start", c)
			}
		}
	}
	w.neverTooMuch()
}

// neverTooMuch adds up what is used now and what is planned at every instant.
func (w *world) neverTooMuch() {
	if !w.strict {
		return
	}
	now, _ := w.p.Next()
	if !now.After(w.now) && !now.IsZero() {
		return // it has not been advanced to now
	}
	commitments := w.p.Commitments()
	var used grid.Resources
	for _, c := range commitments {
		switch {
		case c.Stopped || c.Within != (grid.AttemptID{}) || !c.Running:
		case c.Suspended:
			used = used.Add(still(c.Give))
		default:
			used = used.Add(c.Give)
		}
	}
	if !w.p.Total().Fits(used) {
		w.t.Fatalf("%+v is in use of %+v: %+v", used, w.p.Total(), commitments)
	}
	if w.calm {
		w.planned(commitments)
	}
}

// planned adds up what is taken at every instant at which it can change, in the site
// and of every share.
func (w *world) planned(commitments []Commitment) {
	type taken struct {
		claim claim
		span  span
	}
	var all []taken
	for _, c := range commitments {
		all = append(all, taken{claimOf(&c), c.spans()[0]})
	}
	for _, o := range w.p.Offers() {
		if s, holds := o.span(o.Holds); holds {
			all = append(all, taken{o.claim(), s})
		}
	}
	for _, instant := range all {
		sums := map[limitKey]grid.Resources{}
		var site grid.Resources
		at := later(instant.span.start, w.now)
		for _, x := range all {
			if at.Before(x.span.start) || !at.Before(x.span.end) || x.claim.within != (grid.AttemptID{}) {
				continue
			}
			site = site.Add(x.span.need)
			for _, key := range w.p.keys(x.claim) {
				sums[key] = sums[key].Add(x.span.need)
			}
		}
		if !w.p.Total().Fits(site) {
			w.t.Fatalf("at %v %+v is taken of %+v", at.Sub(start), site, w.p.Total())
		}
		for key, sum := range sums {
			if limit := part(w.p.Total(), w.p.percent(key.kind)); !limit.Fits(sum) {
				w.t.Fatalf("at %v %+v is taken of the share %+v of %+v", at.Sub(start), sum, limit, key)
			}
		}
	}
}

// compare says what the dumb twin would have quoted: it has a value for each second,
// and tries one after the other.
func (w *world) compare(a Ask, q Quote, reason grid.Reason) {
	const seconds = 400
	var free [seconds]map[limitKey]grid.Resources
	c := claim{a.Submitter, a.Project, a.Within, a.Class != ClassVarTime}
	whole := limitKey{kind: limitKinds}
	for i := range free {
		free[i] = map[limitKey]grid.Resources{whole: w.p.Total()}
		for _, key := range w.p.keys(c) {
			free[i][key] = part(w.p.Total(), w.p.percent(key.kind))
		}
	}
	holder, _ := w.p.Commitment(a.Within)
	take := func(d claim, s span) {
		for i := range free {
			at := w.now.Add(secs(i))
			if d.within != a.Within || at.Before(s.start) || !at.Before(s.end) {
				continue
			}
			free[i][whole] = free[i][whole].Sub(s.need)
			for _, key := range w.p.keys(d) {
				if have, counts := free[i][key]; counts {
					free[i][key] = have.Sub(s.need)
				}
			}
		}
	}
	for i := range free {
		if at := w.now.Add(secs(i)); a.Within != (grid.AttemptID{}) {
			free[i][whole] = grid.Resources{}
			if !at.Before(holder.Start) && at.Before(holder.End) {
				free[i][whole] = holder.Give
			}
		}
	}
	var queued, last time.Time
	for _, d := range w.p.Commitments() {
		take(claimOf(&d), d.spans()[0])
		if !d.Running && d.Class != ClassFixTime && d.Within == (grid.AttemptID{}) {
			queued = later(queued, d.End)
			if d.Class == ClassVarTime {
				last = later(last, d.Start)
			}
		}
	}
	for _, o := range w.p.Offers() {
		if s, holds := o.span(o.Holds); holds {
			take(o.claim(), s)
		}
	}
	_, run := a.Rate(w.p.Total())
	staging, from := time.Duration(0), later(w.now, a.Window.NotBefore)
	if a.NowOnly {
		staging = a.StageIn
	} else {
		from = later(w.now.Add(a.StageIn), a.Window.NotBefore)
	}
	if w.p.config.Backfill == BackfillNone && a.Class == ClassVarTime && a.Within == (grid.AttemptID{}) {
		from = later(from, last)
	}
	for i := range seconds - 50 {
		at := w.now.Add(secs(i))
		end := at.Add(staging + run)
		switch {
		case at.Before(from), a.NowOnly && i > 0, a.Class == ClassFixTime && !at.Equal(a.At):
			continue
		case !a.Window.Deadline.IsZero() && end.After(a.Window.Deadline):
			continue
		case a.Class == ClassFixTime && w.p.config.Fairshare && a.Within == (grid.AttemptID{}) && at.Before(queued):
			continue
		}
		fits := true
		for _, second := range free[i : i+int((staging+run)/time.Second)] {
			for _, have := range second {
				fits = fits && enough(have, a.Need)
			}
		}
		if !fits {
			continue
		}
		if reason != grid.ReasonNone || !q.Start.Equal(at) || !q.End.Equal(end) {
			w.t.Fatalf("quote %v, %+v, want second %d for %+v", reason, q, i, a)
		}
		return
	}
	if reason == grid.ReasonNone {
		w.t.Fatalf("quote %+v, want none for %+v", q, a)
	}
}
