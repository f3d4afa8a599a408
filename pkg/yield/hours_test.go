package yield

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestHours(t *testing.T) {
	at := func(day, clock string) time.Time {
		when, err := time.Parse("Mon 2006-01-02 15:04", day+" "+clock)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	const mon, fri, sat, sun = "Mon 2026-03-02", "Fri 2026-03-06", "Sat 2026-03-07", "Sun 2026-03-08"
	tests := []struct {
		hours      string
		day, clock string
		want       bool
	}{
		{"", mon, "12:00", true},
		{"18:00-08:00", mon, "12:00", false},
		{"18:00-08:00", mon, "18:00", true},
		{"18:00-08:00", mon, "07:59", true},
		{"18:00-08:00", mon, "08:00", false},
		{"mon-fri 18:00-08:00", sat, "07:59", true}, // Friday's night
		{"mon-fri 18:00-08:00", sat, "18:00", false},
		{"mon-fri 18:00-08:00", mon, "07:00", false}, // Sunday's
		{"mon-fri 18:00-08:00, sat-sun 00:00-24:00", sun, "23:59", true},
		{"fri-mon 10:00-11:00", sun, "10:30", true},
		{"fri-mon 10:00-11:00", fri, "10:30", true},
		{"SAT 00:00-24:00", sat, "00:00", true},
		{"sat 00:00-24:00", sun, "00:00", false},
		{"mon 08:00-18:00 25%", mon, "12:00", true},
		{"08:00-18:00 1%", mon, "18:00", false},
	}
	for _, tt := range tests {
		h, err := ParseHours(tt.hours)
		if err != nil {
			t.Errorf("%q: %v", tt.hours, err)
			continue
		}
		if got := h.Open(at(tt.day, tt.clock)); got != tt.want {
			t.Errorf("%q at %s %s: %t, want %t", tt.hours, tt.day, tt.clock, got, tt.want)
		}
	}
	for _, bad := range []string{
		"x", "mon", "mon 18:00", "mon-fry 18:00-08:00", "mon 25:00-08:00",
		"mon 08:00-18:00 0%", "mon 08:00-18:00 101%", "mon 08:00-18:00 x%", "25%", " 25%",
		"mon 18:60-20:00", "mon 08:00-08:00", "mon 24:00-08:00",
		",", "mon-fri  ", strings.Repeat("mon 10:00-11:00,", 40) + "mon 10:00-11:00",
	} {
		if h, err := ParseHours(bad); err == nil && bad != "" {
			t.Errorf("%q is read as %+v", bad, h)
		}
	}
}

// The dumb twin marks every minute of the week.
func TestHoursTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var marked [7 * day]int // percent
		var parts []string
		for range rapid.IntRange(1, 4).Draw(t, "windows") {
			first, last := rapid.IntRange(0, 6).Draw(t, "first"), rapid.IntRange(0, 6).Draw(t, "last")
			from, long := rapid.IntRange(0, day-1).Draw(t, "from"), rapid.IntRange(1, day-1).Draw(t, "long")
			to := (from + long) % day
			if to == 0 {
				to = day
			}
			percent := rapid.IntRange(1, 100).Draw(t, "percent")
			parts = append(parts, fmt.Sprintf("%s-%s %02d:%02d-%02d:%02d %d%%",
				dayNames[first], dayNames[last], from/60, from%60, to/60, to%60, percent))
			for d := first; ; d = (d + 1) % 7 {
				for m := range long {
					at := (d*day + from + m) % (7 * day)
					marked[at] = max(marked[at], percent)
				}
				if d == last {
					break
				}
			}
		}
		h, err := ParseHours(strings.Join(parts, ", "))
		if err != nil {
			t.Fatal(err)
		}
		sunday := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		for range 50 {
			m := rapid.IntRange(0, 7*day-1).Draw(t, "minute")
			at := sunday.Add(time.Duration(m) * time.Minute)
			if got := h.Share(at); got != marked[m] || h.Open(at) != (got > 0) {
				t.Fatalf("%s: minute %d of the week: %d %%, want %d", h, m, got, marked[m])
			}
			next := m
			for range 7 * day {
				if next = (next + 1) % (7 * day); marked[next] != marked[m] {
					break
				}
			}
			var want time.Time
			if marked[next] != marked[m] {
				want = at.Add(time.Duration((next-m+7*day)%(7*day)) * time.Minute)
			}
			if got := h.ShareUntil(at); !got.Equal(want) {
				t.Fatalf("%s: from %s until %s, want %s", h, at, got, want)
			}
		}
	})
}

func FuzzParseHours(f *testing.F) {
	f.Add("mon-fri 18:00-08:00, sat-sun 00:00-24:00")
	f.Add("18:00-08:00")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHours(text)
		if err != nil {
			return
		}
		again, err := ParseHours(h.String())
		if err != nil || again.Always() != h.Always() {
			t.Errorf("%q is read back as %q: %v", text, again, err)
		}
		h.Open(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	})
}

// Closed lists exactly what Open denies, minute by minute.
func TestClosedIsWhatIsNotOpen(t *testing.T) {
	for _, text := range []string{
		"", "18:00-08:00", "mon-fri 18:00-08:00, sat-sun 00:00-24:00", "wed 10:00-11:00", "00:00-24:00",
	} {
		h, err := ParseHours(text)
		if err != nil {
			t.Fatal(err)
		}
		spans := h.Closed()
		for i, s := range spans {
			if s.From >= s.To || s.To > 7*24*time.Hour || i > 0 && spans[i-1].To >= s.From {
				t.Errorf("%q: spans %v", text, spans)
			}
		}
		monday := time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)
		for m := time.Duration(0); m < 7*24*time.Hour; m += time.Minute {
			closed := false
			for _, s := range spans {
				closed = closed || m >= s.From && m < s.To
			}
			if closed == h.Open(monday.Add(m)) {
				t.Fatalf("%q at %s: closed %v, and open alike", text, m, closed)
			}
		}
	}
}

// The end of the hours is the first minute after a time, within a week, at which they are over.
func TestWhenTheHoursEnd(t *testing.T) {
	begin := time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC) // a Monday
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{
			"", "18:00-08:00", "mon-fri 18:00-08:00, sat-sun 00:00-24:00", "sun 23:59-00:01",
			"mon 00:00-24:00, tue 00:00-12:00", "sun-sat 00:00-24:00", "wed 07:30-07:31",
		}).Draw(t, "hours")
		h, err := ParseHours(text)
		if err != nil {
			t.Fatal(err)
		}
		at := begin.Add(time.Duration(rapid.IntRange(0, 14*day*60).Draw(t, "second")) * time.Second)
		var want time.Time
		for m := at.Truncate(time.Minute).Add(time.Minute); h.Open(at) && want.IsZero(); {
			if m.Sub(at) > 8*24*time.Hour {
				break
			}
			if !h.Open(m) {
				want = m
			}
			m = m.Add(time.Minute)
		}
		if got := h.Ends(at); !got.Equal(want) {
			t.Fatalf("%q at %s ends %s, want %s", text, at, got, want)
		}
	})
}
