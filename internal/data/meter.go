package data

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// What counts as a measurement of a link.
const (
	meterBytes  = 512 << 10 // less than this says more of the delay than of the rate
	meterSpan   = 20 * time.Millisecond
	meterWindow = 10 * time.Second // a long transfer is told in parts
)

// meter times what arrives from each peer while transfers from it are under way.
// The first message of a transfer only starts the clock: how long it took is not
// known. Between the messages of a transfer there is always something asked for,
// so the time until its last one is all the link's.
type meter struct {
	done func(p peer.ID, bps float64) // called without the lock

	mu    sync.Mutex
	flows map[peer.ID]*flow // only of transfers under way, so it is bounded by them
}

// flow counts the bytes that arrive from one peer.
type flow struct {
	transfers int       // under way, that name this peer
	first     time.Time // zero: nothing has arrived yet
	last      time.Time
	bytes     int64 // since first, without the first message
}

// begin says that transfers from these peers start; the result ends them.
func (m *meter) begin(peers []peer.ID) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range peers {
		f := m.flows[p]
		if f == nil {
			f = &flow{}
			m.flows[p] = f
		}
		f.transfers++
	}
	return func() {
		for _, p := range peers {
			m.end(p)
		}
	}
}

func (m *meter) end(p peer.ID) {
	m.mu.Lock()
	f := m.flows[p]
	if f.transfers--; f.transfers > 0 {
		m.mu.Unlock()
		return
	}
	delete(m.flows, p)
	m.mu.Unlock()
	m.tell(p, *f)
}

// arrived notes a message of that many bytes of blocks.
func (m *meter) arrived(p peer.ID, bytes int, now time.Time) {
	m.mu.Lock()
	f := m.flows[p]
	if f == nil || bytes == 0 {
		m.mu.Unlock()
		return
	}
	if f.first.IsZero() {
		f.first, f.last = now, now
		m.mu.Unlock()
		return
	}
	f.bytes += int64(bytes)
	f.last = now
	whole := *f
	full := now.Sub(f.first) >= meterWindow
	if full {
		f.first, f.bytes = now, 0
	}
	m.mu.Unlock()
	if full {
		m.tell(p, whole)
	}
}

func (m *meter) tell(p peer.ID, f flow) {
	if bps, ok := f.rate(); ok {
		m.done(p, bps)
	}
}

// rate returns the measured rate, in bit/s, if enough flowed to tell.
func (f flow) rate() (float64, bool) {
	span := f.last.Sub(f.first)
	if f.bytes < meterBytes || span < meterSpan {
		return 0, false
	}
	return float64(f.bytes) * bitsPerByte / span.Seconds(), true
}
