package play

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
)

// Measured tells how long machines waited for what they wanted, by their journals: each time from
// the step that wanted it to the step that was told. So a message's time holds what its sender
// took to write its facts and what its receiver took to come to it.
//
// Things are slow together: a busy machine is late with all that it does. A simulation therefore
// takes for a message what another one took on the same way at about the same time, and for
// sandboxes and data what the mesh took for others at that time.
type Measured struct {
	streams map[stream][]lag // of messages
	all     []lag            // of them together
	kinds   map[string][]lag // the same by the kind of message, for people
	waits   map[string][]lag // by what was waited for
	strays  int              // messages without a sender
}

// stream is the way of messages from a site to a machine of another one, or of its own.
type stream struct {
	from, to grid.SiteID
	broker   bool
}

// lag is the time that something took which was wanted at a time.
type lag struct{ at, took time.Duration }

// What is waited for besides messages.
const (
	waitStage   = "staging, all was there"
	waitFetch   = "staging, some was fetched"
	waitStart   = "start of a sandbox"
	waitCollect = "fetching of results"
)

// lags gives a simulation what was measured.
func (m Measured) lags(now func() time.Duration) sim.Lags {
	wait := func(what string, chance float64) time.Duration {
		return near(m.waits[what], now(), chance)
	}
	return sim.Lags{
		Message: func(from, to grid.SiteID, msg protocol.Message, chance float64) time.Duration {
			lags := m.streams[stream{from, to, protocol.ForBroker(msg)}]
			if len(lags) == 0 {
				lags = m.all
			}
			return near(lags, now(), chance)
		},
		Start: func(_ grid.SiteID, chance float64) time.Duration { return wait(waitStart, chance) },
		Stage: func(_ grid.SiteID, bytes int64, chance float64) time.Duration {
			if bytes > 0 {
				return wait(waitFetch, chance)
			}
			return wait(waitStage, chance)
		},
		Collect: func(_ grid.SiteID, _ int64, chance float64) time.Duration {
			return wait(waitCollect, chance)
		},
	}
}

// neighbours is among how many lags that were measured at about the same time one is drawn. With
// more of them messages on one way, which keep their order, wait for the slowest of many draws.
const neighbours = 2

// near draws one of the lags that were measured at the nearest times; 0 if there is none. lags are
// in the order of their times.
func near(lags []lag, at time.Duration, chance float64) time.Duration {
	if len(lags) == 0 {
		return 0
	}
	to, _ := slices.BinarySearchFunc(lags, at, func(l lag, at time.Duration) int {
		return cmp.Compare(l.at, at)
	})
	from := to
	for to-from < min(neighbours, len(lags)) {
		if to == len(lags) || from > 0 && at-lags[from-1].at < lags[to].at-at {
			from--
		} else {
			to++
		}
	}
	return lags[from+min(int(chance*float64(to-from)), to-from-1)].took
}

// String is a table for people: how often, the median and the 95th percentile.
func (m Measured) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s %6s %12s %12s\n", "waited for", "times", "median", "95 %")
	line := func(what string, lags []lag) {
		took := make([]float64, len(lags))
		for i, l := range lags {
			took[i] = l.took.Seconds() * 1000
		}
		slices.Sort(took)
		fmt.Fprintf(&b, "%-26s %6d %9.1f ms %9.1f ms\n",
			what, len(took), took[len(took)/2], took[len(took)*95/100])
	}
	for _, of := range []map[string][]lag{m.kinds, m.waits} {
		for _, what := range slices.Sorted(maps.Keys(of)) {
			line(what, of[what])
		}
	}
	return b.String()
}
