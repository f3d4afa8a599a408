package yield

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Hours are the windows of the week in which the owner shares the machine. The
// zero value is always.
type Hours struct {
	text    string
	windows []window
}

// window begins on some days of the week and lasts to the same or the next day.
type window struct {
	days     [7]bool // by time.Weekday, on which it begins
	percent  int     // of the cores that are shared then, 1 to 100
	from, to int     // minutes since midnight; to is beyond the day when it ends on the next
}

const (
	day       = 24 * 60 // minutes
	maxWindow = 32
)

var dayNames = [...]string{ //nolint:gochecknoglobals // a constant table
	"sun", "mon", "tue", "wed", "thu", "fri", "sat",
}

// ParseHours reads windows such as "mon-fri 18:00-08:00, sat-sun 00:00-24:00". A
// window without days is for all of them; one that ends before it begins ends on
// the next day. With a share behind it, "mon-fri 08:00-18:00 25%", no more than that
// part of the cores is shared then. The empty text is always.
func ParseHours(text string) (Hours, error) {
	h := Hours{text: strings.TrimSpace(text)}
	if h.text == "" {
		return Hours{}, nil
	}
	for part := range strings.SplitSeq(h.text, ",") {
		w, err := parseWindow(strings.TrimSpace(part))
		if err != nil {
			return Hours{}, err
		}
		h.windows = append(h.windows, w)
	}
	if len(h.windows) > maxWindow {
		return Hours{}, fmt.Errorf("hours: want at most %d windows, have %d", maxWindow, len(h.windows))
	}
	return h, nil
}

func parseWindow(text string) (window, error) {
	wrong := fmt.Errorf("hours %q: want days and times such as mon-fri 18:00-08:00, "+
		"and behind them a share of the cores such as 25%%, if it is not all", text)
	rest, percent, ok := cutShare(text)
	if !ok {
		return window{}, wrong
	}
	days, times, both := strings.Cut(rest, " ")
	if !both {
		days, times = "sun-sat", rest
	}
	w := window{percent: percent}
	first, last, isRange := strings.Cut(strings.ToLower(days), "-")
	if !isRange {
		last = first
	}
	from, to := slices.Index(dayNames[:], first), slices.Index(dayNames[:], last)
	if from < 0 || to < 0 {
		return w, wrong
	}
	for d := from; ; d = (d + 1) % len(dayNames) {
		w.days[d] = true
		if d == to {
			break
		}
	}
	begin, end, isRange := strings.Cut(strings.TrimSpace(times), "-")
	var okFrom, okTo bool
	w.from, okFrom = parseMinute(begin)
	w.to, okTo = parseMinute(end)
	if !isRange || !okFrom || !okTo || w.from == w.to || w.from == day {
		return w, wrong
	}
	if w.to < w.from {
		w.to += day
	}
	return w, nil
}

// cutShare takes the share off the end of a window; 100 where there is none.
func cutShare(text string) (rest string, percent int, ok bool) {
	at := strings.LastIndexByte(text, ' ')
	share, is := strings.CutSuffix(text[at+1:], "%")
	if !is {
		return text, 100, true
	}
	percent, err := strconv.Atoi(share)
	ok = err == nil && percent >= 1 && percent <= 100
	return strings.TrimSpace(text[:max(at, 0)]), percent, ok
}

// parseMinute reads hh:mm from 00:00 to 24:00.
func parseMinute(text string) (int, bool) {
	const form = len("00:00")
	if len(text) != form || text[2] != ':' {
		return 0, false
	}
	digit := func(i int) int { return int(text[i]) - '0' }
	for _, i := range []int{0, 1, 3, 4} {
		if digit(i) < 0 || digit(i) > 9 {
			return 0, false
		}
	}
	hour, minute := 10*digit(0)+digit(1), 10*digit(3)+digit(4)
	return 60*hour + minute, minute < 60 && 60*hour+minute <= day
}

// Open reports whether the owner shares the machine at a time, as the clock on
// the wall of t's zone shows it.
func (h Hours) Open(t time.Time) bool {
	return h.Share(t) > 0
}

// Share is the part of the cores that the owner shares at a time, in percent: the largest of the
// windows that are open then; 0: none is.
func (h Hours) Share(t time.Time) (percent int) {
	if len(h.windows) == 0 {
		return 100
	}
	minute, today := 60*t.Hour()+t.Minute(), int(t.Weekday())
	yesterday := (today + len(dayNames) - 1) % len(dayNames)
	for _, w := range h.windows {
		if w.days[today] && minute >= w.from && minute < w.to ||
			w.days[yesterday] && minute+day < w.to {
			percent = max(percent, w.percent)
		}
	}
	return percent
}

// ShareUntil is when the share is another one than at t, next after t. The zero time: never.
func (h Hours) ShareUntil(t time.Time) (first time.Time) {
	now := h.Share(t)
	for ahead := -1; ahead <= len(dayNames)+1; ahead++ {
		for _, w := range h.windows {
			for _, minute := range []int{w.from, w.to} {
				at := time.Date(t.Year(), t.Month(), t.Day()+ahead, 0, minute, 0, 0, t.Location())
				if at.After(t) && (first.IsZero() || at.Before(first)) && h.Share(at) != now {
					first = at
				}
			}
		}
	}
	return first
}

// Ends returns when the time ends, next after t, in which the owner shares the machine: after a
// time at which it is open. The zero time: it never does, or is not open at t.
func (h Hours) Ends(t time.Time) (first time.Time) {
	if len(h.windows) == 0 || !h.Open(t) {
		return first
	}
	for ahead := -1; ahead <= len(dayNames); ahead++ {
		for _, w := range h.windows {
			end := time.Date(t.Year(), t.Month(), t.Day()+ahead, 0, w.to, 0, 0, t.Location())
			if end.After(t) && (first.IsZero() || end.Before(first)) && !h.Open(end) {
				first = end
			}
		}
	}
	return first
}

// Span is a part of the week, from Monday, 00:00.
type Span struct {
	From, To time.Duration // From before To, at most 168 h
}

// Closed lists when the owner does not share the machine, ascending.
func (h Hours) Closed() []Span {
	var spans []Span
	monday := time.Date(2001, time.January, 1, 0, 0, 0, 0, time.UTC)
	const week = len(dayNames) * day
	for m := range week {
		if h.Open(monday.Add(time.Duration(m) * time.Minute)) {
			continue
		}
		at := time.Duration(m) * time.Minute
		if n := len(spans); n > 0 && spans[n-1].To == at {
			spans[n-1].To += time.Minute
			continue
		}
		spans = append(spans, Span{From: at, To: at + time.Minute})
	}
	return spans
}

// Always reports whether there are no windows.
func (h Hours) Always() bool { return len(h.windows) == 0 }

// String is the text that ParseHours read.
func (h Hours) String() string { return h.text }

// Equal reports whether two hours are written alike.
func (h Hours) Equal(other Hours) bool { return h.text == other.text }
