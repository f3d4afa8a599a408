package jobfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A time in a job file is a moment with a zone, or what a clock on the submitter's
// wall will show. The latter is understood here, with the hours that a clock skips
// and those that it shows twice.

const (
	exampleTimes = "write it like 18:00, tomorrow 18:00, mon 09:00, 2026-05-01 18:00, " +
		"2026-05-01T18:00:00Z, +30s or in 10m"
	maxAhead = 366 * 24 * time.Hour // of any time in a job file
)

// moment reads the time in a field. One of day is its next occurrence after the given
// moment. Assumptions are noted for the user.
func (p *parser) moment(text string, line int, field string, after time.Time) time.Time {
	t, note, wrong := readMoment(text, p.now, after)
	if wrong != nil {
		p.fail(line, field, wrong.remedy, "%s", wrong.text)
		return time.Time{}
	}
	if note != "" {
		p.file.Notes = append(p.file.Notes, field+": "+note)
	}
	if t.Sub(p.now) > maxAhead {
		p.fail(line, field, "choose an earlier one", "want a time within 366 days, have %s", p.local(t))
		return time.Time{}
	}
	return t.UTC()
}

// local is a moment on the submitter's clock, with its zone.
func (p *parser) local(t time.Time) string { return t.In(p.now.Location()).Format(time.RFC3339) }

// momentError says what is wrong with a time and what to do.
type momentError struct{ text, remedy string }

// readMoment reads a time, with now and its zone as the submitter's. Times of day
// and of a weekday are the next after the moment after; all others are counted from
// now. The note is for a time that the clock shows twice.
func readMoment(text string, now, after time.Time) (t time.Time, note string, wrong *momentError) {
	text = strings.TrimSpace(text)
	if span, relative := cutRelative(text); relative {
		return ahead(span, text, now)
	}
	day, clock := cutDay(text)
	if day.dated {
		if err := day.exists(); err != nil {
			return time.Time{}, "", err
		}
		if t, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "T", 1)); err == nil {
			return t, "", nil
		}
	}
	reading, ok := readClock(clock)
	if !ok {
		return time.Time{}, "", &momentError{fmt.Sprintf("want a time, have %q", text), exampleTimes}
	}
	return reading.next(day.candidates(now, after), after.In(now.Location()))
}

// cutRelative takes "+" or "in " off a span of time.
func cutRelative(text string) (string, bool) {
	if span, ok := strings.CutPrefix(text, "+"); ok {
		return span, true
	}
	if len(text) > 3 && strings.EqualFold(text[:3], "in ") {
		return strings.TrimSpace(text[3:]), true
	}
	return "", false
}

// ahead is so much later than now, at a full second so that people can read it.
func ahead(span, text string, now time.Time) (time.Time, string, *momentError) {
	d, err := grid.ParseSpan(span)
	switch {
	case err != nil:
		return time.Time{}, "", &momentError{
			fmt.Sprintf("want a time ahead with a unit (s, m, h, d), have %q", text),
			"write it like +30s or in 10m",
		}
	case d == 0:
		return time.Time{}, "", &momentError{
			fmt.Sprintf("want more than 0, have %q", text), "write it like +30s or in 10m",
		}
	case d > maxAhead:
		return time.Time{}, "", &momentError{
			fmt.Sprintf("want at most 366 days ahead, have %q", text), "choose an earlier one",
		}
	}
	t := now.Add(d)
	if whole := t.Truncate(time.Second); whole.Before(t) {
		t = whole.Add(time.Second)
	}
	return t, "", nil
}

// dayPart is the part of a text that names a day.
type dayPart struct {
	dated            bool // year, month and day are given
	year, month, day int
	weekday          time.Weekday // if weekly
	weekly           bool
	offset           int  // of "today" and "tomorrow", days
	named            bool // "today" or "tomorrow"
}

// cutDay splits a text into its day and its time of day.
func cutDay(text string) (dayPart, string) {
	m := regexp.MustCompile(`^(\d{4})-(\d{2})-(\d{2})(?:[ T](.*))?$`).FindStringSubmatch(text)
	if m != nil {
		var d dayPart
		d.dated = true
		d.year, _ = strconv.Atoi(m[1]) // digits only
		d.month, _ = strconv.Atoi(m[2])
		d.day, _ = strconv.Atoi(m[3])
		return d, m[4]
	}
	word, rest, found := strings.Cut(text, " ")
	if !found {
		return dayPart{}, text
	}
	rest, word = strings.TrimSpace(rest), strings.ToLower(word)
	switch word {
	case "today":
		return dayPart{named: true}, rest
	case "tomorrow":
		return dayPart{named: true, offset: 1}, rest
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if full := strings.ToLower(d.String()); word == full || word == full[:3] {
			return dayPart{weekly: true, weekday: d}, rest
		}
	}
	return dayPart{}, text
}

