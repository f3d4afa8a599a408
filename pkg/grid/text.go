package grid

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// sizeUnits are the units a size may be written with, longest suffix first so
// that "MiB" is not taken for "B".
var sizeUnits = []struct { //nolint:gochecknoglobals // a constant table
	suffix string
	factor float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"PiB", 1 << 50},
	{"kB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// rateUnits are the units of a rate, longest suffix first.
var rateUnits = []struct { //nolint:gochecknoglobals // a constant table
	suffix string
	factor float64
}{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}}

// ParseBytes reads a size with its unit, "512MiB" or "1.5 GB". A number without a unit is
// refused: its meaning is unclear.
func ParseBytes(text string) (int64, error) {
	trimmed := strings.TrimSpace(text)
	for _, unit := range sizeUnits {
		number, found := strings.CutSuffix(trimmed, unit.suffix)
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(value >= 0) || value*unit.factor > maxBytes {
			return 0, invalidf("size %q: want a number from 0 to 8PiB with a unit, such as 512MiB", text)
		}
		return int64(math.Round(value * unit.factor)), nil
	}
	return 0, invalidf(
		"size %q: want a number with a unit (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB), such as 512MiB",
		text,
	)
}

// ParseRate reads a link's rate with its unit, "20Mbit/s", in bit/s.
func ParseRate(text string) (int64, error) {
	trimmed := strings.TrimSpace(text)
	for _, unit := range rateUnits {
		number, found := strings.CutSuffix(trimmed, unit.suffix)
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(value >= 0) || value*unit.factor > maxBytes {
			break
		}
		return int64(math.Round(value * unit.factor)), nil
	}
	return 0, invalidf(
		"rate %q: want a number with a unit (bit/s, kbit/s, Mbit/s, Gbit/s), such as 20Mbit/s", text,
	)
}

// ParseSpan reads a duration with its units, "90s", "1h30m" or "2d". Days may
// stand in front of the rest and count 24 hours.
func ParseSpan(text string) (time.Duration, error) {
	trimmed := strings.TrimSpace(text)
	wrong := invalidf("duration %q: want a number with a unit (ms, s, m, h, d), such as 10m", text)
	var days time.Duration
	if number, rest, found := strings.Cut(trimmed, "d"); found {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return 0, wrong
		}
		days, trimmed = time.Duration(n)*24*time.Hour, rest
		if rest == "" {
			return days, nil
		}
	}
	span, err := time.ParseDuration(trimmed)
	if err != nil || span < 0 || span > math.MaxInt64-days {
		return 0, wrong
	}
	return days + span, nil
}

// NearestWord is the known word with the fewest typing mistakes against the
// given one, or "" when none is near: more than a third of the letters would
// have to change.
func NearestWord(word string, known []string) string {
	best, bestCost := "", max(len(word)/3, 1)+1
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		cost := typingMistakes(strings.ToLower(word), strings.ToLower(candidate))
		if cost < bestCost {
			best, bestCost = candidate, cost
		}
	}
	return best
}

// typingMistakes is the edit distance: letters added, left out or changed, or two
// neighbours swapped.
func typingMistakes(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// Plain makes of a text that somebody else has written one line that steers no terminal: "?" stands
// for each control character, line breaks included, for what turns the direction of writing, and
// for bytes that are no UTF-8. It never becomes longer.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
