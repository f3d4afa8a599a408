package config

import (
	"fmt"
	"strings"
	"time"
)

// Weekly is a time that comes every week, from one moment after Monday, 00:00 local
// time, to another. One whose end is before its start goes over Sunday midnight.
type Weekly struct {
	From, To time.Duration // 0 to 7 days
}

const (
	day       = 24 * time.Hour
	week      = 7 * day
	maxWeekly = 64 // windows that are worth keeping
)

func weekdays() []string { return []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} }

// parseWeekly reads times such as "mon-fri 09:00-18:00, sat 10:00-14:00". A time that
// ends before it starts goes on to the next day. Empty is none.
func parseWeekly(text string) ([]Weekly, error) {
	var all []Weekly
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		windows, err := parseDays(part)
		if err != nil {
			return nil, err
		}
		if all = append(all, windows...); len(all) > maxWeekly {
			return nil, fmt.Errorf("want at most %d times a week", maxWeekly)
		}
	}
	return all, nil
}

func parseDays(part string) ([]Weekly, error) {
	wrong := fmt.Errorf("time %q: want days and hours, such as mon-fri 09:00-18:00 or sat 10:00-14:00", part)
	days, hours, found := strings.Cut(part, " ")
	from, to, ranged := strings.Cut(strings.TrimSpace(hours), "-")
	if !found || !ranged {
		return nil, wrong
	}
	start, okStart := clockTime(from)
	end, okEnd := clockTime(to)
	first, last, _ := strings.Cut(days+"-"+days, "-")
	if before, after, many := strings.Cut(days, "-"); many {
		first, last = before, after
	}
	d, okFirst := weekday(first)
	until, okLast := weekday(last)
	if !okStart || !okEnd || !okFirst || !okLast || start == end {
		return nil, wrong
	}
	var windows []Weekly
	for ; ; d = (d + 1) % 7 {
		w := Weekly{From: time.Duration(d)*day + start, To: time.Duration(d)*day + end}
		if end < start {
			w.To += day
		}
		if w.To > week {
			w.To -= week
		}
		windows = append(windows, w)
		if d == until {
			return windows, nil
		}
	}
}

func weekday(name string) (int, bool) {
	for i, d := range weekdays() {
		if strings.EqualFold(name, d) {
			return i, true
		}
	}
	return 0, false
}

// clockTime reads 00:00 to 24:00.
func clockTime(text string) (time.Duration, bool) {
	if text == "24:00" {
		return day, true
	}
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, false
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, true
}

// showWeekly writes what parseWeekly reads, each day by itself.
func showWeekly(all []Weekly) string {
	var parts []string
	for _, w := range all {
		to := w.To - w.From.Truncate(day)
		if to < 0 {
			to += week
		}
		if to > day {
			to -= day
		}
		parts = append(parts, fmt.Sprintf("%s %s-%s", weekdays()[int(w.From/day)%7], showClock(w.From%day), showClock(to)))
	}
	return strings.Join(parts, ",")
}

func showClock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}
