package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// unit is a suffix and what it multiplies by.
type unit struct {
	suffix string
	factor float64
}

func byteUnits() []unit {
	return []unit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

func rateUnits() []unit { return []unit{{"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}} }

// longest bounds every time in a scenario.
const longest = 366 * 24 * time.Hour

// duration takes a time such as 95s; a negative one only where negative says so.
func (l *line) duration(key string, fallback time.Duration, negative bool) time.Duration {
	value, has := l.text(key)
	if !has {
		return fallback
	}
	d, err := time.ParseDuration(value)
	if err != nil || d > longest || d < -longest || d < 0 && !negative {
		l.fail(key, value, "a time of at most 366 days such as 1s, 2m or 1h30m",
			"write a number with its unit")
		return fallback
	}
	return d
}

// lasting is a duration above 0.
func (l *line) lasting(key string, fallback time.Duration) time.Duration {
	d := l.duration(key, fallback, false)
	if d == 0 && fallback > 0 {
		l.fail(key, "0s", "a time above 0", "")
	}
	return d
}

// whole takes a whole number from low to high; without the key it is 1.
func (l *line) whole(key string, low, high int64) int64 {
	value, has := l.text(key)
	if !has {
		return 1
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < low || n > high {
		l.fail(key,
			value, "a whole number from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10), "")
		return 1
	}
	return n
}

// probability takes a number from 0 to below 1.
func (l *line) probability(key string) float64 {
	value, has := l.text(key)
	if !has {
		return 0
	}
	p, err := strconv.ParseFloat(value, 64)
	if err != nil || !(p >= 0 && p < 1) {
		l.fail(key, value, "a probability from 0 to below 1 such as .1", "")
		return 0
	}
	return p
}

// real takes a number from low to high.
func (l *line) real(key string, fallback, low, high float64) float64 {
	value, has := l.text(key)
	if !has {
		return fallback
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n >= low && n <= high) {
		l.fail(key, value, fmt.Sprintf("a number from %v to %v", low, high), "")
		return fallback
	}
	return n
}

// spread is a value that grows evenly over the sites of a line.
type spread struct{ from, to float64 }

// at is the value of site i of n.
func (s spread) at(i, n int) float64 {
	if n < 2 {
		return s.from
	}
	return s.from + (s.to-s.from)*float64(i)/float64(n-1)
}

// spread takes a number or a range of numbers, with one of the units if there
// are any.
func (l *line) spread(key string, fallback float64, units []unit) spread {
	value, has := l.text(key)
	if !has {
		return spread{fallback, fallback}
	}
	low, high, isRange := strings.Cut(value, "..")
	if !isRange {
		high = low
	}
	from, ok1 := parseAmount(low, units)
	to, ok2 := parseAmount(high, units)
	if !ok1 || !ok2 {
		l.fail(key, value, "a number or a range a..b"+unitNames(units), "")
		return spread{fallback, fallback}
	}
	return spread{from, to}
}

// amount takes one number with its unit.
func (l *line) amount(key string, fallback float64, units []unit) int64 {
	value, has := l.text(key)
	if !has {
		return int64(fallback)
	}
	n, ok := parseAmount(value, units)
	if !ok {
		l.fail(key, value, "a number"+unitNames(units), "")
		return int64(fallback)
	}
	return int64(math.Round(n))
}

// greatest bounds every amount: 2^50 of anything.
const greatest = 1 << 50

func parseAmount(text string, units []unit) (float64, bool) {
	factor := 1.0
	if len(units) > 0 {
		found := false
		for _, u := range units {
			if number, is := strings.CutSuffix(text, u.suffix); is {
				text, factor, found = number, u.factor, true
				break
			}
		}
		if !found {
			return 0, false
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	n *= factor
	return n, err == nil && n >= 0 && n <= greatest
}

func unitNames(units []unit) string {
	if len(units) == 0 {
		return ""
	}
	names := make([]string, 0, len(units))
	for _, u := range units {
		names = append(names, u.suffix)
	}
	return " with its unit: " + strings.Join(names, ", ")
}
