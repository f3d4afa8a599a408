package eval

import (
	"fmt"
	"math/rand/v2"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
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

// recordsOf are the pasts of the nodes that were ever up. The causes of ends are not told in
// words that a machine could use, so that each counts as a crash.
func recordsOf(nodes []workload.Node) []record {
	var records []record
	for _, node := range nodes {
		r := record{closes: node.Until}
		for _, s := range node.Spells {
			if s.Up {
				r.ups = append(r.ups, stretch{s.From, s.To, avail.EndCrash})
			}
		}
		if len(r.ups) == 0 {
			continue
		}
		if last := &r.ups[len(r.ups)-1]; last.to >= r.closes {
			last.end = avail.EndOpen // watching ended, not the machine
		}
		records = append(records, r)
	}
	return records
}

// readRecords reads them from an event_trace of the Failure Trace Archive.
func readRecords(path string) ([]record, error) {
	nodes, err := readEvents(path)
	if err != nil {
		return nil, err
	}
	records := recordsOf(nodes)
	if len(records) == 0 {
		return nil, fmt.Errorf("read events %s: no time up in it: want the archive's event_trace", path)
	}
	return records, nil
}
