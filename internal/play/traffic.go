package play

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// traffic pairs the messages that were sent with those that arrived.
type traffic struct {
	sentAt  map[letter][]time.Duration // of equal ones in their order
	arrived []arrival
}

// letter is a message from one site to another.
type letter struct {
	from, to grid.SiteID
	text     string // as on the wire
}

type arrival struct {
	letter

	broker bool // at the submitter's machine
	kind   string
	at     time.Duration
}

func newTraffic() traffic { return traffic{sentAt: make(map[letter][]time.Duration)} }

func newLetter(from, to grid.SiteID, msg protocol.Message) letter {
	text, err := protocol.Encode(msg)
	if err != nil { // it cannot leave its site
		text = fmt.Append(nil, msg)
	}
	return letter{from, to, string(text)}
}

func (t *traffic) sent(from, to grid.SiteID, msg protocol.Message, at time.Duration) {
	l := newLetter(from, to, msg)
	t.sentAt[l] = append(t.sentAt[l], at)
}

func (t *traffic) received(from grid.SiteID, by watched, msg protocol.Message, at time.Duration) {
	l := newLetter(from, by.site, msg)
	t.arrived = append(t.arrived, arrival{l, by.broker, kindOf(msg), at})
}

// journey is a message of which both ends are known.
type journey struct {
	stream
	lag

	kind string
}

// journeys pairs what arrived with what was sent, and counts what nobody has sent.
func (t *traffic) journeys() (all []journey, strays int) {
	slices.SortStableFunc(t.arrived, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	for _, a := range t.arrived {
		sent := t.sentAt[a.letter]
		if len(sent) == 0 {
			strays++
			continue
		}
		t.sentAt[a.letter] = sent[1:]
		all = append(all, journey{
			stream{a.from, a.to, a.broker}, lag{sent[0], a.at - sent[0]}, a.kind,
		})
	}
	return all, strays
}

// measure works out how long what was wanted took.
func measure(t traffic, w waits) Measured {
	m := Measured{streams: make(map[stream][]lag), kinds: make(map[string][]lag), waits: w.took}
	journeys, strays := t.journeys()
	m.strays = strays
	for _, j := range journeys {
		m.streams[j.stream] = append(m.streams[j.stream], j.lag)
		m.kinds[j.kind] = append(m.kinds[j.kind], j.lag)
		m.all = append(m.all, j.lag)
	}
	inOrder := func(lags []lag) {
		slices.SortStableFunc(lags, func(a, b lag) int { return cmp.Compare(a.at, b.at) })
	}
	inOrder(m.all)
	for _, lags := range m.streams {
		inOrder(lags)
	}
	for _, lags := range m.waits {
		inOrder(lags)
	}
	return m
}

// waits pairs effects of a site's machines with their answers.
type waits struct {
	since map[grid.AttemptID]time.Duration
	took  map[string][]lag
}

func newWaits() waits {
	return waits{since: make(map[grid.AttemptID]time.Duration), took: make(map[string][]lag)}
}

func (w *waits) begin(id grid.AttemptID, at time.Duration) { w.since[id] = at }

// over ends what an attempt waited for. An answer to nothing is none.
func (w *waits) over(what string, id grid.AttemptID, at time.Duration) {
	if since, waited := w.since[id]; waited {
		delete(w.since, id)
		w.took[what] = append(w.took[what], lag{since, at - since})
	}
}
