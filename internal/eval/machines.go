package eval

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// stretch is a time in which a machine was up, in seconds since 1970.
type stretch struct {
	from, to float64
	end      avail.Ending
}

// record is one machine's past: its stretches in order, and when watching it ended.
type record struct {
	ups    []stretch
	closes float64
}

// desktop is a made-up machine in an office, for a number of days: its owner switches it
// on around nine and off around six on working days, and some of the other days; one day
// in ten they stay away. Now and then it crashes and is back within the hour, and on some
// evenings the owner works late.
func desktop(rng *rand.Rand, days int) record {
	const day, monday = 86400.0, 1735516800.0 // Monday, 2024-12-30, 00:00 UTC
	r := record{closes: monday + float64(days)*day}
	habit := rng.NormFloat64() * 1800 // of this owner
	for d := range days {
		weekend := d%7 >= 5
		if weekend || rng.Float64() < 0.1 {
			continue
		}
		on := monday + float64(d)*day + 9*3600 + habit + rng.NormFloat64()*900
		off := monday + float64(d)*day + 18*3600 + habit + rng.NormFloat64()*1500
		if rng.Float64() < 0.1 {
			off += rng.ExpFloat64() * 3600
		}
		off = min(off, monday+float64(d+1)*day)
		for on < off {
			crash := on + rng.ExpFloat64()*60*3600
			if crash >= off {
				r.ups = append(r.ups, stretch{on, off, avail.EndLeft})
				break
			}
			r.ups = append(r.ups, stretch{on, crash, avail.EndCrash})
			on = crash + 300 + rng.Float64()*3300
		}
	}
	return r
}

// eventColumns are those of a line of the Failure Trace Archive's event_trace that count.
const (
	eventColumns = 9
	columnNode   = 4
	columnType   = 5
	columnStart  = 6
	columnStop   = 7
	eventUp      = "1"
)

// readEvents reads an event_trace of the Failure Trace Archive, packed or not: one record
// for each node, in the order of their names. The causes of ends are not told in words
// that a machine could use, so that each counts as a crash.
func readEvents(path string) ([]record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	plain, err := unpack(file)
	if err != nil {
		return nil, fmt.Errorf("read events %s: %w", path, err)
	}
	nodes := make(map[string][]stretch)
	ends := make(map[string]float64)
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		name, up, s, err := parseEvent(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("read events %s: line %d: %w", path, number, err)
		}
		if name == "" {
			continue
		}
		ends[name] = max(ends[name], s.to)
		if up && s.to > s.from {
			nodes[name] = append(nodes[name], s)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read events %s: %w", path, err)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("read events %s: no time up in it: want the archive's event_trace", path)
	}
	return recordsOf(nodes, ends), nil
}

func parseEvent(line string) (name string, up bool, s stretch, err error) {
	if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "event_id") {
		return "", false, s, nil
	}
	fields := strings.Split(line, "\t")
	if len(fields) != eventColumns {
		return "", false, s, fmt.Errorf("want %d columns separated by tabs, have %d",
			eventColumns, len(fields))
	}
	from, errFrom := strconv.ParseFloat(fields[columnStart], 64)
	to, errTo := strconv.ParseFloat(fields[columnStop], 64)
	if err := errors.Join(errFrom, errTo); err != nil {
		return "", false, s, err
	}
	if !(to >= from) || math.IsInf(to-from, 0) {
		return "", false, s, fmt.Errorf("an event from %v to %v", from, to)
	}
	return fields[columnNode], fields[columnType] == eventUp, stretch{from, to, avail.EndCrash}, nil
}

// recordsOf sorts the stretches of each node. Ones that touch or overlap are one: the
// node went on.
func recordsOf(nodes map[string][]stretch, ends map[string]float64) []record {
	names := make([]string, 0, len(nodes))
	for name := range nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	records := make([]record, 0, len(names))
	for _, name := range names {
		r := record{closes: ends[name]}
		slices.SortFunc(nodes[name], func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
		for _, s := range nodes[name] {
			if n := len(r.ups); n > 0 && s.from <= r.ups[n-1].to {
				r.ups[n-1].to = max(r.ups[n-1].to, s.to)
				continue
			}
			r.ups = append(r.ups, s)
		}
		if last := &r.ups[len(r.ups)-1]; last.to >= r.closes {
			last.end = avail.EndOpen // watching ended, not the machine
		}
		records = append(records, r)
	}
	return records
}
