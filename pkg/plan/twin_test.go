package plan

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

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
			if !c.Start.Equal(old.Start) ||
				!c.Running && !c.Start.After(w.now) && !c.AwaitsData && !w.p.dirty && c.Start.Before(w.now) {
				w.t.Fatalf("a fixed start moved: %+v became %+v", old, c)
			}
		case ClassDeadline:
			if c.Start.After(old.LatestStart) || !c.Running && c.End.After(old.Deadline) ||
				c.Start.Before(c.NotBefore) {
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
	if used := w.used(commitments); !w.p.total().Fits(used) {
		w.t.Fatalf("%+v is in use of %+v: %+v", used, w.p.total(), commitments)
	}
	if w.calm {
		w.planned(commitments)
	}
}

// used adds up what the site's tasks use now.
func (w *world) used(commitments []Commitment) grid.Resources {
	var used grid.Resources
	for _, c := range commitments {
		switch {
		case c.Late && c.AwaitsData && !c.Running && c.Within == (grid.AttemptID{}) && c.End.After(w.now):
			used.NetBps += c.Give.NetBps // its inputs are on their way
		case c.Stopped || c.Within != (grid.AttemptID{}) || !c.Running:
		case c.Suspended:
			used = used.Add(still(c.Give))
		default:
			used = used.Add(c.Give)
		}
	}
	return used
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
		if !w.p.total().Fits(site) {
			w.t.Fatalf("at %v %+v is taken of %+v", at.Sub(start), site, w.p.total())
		}
		for key, sum := range sums {
			if limit := part(w.p.total(), w.p.percent(key.kind)); !limit.Fits(sum) {
				w.t.Fatalf("at %v %+v is taken of the share %+v of %+v", at.Sub(start), sum, limit, key)
			}
		}
	}
}

// compare says what the dumb twin would have quoted: it has a value for each second,
// and tries one after the other.
func (w *world) compare(a Ask, q Quote, reason grid.Reason) {
	const seconds = 400
	c := claim{a.Submitter, a.Project, a.Within, a.Class != ClassVarTime}
	// A second has a value for each limit that counts for what is asked, and the site's at the end.
	keys := append(w.p.keys(c), limitKey{kind: limitKinds})
	whole := len(keys) - 1
	var free [seconds][]grid.Resources
	for i := range free {
		for _, key := range keys[:whole] {
			free[i] = append(free[i], part(w.p.total(), w.p.percent(key.kind)))
		}
		free[i] = append(free[i], w.p.total())
	}
	holder, _ := w.p.Commitment(a.Within)
	take := func(d claim, s span) {
		if d.within != a.Within {
			return
		}
		counts := append(w.p.keys(d), keys[whole])
		for i := range free {
			if at := w.now.Add(secs(i)); at.Before(s.start) || !at.Before(s.end) {
				continue
			}
			for j, key := range keys {
				if slices.Contains(counts, key) {
					free[i][j] = free[i][j].Sub(s.need)
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
	_, run := a.Rate(w.p.total())
	staging, from := time.Duration(0), later(w.now, a.Window.NotBefore)
	if a.NowOnly {
		staging = a.StageIn
	} else {
		from = later(w.now.Add(a.StageIn), a.Window.NotBefore)
	}
	if w.p.config.Backfill == grid.BackfillNone && a.Class == ClassVarTime &&
		a.Within == (grid.AttemptID{}) {
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
		case a.Class == ClassFixTime && w.p.config.Fairshare && a.Within == (grid.AttemptID{}) &&
			at.Before(queued):
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
	// The twin sees its seconds only; a place behind them it can neither find nor deny.
	if reason == grid.ReasonNone && q.Start.Before(w.now.Add(secs(seconds-50))) {
		w.t.Fatalf("quote %+v, want none for %+v", q, a)
	}
}