// exists reports a day that the calendar lacks: 29 February in most years.
func (d dayPart) exists() *momentError {
	if d.month < 1 || d.month > 12 || d.day < 1 {
		return &momentError{
			fmt.Sprintf("there is no day %04d-%02d-%02d", d.year, d.month, d.day), exampleTimes,
		}
	}
	last := time.Date(d.year, time.Month(d.month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	if d.day > last {
		return &momentError{
			fmt.Sprintf("there is no day %04d-%02d-%02d: %s %d has %d days",
				d.year, d.month, d.day, time.Month(d.month), d.year, last),
			"choose a day that exists",
		}
	}
	return nil
}

// candidates are the days that may be meant, at midnight UTC, in order.
func (d dayPart) candidates(now, after time.Time) []time.Time {
	zone := now.Location()
	midnight := func(t time.Time, offset int) time.Time {
		year, month, day := t.In(zone).Date()
		return time.Date(year, month, day+offset, 0, 0, 0, 0, time.UTC)
	}
	switch {
	case d.dated:
		return []time.Time{time.Date(d.year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC)}
	case d.named:
		return []time.Time{midnight(now, d.offset)}
	}
	var days []time.Time
	for offset := range 15 { // a weekday that has passed today comes again in a week
		if day := midnight(after, offset); !d.weekly || day.Weekday() == d.weekday {
			days = append(days, day)
		}
	}
	return days
}

// clockReading is a time of day.
type clockReading struct{ hour, minute, second int }

func readClock(text string) (clockReading, bool) {
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, text); err == nil && t.Nanosecond() == 0 {
			return clockReading{t.Hour(), t.Minute(), t.Second()}, true
		}
	}
	return clockReading{}, false
}

func (c clockReading) String() string {
	return fmt.Sprintf("%02d:%02d:%02d", c.hour, c.minute, c.second)
}

// next is when the clock shows the reading on the first of the days on which that
// is after the given moment, whose zone is the clock's; on the last day in any case.
func (c clockReading) next(days []time.Time, after time.Time) (time.Time, string, *momentError) {
	zone := after.Location()
	for i, day := range days {
		wall := day.Add(time.Duration(c.hour)*time.Hour + time.Duration(c.minute)*time.Minute +
			time.Duration(c.second)*time.Second)
		last := i == len(days)-1
		times := shown(wall, zone)
		if len(times) == 0 {
			if skip := skipped(wall, zone); last || skip.After(after) {
				return time.Time{}, "", c.missing(wall, skip)
			}
			continue
		}
		at := slices.IndexFunc(times, func(t time.Time) bool { return t.After(after) })
		if at < 0 && !last {
			continue
		}
		return times[max(at, 0)], c.twice(times, max(at, 0)), nil
	}
	return time.Time{}, "", &momentError{"no such time", exampleTimes} // there is always a last day
}

// twice is the message about a reading that comes more than once.
func (c clockReading) twice(times []time.Time, taken int) string {
	if len(times) < 2 {
		return ""
	}
	which, other := "first", times[1]
	if taken > 0 {
		which, other = "second", times[0]
	}
	return fmt.Sprintf("%s comes twice on %s, as the clocks go back; the %s is taken, %s; "+
		"the other is %s", c, times[0].Format(time.DateOnly), which,
		times[taken].Format(time.RFC3339), other.Format(time.RFC3339))
}

// missing names the gap in which a reading lies.
func (c clockReading) missing(wall, skip time.Time) *momentError {
	before := wallOf(skip, offsetAt(skip.Add(-1)))
	clocks := "the clocks here"
	if place := skip.Location(); place != time.Local {
		clocks = "the clocks of " + place.String()
	}
	return &momentError{
		text: fmt.Sprintf("%s does not come on %s: %s go from %s straight to %s",
			c, wall.Format(time.DateOnly), clocks, before.Format(time.TimeOnly), skip.Format(time.TimeOnly)),
		remedy: fmt.Sprintf("choose %s or later, before %s, or give the zone: %s",
			skip.Format(time.TimeOnly), before.Format(time.TimeOnly), skip.Format(time.RFC3339)),
	}
}

func offsetAt(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// wallOf returns what a clock with that offset shows, written as if it were UTC.
func wallOf(t time.Time, offset time.Duration) time.Time { return t.UTC().Add(offset) }

// shown lists the moments at which a clock shows the reading, in order: one as a
// rule, none where the clock skips it, two where it goes back.
func shown(wall time.Time, zone *time.Location) []time.Time {
	var times []time.Time
	for _, edge := range edges(wall, zone) {
		t := wall.Add(-offsetAt(edge)).In(zone)
		if wallOf(t, offsetAt(t)).Equal(wall) && !slices.ContainsFunc(times, t.Equal) {
			times = append(times, t)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// edges are moments with every offset that may be in force around a reading.
func edges(wall time.Time, zone *time.Location) []time.Time {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(),
		wall.Second(), 0, zone)
	all := []time.Time{near}
	start, end := near.ZoneBounds()
	if !start.IsZero() {
		all = append(all, start.Add(-1))
	}
	if !end.IsZero() {
		all = append(all, end)
	}
	return all
}

// skipped is the moment at which the clock skips a reading.
func skipped(wall time.Time, zone *time.Location) time.Time {
	near := edges(wall, zone)[0]
	start, end := near.ZoneBounds()
	for _, change := range []time.Time{start, end} {
		if !change.IsZero() && !wall.Before(wallOf(change, offsetAt(change.Add(-1)))) &&
			wall.Before(wallOf(change, offsetAt(change))) {
			return change
		}
	}
	return near
}
