package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
)

// span is a time during which something was so at a site.
type span struct{ from, to time.Duration }

func (s span) touches(o span) bool { return s.from < o.to && o.from < s.to }

// siteLine is the line of one site in the timeline.
type siteLine struct {
	runs, frozen, down []span
	troubles           []trouble // of the scenario
	gone               []time.Duration
}

// trouble is a fault that the scenario applies to a site.
type trouble struct {
	span
	kind Kind
}

const lineColumns = 72

// timeLine draws a line of time for each site, and one below it where something
// happened to the site.
func (st *story) timeLine() string {
	sites, end := st.siteLines()
	width := columnOf(end)
	columns := int(end/width) + 1
	var b strings.Builder
	fmt.Fprintf(&b, "time line: a column is %s\n", width)
	b.WriteString("       " + ruler(columns, width) + "\n")
	for _, site := range st.s.Sites {
		l := sites[site.Name]
		work, fate := make([]byte, columns), make([]byte, columns)
		for i := range columns {
			of := span{time.Duration(i) * width, time.Duration(i+1) * width}
			work[i], fate[i] = l.work(of), l.fate(of)
		}
		fmt.Fprintf(&b, "  %-4s %s\n", site.Name, work)
		if below := strings.TrimRight(string(fate), " "); below != "" {
			fmt.Fprintf(&b, "       %s\n", below)
		}
	}
	b.WriteString("  1-9 tasks run, + more, f frozen, . none, x the agent is dead; below:\n" +
		"  / cut off, m mute, p paused, o its owner is busy, L given up here by the submitter\n")
	return b.String()
}

// columnOf is the time of a column so that all fit.
func columnOf(end time.Duration) time.Duration {
	for unit := 100 * time.Millisecond; ; unit *= 10 {
		for _, width := range []time.Duration{unit, 2 * unit, 5 * unit} {
			if end/width < lineColumns {
				return width
			}
		}
	}
}

// ruler marks every tenth column with its time.
func ruler(columns int, width time.Duration) string {
	var b strings.Builder
	for i := 0; i < columns; i += 10 {
		fmt.Fprintf(&b, "%-10s", (time.Duration(i) * width).String())
	}
	return strings.TrimRight(b.String(), " ")
}

// siteLines gathers the spans of every site, and when the last of them ended or
// began.
func (st *story) siteLines() (map[string]*siteLine, time.Duration) {
	sites := make(map[string]*siteLine)
	for _, s := range st.s.Sites {
		sites[s.Name] = &siteLine{}
	}
	end := time.Duration(0)
	for _, e := range st.s.Events {
		if e.Site == "" || e.Kind == Crash {
			continue
		}
		t := trouble{span{e.At, e.At + e.For}, e.Kind}
		if e.For == 0 {
			t.to = st.s.Run.For
		}
		end = max(end, t.from, min(t.to, st.s.Run.For))
		sites[e.Site].troubles = append(sites[e.Site].troubles, t)
	}
	return sites, max(end, st.drawSights(sites))
}

// drawSights turns what was seen into spans.
func (st *story) drawSights(sites map[string]*siteLine) (end time.Duration) {
	runs, frozen := make(map[grid.AttemptID]time.Duration), make(map[grid.AttemptID]time.Duration)
	down := make(map[string]time.Duration)
	at := make(map[grid.AttemptID]string)
	for _, s := range st.sights {
		l := sites[string(s.Site)]
		switch s.Kind {
		case sim.SightRuns, sim.SightFrozen, sim.SightGone:
			closeSpan(&l.runs, runs, s.Attempt, s.At)
			closeSpan(&l.frozen, frozen, s.Attempt, s.At)
			at[s.Attempt] = string(s.Site)
			switch s.Kind {
			case sim.SightRuns:
				runs[s.Attempt] = s.At
			case sim.SightFrozen:
				frozen[s.Attempt] = s.At
			default: // it is gone
			}
		case sim.SightDown:
			down[string(s.Site)] = s.At
		case sim.SightUp:
			closeSpan(&l.down, down, string(s.Site), s.At)
		case sim.SightReported:
			if !isGivenUp(s) {
				continue
			}
			l = sites[string(s.Report.Site)]
			l.gone = append(l.gone, s.At)
		default:
			continue
		}
		end = max(end, s.At)
	}
	for id, from := range runs {
		sites[at[id]].runs = append(sites[at[id]].runs, span{from, st.s.Run.For})
	}
	for id, from := range frozen {
		sites[at[id]].frozen = append(sites[at[id]].frozen, span{from, st.s.Run.For})
	}
	for site, from := range down {
		sites[site].down = append(sites[site].down, span{from, st.s.Run.For})
	}
	return end
}

func closeSpan[K comparable](to *[]span, open map[K]time.Duration, key K, at time.Duration) {
	if from, is := open[key]; is {
		*to = append(*to, span{from, at})
		delete(open, key)
	}
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

// work is the letter of a column in a site's line.
func (l *siteLine) work(of span) byte {
	switch n := mostAtOnce(l.runs, of); {
	case n > 9:
		return '+'
	case n > 0:
		return strconv.Itoa(n)[0]
	}
	switch {
	case mostAtOnce(l.down, of) > 0:
		return 'x'
	case mostAtOnce(l.frozen, of) > 0:
		return 'f'
	default:
		return '.'
	}
}

// fate is the letter of a column below a site's line.
func (l *siteLine) fate(of span) byte {
	for _, at := range l.gone {
		if of.from <= at && at < of.to {
			return 'L'
		}
	}
	letters := map[Kind]byte{Isolate: '/', Silent: 'm', Pause: 'p', Busy: 'o', Upset: '!'}
	for _, t := range l.troubles {
		if t.touches(of) {
			return letters[t.kind]
		}
	}
	return ' '
}

// mostAtOnce returns the largest number of spans that overlap within another one.
func mostAtOnce(spans []span, within span) int {
	most := 0
	for _, a := range spans {
		if !a.touches(within) {
			continue
		}
		at, n := max(a.from, within.from), 0
		for _, b := range spans {
			if b.from <= at && at < b.to {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
