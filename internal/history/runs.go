package history

import (
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// Counts sums up the whole history.
type Counts struct {
	Runs        int // starts of the agent
	Crashes     int // runs that did not end in order
	Suspends    int
	Jumps       int // times that the wall clock was set
	WrongClocks int // runs whose wall clock cannot be right
	Disordered  int // entries that contradict those before them, left out
	Damaged     int // lines that were put aside, ever since the agent was started
	Unwritten   int // entries that could not be written
}

// A wall clock before the first of these years, or in one after the last, is wrong.
const (
	firstYear = 2020
	lastYear  = 2200
)

// longestDown is the longest time down that is believed.
const longestDown = 2 * 365 * 24 * time.Hour

// summary sums up the entries.
type summary struct {
	history avail.History
	counts  Counts
	up      int64 // boot clock at which the last run came up, or woke, ms
	free    int64 // boot clock at which it became available, ms; meaningless while busy
	busy    bool
}

// run is the entries from one start to the next.
type run struct {
	entries []entry
	last    bool
}

func (r run) start() entry { return r.entries[0] }

func (r run) end() entry { return r.entries[len(r.entries)-1] }

// wallMS returns what the wall clock should have shown at a time of the boot clock: the
// run's last reading is believed.
func (r run) wallMS(bootMS int64) int64 { return r.end().wallMS - (r.end().bootMS - bootMS) }

// trusted reports whether the run's clock can be right.
func (r run) trusted(nowMS int64) bool {
	year := time.UnixMilli(r.end().wallMS).UTC().Year()
	return year >= firstYear && year <= lastYear && r.end().wallMS <= nowMS+time.Hour.Milliseconds()
}

// runsOf cuts the entries into runs. What stands before the first start is left out,
// and so is an entry whose boot clock goes back.
func runsOf(entries []entry) (runs []run, disordered int) {
	for _, e := range entries {
		switch {
		case e.kind == kindStart:
			runs = append(runs, run{entries: []entry{e}})
		case len(runs) == 0 || e.bootMS < runs[len(runs)-1].end().bootMS ||
			runs[len(runs)-1].end().kind == kindStop:
			disordered++
		default:
			r := &runs[len(runs)-1]
			r.entries = append(r.entries, e)
		}
	}
	if len(runs) > 0 {
		runs[len(runs)-1].last = true
	}
	return runs, disordered
}

// summarize reads the past. now ends the last run, which goes on.
func summarize(entries []entry, now entry, place *time.Location) summary {
	runs, disordered := runsOf(entries)
	s := summary{counts: Counts{Runs: len(runs), Disordered: disordered}}
	for i, r := range runs {
		if r.last && now.bootMS >= r.end().bootMS {
			r.entries = append(slices.Clip(r.entries), now)
		}
		reader := reader{summary: &s, run: r, nowMS: now.wallMS, place: place}
		reader.read()
		if i+1 < len(runs) {
			if down, known := downBetween(r, runs[i+1], now.wallMS); known {
				s.history.Downs = append(s.history.Downs, down.Seconds())
			}
		}
	}
	return s
}

// downBetween returns for how long the site was down between two runs, if that is known:
// by the boot clock where both are of one boot, else by wall clocks that can be right.
func downBetween(before, after run, nowMS int64) (time.Duration, bool) {
	ms := after.wallMS(after.start().bootMS) - before.end().wallMS
	same := before.start().bootID != "" && before.start().bootID == after.start().bootID
	switch {
	case same:
		ms = after.start().bootMS - before.end().bootMS
	case !before.trusted(nowMS) || !after.trusted(nowMS):
		return 0, false
	}
	if ms < 0 || ms > longestDown.Milliseconds() {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// reader goes through one run.
type reader struct {
	summary *summary
	run     run
	nowMS   int64
	place   *time.Location
	from    int64 // boot clock at which the present span began
	busy    bool
	up      int64
}

func (r *reader) read() {
	counts := &r.summary.counts
	r.up, r.from = r.run.start().bootMS, r.run.start().bootMS
	if !r.run.trusted(r.nowMS) {
		counts.WrongClocks++
	}
	for _, e := range r.run.entries[1:] {
		switch e.kind {
		case kindSuspend:
			counts.Suspends++
			asleep := min(max(e.value, 0), e.bootMS-r.from)
			r.span(e.bootMS-asleep, avail.EndLeft)
			r.summary.history.Downs = append(r.summary.history.Downs, float64(asleep)/1000)
			r.up, r.from = e.bootMS, e.bootMS
		case kindJump:
			counts.Jumps++
		case kindBusy:
			r.span(e.bootMS, avail.EndLeft)
			r.busy = true
		case kindFree:
			if r.busy {
				r.busy, r.from = false, e.bootMS
			}
		default:
		}
	}
	end, how := r.run.end(), avail.EndCrash
	switch {
	case end.kind == kindStop:
		how = avail.EndLeft
	case r.run.last:
		how = avail.EndOpen
	default:
		counts.Crashes++
	}
	r.span(end.bootMS, how)
	r.summary.up, r.summary.free, r.summary.busy = r.up, r.from, r.busy
}

// span adds a time of being available, if it was one.
func (r *reader) span(until int64, how avail.Ending) {
	if r.busy {
		return
	}
	s := avail.Span{
		Week: -1, Age: float64(r.from-r.up) / 1000, Seconds: float64(max(until-r.from, 0)) / 1000,
		End: how,
	}
	if r.run.trusted(r.nowMS) {
		s.Week = weekSecond(time.UnixMilli(r.run.wallMS(r.from)), r.place)
		s.Ago = math.Max(float64(r.nowMS-r.run.wallMS(until))/1000, 0)
	}
	r.summary.history.Spans = append(r.summary.history.Spans, s)
}

func weekSecond(t time.Time, place *time.Location) float64 {
	_, zone := t.In(place).Zone()
	return avail.WeekSecond(t, zone)
}
