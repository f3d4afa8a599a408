package sbatch

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// errTooLong is a time that no number of seconds here can say.
var errTooLong = errors.New("is longer than a year")

// limit reads minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes or
// days-hours:minutes:seconds. 0 is none.
func limit(text string) (time.Duration, error) {
	if text == "UNLIMITED" || text == "INFINITE" || text == "0" {
		return 0, nil
	}
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, clock = "0", text
	}
	parts := strings.Split(clock, ":")
	units := map[int][]time.Duration{
		1: {time.Minute}, 2: {time.Minute, time.Second}, 3: {time.Hour, time.Minute, time.Second},
	}[len(parts)]
	if hasDays {
		all := []time.Duration{time.Hour, time.Minute, time.Second}
		units = all[:min(len(parts), len(all))]
	}
	if len(units) != len(parts) {
		return 0, fmt.Errorf("want minutes, h:mm:ss or days-hours, have %q", text)
	}
	sum := time.Duration(0)
	for i, part := range append(parts, days) {
		n, err := strconv.ParseUint(part, 10, 24)
		if err != nil {
			return 0, fmt.Errorf("want minutes, h:mm:ss or days-hours, have %q", text)
		}
		unit := 24 * time.Hour
		if i < len(units) {
			unit = units[i]
		}
		if time.Duration(n) > grid.MaxRuntime/unit {
			return 0, errTooLong
		}
		sum += time.Duration(n) * unit
	}
	if sum > grid.MaxRuntime {
		return 0, errTooLong
	}
	return sum, nil
}

const mebibyteBits = 20

// mebibytes reads a size; a plain number is in MiB.
func mebibytes(text string) (int64, error) {
	units := map[string]int64{"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
	digits := strings.TrimRight(strings.ToUpper(text), "KMGTB")
	unit, known := units[strings.TrimSuffix(strings.ToUpper(text)[len(digits):], "B")]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !known || n < 1 {
		return 0, fmt.Errorf("want a size such as 4G, have %q", text)
	}
	return n * unit, nil
}

// maxArrayIndex bounds the indexes of an array, as Slurm does.
const maxArrayIndex = 4_000_000

// indexes reads a list such as 0-9%2, 1,3,5 or 0-30:10. The second result counts those that
// Slurm would run at a time; 0: that is not said.
func indexes(text string) (list []uint64, atATime uint64, err error) {
	bad := fmt.Errorf("want indexes such as 0-9, 1,3,5 or 0-30:10, have %q", text)
	ranges, most, limited := strings.Cut(text, "%")
	if limited {
		if atATime, err = strconv.ParseUint(most, 10, 32); err != nil || atATime < 1 {
			return nil, 0, bad
		}
	}
	for one := range strings.SplitSeq(ranges, ",") {
		first, last, step, ok := span(one)
		if !ok {
			return nil, 0, bad
		}
		if last > maxArrayIndex || uint64(len(list))+(last-first)/step >= grid.MaxTasks {
			return nil, 0, fmt.Errorf("want at most %d tasks with indexes up to %d", grid.MaxTasks,
				maxArrayIndex)
		}
		for i := first; i <= last; i += step {
			list = append(list, i)
		}
	}
	return list, atATime, nil
}

// stepOf is the step of a valid list as Slurm tells it: the first that is written, else 1.
func stepOf(text string) string {
	_, step, found := strings.Cut(text, ":")
	if !found {
		return "1"
	}
	if end := strings.IndexAny(step, ",%"); end >= 0 {
		step = step[:end]
	}
	return step
}

// span reads 3, 3-9 or 3-9:2.
func span(text string) (first, last, step uint64, ok bool) {
	ends, every, stepped := strings.Cut(text, ":")
	from, to, isRange := strings.Cut(ends, "-")
	if !isRange {
		to = from
	}
	if !stepped {
		every = "1"
	}
	first, errFirst := strconv.ParseUint(from, 10, 32)
	last, errLast := strconv.ParseUint(to, 10, 32)
	step, errStep := strconv.ParseUint(every, 10, 32)
	ok = errors.Join(errFirst, errLast, errStep) == nil && step > 0 && last >= first &&
		(isRange || !stepped)
	return first, last, step, ok
}

// dependency reads afterok:ID:ID,afterok:ID.
func dependency(text string) ([]string, error) {
	var ids []string
	for one := range strings.SplitSeq(text, ",") {
		words := strings.Split(one, ":")
		if words[0] != "afterok" || len(words) < 2 {
			return nil, fmt.Errorf("want afterok:ID, have %q; a mesh starts a job after others "+
				"only if they end well", one)
		}
		ids = append(ids, words[1:]...)
	}
	return ids, nil
}

// moment reads a time of sbatch as a job file has it; empty: now.
func moment(text string) string {
	if text == "now" {
		return ""
	}
	later := regexp.MustCompile(`^now\+(\d{1,9})(|seconds?|minutes?|hours?|days?|weeks?)$`)
	found := later.FindStringSubmatch(text)
	if found == nil {
		return text // a job file reads the others, or says what is wrong
	}
	n, _ := strconv.Atoi(found[1]) // nine digits
	unit := "s"
	switch {
	case found[2] == "":
	case found[2][0] == 'w':
		n, unit = 7*n, "d"
	default:
		unit = found[2][:1]
	}
	return fmt.Sprintf("+%d%s", n, unit)
}
