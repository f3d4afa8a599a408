package plan

import (
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// listener knows of a plan what its caller knows: what was committed, and what Changes
// told since.
type listener map[grid.AttemptID]Commitment

// hear applies changes and reports what they tell wrongly: an attempt has begun, goes on,
// is suspended, ends, is lost or over once, and only where it could.
func (l listener) hear(changes Changes) (wrong []string) {
	each := func(what string, list []Commitment, happens func(*Commitment) bool) {
		for _, told := range list {
			c, known := l[told.Attempt]
			if !known {
				continue // it was released since
			}
			if !happens(&c) {
				wrong = append(wrong, what+" "+c.Attempt.String())
			}
			l[c.Attempt] = c
		}
	}
	each("started", changes.Started, func(c *Commitment) bool {
		waited := !c.Running
		c.Running = true
		return waited
	})
	times := map[grid.AttemptID]int{} // suspended so often more than resumed
	each("suspended", changes.Suspended, func(c *Commitment) bool {
		times[c.Attempt]++
		return c.Running
	})
	each("resumed", changes.Resumed, func(c *Commitment) bool {
		times[c.Attempt]--
		return c.Running
	})
	for attempt, n := range times {
		c := l[attempt]
		if n += sign(c.Suspended); n != 0 && n != 1 {
			wrong = append(wrong, "suspended or resumed twice "+attempt.String())
		}
		c.Suspended = n == 1
		l[attempt] = c
	}
	each("stopped", changes.Stopped, func(c *Commitment) bool {
		did := c.Running && !c.Stopped
		c.Stopped, c.Suspended = true, false
		return did
	})
	for _, c := range slices.Concat(changes.Lost, changes.Over) {
		delete(l, c.Attempt)
	}
	return wrong
}

// knows compares what it heard with the commitments there are.
func (l listener) knows(commitments []Commitment, moved []Commitment) string {
	type state struct{ Running, Suspended, Stopped bool }
	of := func(c Commitment) state { return state{c.Running, c.Suspended, c.Stopped} }
	heard, have := map[grid.AttemptID]state{}, map[grid.AttemptID]state{}
	for a, c := range l {
		heard[a] = of(c)
	}
	for _, c := range commitments {
		have[c.Attempt] = of(c)
		said := slices.ContainsFunc(moved, func(m Commitment) bool { return m.Attempt == c.Attempt })
		if old, known := l[c.Attempt]; known && c.waits() && !c.Start.Equal(old.Start) && !said {
			return "moved silently from " + old.Start.String() + ": " + cmp.Diff(old, c)
		}
	}
	if maps.Equal(heard, have) {
		return ""
	}
	return cmp.Diff(heard, have)
}

// listen checks that Changes tell all that happened, and is told about commitments that
// are new.
func (w *world) listen(changes Changes) {
	if wrong := w.heard.hear(changes); len(wrong) > 0 {
		w.t.Fatalf("told what cannot be: %v", wrong)
	}
	commitments := w.p.Commitments()
	if diff := w.heard.knows(commitments, changes.Moved); diff != "" {
		w.t.Fatalf("told otherwise than it is, -told +is:\n%s", diff)
	}
	w.listenAnew(commitments)
}

func (w *world) listenAnew(commitments []Commitment) {
	w.heard = listener{}
	for _, c := range commitments {
		w.heard[c.Attempt] = c
	}
}

// earlier reports whether what waits or is suspended could begin before the place that it
// waits for, beside all others. It is asked where nobody is put back only: elsewhere one that
// is leaves a place that others may see later.
func (w *world) earlier(e *entry) bool {
	if w.p.config.Backfill != grid.BackfillConservative || w.p.prioritised > 0 {
		return false
	}
	latest := e.next().Add(-1)
	free := w.p.lines(claimOf(&e.Commitment))
	for i, line := range free {
		free[i] = line.Clone()
		for _, s := range e.spans() {
			if s.start.Before(s.end) {
				must(free[i].Release(s.need, s.start, s.end))
			}
		}
	}
	_, _, found := free.earliest(e.Give, e.length(), e.floor(w.now), latest)
	return found
}

// nobodyIsLeftBehind checks that those that wait move up "when other requests terminate
// before the specified estimated duration", and whatever else gives capacity back: what could
// not begin earlier before cannot now. New ones stay in the place they were committed in, and
// loans of what is late are an order of their own.
func (w *world) nobodyIsLeftBehind() {
	before, left := w.could, w.couldNow()
	for _, e := range w.p.all() {
		could, known := before[e.Attempt]
		if known && !could && left[e.Attempt] && !w.loans && !w.p.strained && w.p.late == 0 {
			w.t.Fatalf("%+v could begin earlier now and does not", e.Commitment)
		}
	}
	w.could, w.loans = left, w.p.strained || w.p.late > 0
}

// couldNow says of all that would move up whether it could begin earlier.
func (w *world) couldNow() map[grid.AttemptID]bool {
	could := map[grid.AttemptID]bool{}
	for _, r := range w.p.inOrder() {
		for _, e := range r.movable {
			if !e.AwaitsData && !e.Late {
				could[e.Attempt] = w.earlier(e)
			}
		}
	}
	return could
}

// fitsWhatBegins checks what began or went on in a settling: of what it uses no more is taken
// than there is, in an outage and below lower ceilings, too, or than was before: what ran then
// goes on. So does what overruns in an outage, as long as that would disturb nobody without it,
// and what was there before ceilings fell below it begins nevertheless.
func (w *world) fitsWhatBegins(before map[grid.AttemptID]Commitment, changes Changes) {
	limit := w.p.site.ceiling.Sub(w.p.missing(w.p.site, w.now))
	excess := func(list []Commitment) grid.Resources {
		list = slices.DeleteFunc(list, func(c Commitment) bool { return c.Overran })
		return larger(w.used(list).Sub(limit), grid.Resources{})
	}
	over := excess(w.p.Commitments()).Sub(excess(slices.Collect(maps.Values(before))))
	over = larger(over, grid.Resources{})
	for _, told := range slices.Concat(changes.Started, changes.Resumed) {
		c, there := w.p.Commitment(told.Attempt)
		onSite := there && c.runs() && c.Within == (grid.AttemptID{})
		if onSite && w.p.total().Fits(c.Give) && helps(c.Give, over) {
			w.t.Fatalf("%+v began although %+v more is in use than there is", c, over)
		}
	}
}
