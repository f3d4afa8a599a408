package sim

import (
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Sharing says what transfers do that are on the way from one site to another at the same time.
type Sharing uint8

// The ways of sharing.
const (
	SharingNone  Sharing = iota // each is as fast as if it were alone
	SharingFair                 // all have equal parts of the rate
	SharingTurns                // one at a time, in the order in which they were begun
)

// way is the way from one site to another, with data on it.
type way struct {
	bps       float64
	sharing   Sharing
	transfers []*transfer // in the order in which they were begun
	since     time.Duration
	planned   int // number of the event at which the next one ends
}

// transfer is data on its way.
type transfer struct {
	bits float64 // still to come
	done func()
}

// transfer moves data from a site to a host, and does something when they have come, unless the
// host crashes before. The time of one message is added.
func (h *host) transfer(bytes int64, from grid.SiteID, do func()) {
	w := h.world
	come := h.alive(do)
	delay := w.delay()
	if w.cfg.Network.Sharing == SharingNone || bytes <= 0 || from == h.spec.ID {
		seconds := float64(bytes) * 8 / h.bpsFrom(from)
		w.put(delay+time.Duration(seconds*float64(time.Second)), come)
		return
	}
	key := link{from, h.spec.ID}
	l := w.ways[key]
	if l == nil {
		l = &way{bps: h.bpsFrom(from), sharing: w.cfg.Network.Sharing}
		w.ways[key] = l
	}
	l.advance(w.elapsed)
	l.transfers = append(l.transfers, &transfer{
		bits: float64(bytes) * 8, done: func() { w.put(delay, come) },
	})
	w.planWay(l)
}

// bring moves what is missing of some inputs to a host, and does something when all have come. On
// ways that are shared each is moved once, however many attempts want it, and stays when nobody
// does any more.
func (h *host) bring(need []grid.Input, missing int64, from grid.SiteID, do func()) {
	if h.world.cfg.Network.Sharing == SharingNone {
		h.transfer(missing, from, do)
		return
	}
	left := 1
	one := func() {
		if left--; left == 0 {
			do()
		}
	}
	for _, in := range need {
		if _, has := h.disk.held[in.CID]; has {
			continue
		}
		left++
		waiters, coming := h.coming[in.CID]
		h.coming[in.CID] = append(waiters, one)
		if !coming {
			h.transfer(in.Bytes, from, func() { h.arrived(in, from) })
		}
	}
	h.after(0, one)
}

// arrived tells all who wait for an input. They look themselves whether there was a problem.
func (h *host) arrived(in grid.Input, from grid.SiteID) {
	waiters := h.coming[in.CID]
	delete(h.coming, in.CID)
	if h.stagingProblem(in.Bytes, from) == "" {
		h.step(roleSite, step.HeldChanged{Added: h.keep([]grid.Input{in})})
	}
	for _, one := range waiters {
		one()
	}
}

// bpsFrom is the rate at which data come from a site that nobody else uses.
func (h *host) bpsFrom(from grid.SiteID) float64 {
	other, known := h.world.hosts[from]
	if rates := h.world.cfg.Network.Rates; rates != nil && known {
		return rates[other.place][h.place]
	}
	bps := int64(diskBps)
	if known && other != h {
		for _, rate := range []int64{h.spec.Capability.DownBps, other.spec.Capability.UpBps} {
			if rate > 0 {
				bps = min(bps, rate)
			}
		}
	}
	return float64(bps)
}

// inSeconds is a number of seconds as a duration, bounded by forever.
func inSeconds(s float64) time.Duration {
	return time.Duration(math.Ceil(min(s, forever.Seconds()) * float64(time.Second)))
}

// moving counts the transfers that move: the first ones of the way.
func (l *way) moving() int {
	if l.sharing == SharingTurns {
		return min(len(l.transfers), 1)
	}
	return len(l.transfers)
}

// advance lets the bits of the time since the last change pass.
func (l *way) advance(now time.Duration) {
	n := l.moving()
	passed := l.bps * (now - l.since).Seconds() / float64(max(n, 1))
	l.since = now
	for _, t := range l.transfers[:n] {
		t.bits -= passed
	}
}

// planWay plans for the end of the transfer on a way that ends next.
func (w *World) planWay(l *way) {
	l.planned++
	n := l.moving()
	if n == 0 {
		return
	}
	least := math.Inf(1)
	for _, t := range l.transfers[:n] {
		least = min(least, t.bits)
	}
	number := l.planned
	w.schedule(inSeconds(max(least, 0)*float64(n)/l.bps), func() {
		if l.planned == number {
			w.endTransfers(l)
		}
	})
}

// endTransfers ends what has come on a way. What is less than a bit has come: a time is rounded
// up to a whole nanosecond.
func (w *World) endTransfers(l *way) {
	l.advance(w.elapsed)
	moving, rest := l.moving(), l.transfers[:0:0]
	var ended []*transfer
	for i, t := range l.transfers {
		if i < moving && t.bits < 1 {
			ended = append(ended, t)
		} else {
			rest = append(rest, t)
		}
	}
	l.transfers = rest
	w.planWay(l)
	for _, t := range ended {
		t.done()
	}
}
