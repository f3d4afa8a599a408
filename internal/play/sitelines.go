package play

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
)

// span is a time during which something was so at a site.
type span struct{ from, to time.Duration }

func (s span) touches(o span) bool { return s.from < o.to && o.from < s.to }

// siteLine tells what happened at one site.
type siteLine struct {
	name     string
	bars     []bar // in the order of their beginnings
	down     []span
	troubles []trouble
	marks    []mark // in their order
}

// bar is a time during which an attempt ran, or was frozen.
type bar struct {
	span
	attempt grid.AttemptID
	frozen  bool
}

// trouble is something that the scenario did to a site.
type trouble struct {
	span
	site string
	kind scenario.Kind
	what string // its line in the scenario
}

// mark is a moment at which it was decided that an attempt at the site counts no more.
type mark struct {
	at      time.Duration
	attempt grid.AttemptID
	what    markKind
}

type markKind string

const (
	markLost   markKind = "given up by the submitter"
	markFenced markKind = "fenced: dropped by the site"
)

// spans are the times at which attempts ran, or were frozen.
func (l *siteLine) spans(frozen bool) []span {
	var all []span
	for _, b := range l.bars {
		if b.frozen == frozen {
			all = append(all, b.span)
		}
	}
	return all
}

// siteLines gathers what happened at every site, in their order, and when the last of it ended
// or began.
func (rec *Record) siteLines() ([]*siteLine, time.Duration) {
	d := drawing{
		by: make(map[string]*siteLine), open: make(map[grid.AttemptID]openBar),
		last: make(map[grid.AttemptID]int), down: make(map[string]time.Duration),
	}
	var lines []*siteLine
	for _, name := range rec.sites {
		d.by[name] = &siteLine{name: name}
		lines = append(lines, d.by[name])
	}
	for _, t := range rec.troubles {
		d.end = max(d.end, t.from, min(t.to, rec.end))
		d.by[t.site].troubles = append(d.by[t.site].troubles, t)
	}
	for _, s := range rec.sights {
		d.draw(s)
	}
	for id := range d.open {
		d.close(id, rec.end)
	}
	for name, from := range d.down {
		d.by[name].down = append(d.by[name].down, span{from, rec.end})
	}
	for _, l := range lines {
		sortBars(l.bars)
	}
	return lines, d.end
}

func sortBars(bars []bar) {
	slices.SortFunc(bars, func(a, b bar) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to),
			a.attempt.Compare(b.attempt))
	})
}

// drawing turns what was seen into spans.
type drawing struct {
	by   map[string]*siteLine
	open map[grid.AttemptID]openBar
	last map[grid.AttemptID]int   // the attempt's last bar, among those of its site
	down map[string]time.Duration // agents that are dead, since when
	end  time.Duration            // of all so far
}

// openBar is a bar whose end has not been seen.
type openBar struct {
	at     string // the site
	from   time.Duration
	frozen bool
	again  bool // it is the attempt's last one, which goes on
}

func (d *drawing) draw(s sim.Sight) {
	at := string(s.Site)
	switch s.Kind {
	case sim.SightRuns, sim.SightFrozen, sim.SightGone:
		d.close(s.Attempt, s.At)
		if s.Kind != sim.SightGone {
			d.begin(s.Attempt, openBar{at: at, from: s.At, frozen: s.Kind == sim.SightFrozen})
		}
	case sim.SightDown:
		d.down[at] = s.At
	case sim.SightUp:
		if from, is := d.down[at]; is {
			d.by[at].down = append(d.by[at].down, span{from, s.At})
			delete(d.down, at)
		}
	case sim.SightReported:
		switch {
		case isGivenUp(s):
			at = string(s.Report.Site)
			d.mark(at, mark{s.At, s.Report.Attempt, markLost})
		case !s.Broker && s.Report.Event == "dropped":
			d.mark(at, mark{s.At, s.Report.Attempt, markFenced})
			return
		default:
			return
		}
	default:
		return
	}
	d.end = max(d.end, s.At)
}

// mark marks a site's line. Of a site that has no line nothing is known.
func (d *drawing) mark(at string, m mark) {
	if l := d.by[at]; l != nil {
		l.marks = append(l.marks, m)
	}
}

// begin opens a bar. One that goes on where the attempt's last one ended is the same: so it is when
// a lease is prolonged.
func (d *drawing) begin(id grid.AttemptID, o openBar) {
	bars := d.by[o.at].bars
	if n, is := d.last[id]; is && n < len(bars) {
		if last := bars[n]; last.attempt == id && last.to == o.from && last.frozen == o.frozen {
			o.from, o.again = last.from, true
		}
	}
	d.open[id] = o
}

// close ends the bar of an attempt, if it has one, and if it took any time.
func (d *drawing) close(id grid.AttemptID, at time.Duration) {
	o, is := d.open[id]
	delete(d.open, id)
	if !is || at == o.from {
		return
	}
	l := d.by[o.at]
	if o.again {
		l.bars[d.last[id]].to = at
		return
	}
	d.last[id] = len(l.bars)
	l.bars = append(l.bars, bar{span{o.from, at}, id, o.frozen})
}

// isGivenUp reports whether a submitter gave up an attempt at another site.
func isGivenUp(s sim.Sight) bool {
	switch s.Report.Event {
	case "attempt_lost", "attempt_failed", "rival_lost":
		return s.Broker && s.Report.Site != ""
	default:
		return false
	}
}
