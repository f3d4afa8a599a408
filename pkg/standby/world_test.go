package standby

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// A world of groups for tests: raft as it is, members and sites as hosts with clocks of their
// own, a network, and an oracle that looks on in true time. Equal seeds give equal runs.

// world is one run.
type world struct {
	now    time.Duration // true time
	rng    *rand.Rand
	events events
	serial uint64

	hosts   []*host
	members []*member
	sites   []*site
	user    *user
	cut     map[[2]*host]bool // one way
	loss    float64           // of a message
	delay   [2]time.Duration  // of a message, from and to
	disk    [2]time.Duration  // of a Save with Sync, the same
	drops   func(from, to *host, payload any) bool
	lags    func(from, to *host, payload any) time.Duration

	cfg    Config   // of every member, but for its ID and seed
	jobs   jobRules // of the machine
	rests  bool     // drivers tell members when their machine is idle
	off    worldOff
	oracle oracle
	trace  uint64 // a hash of all that happened
	tell   func(format string, args ...any)
}

// worldOff are the safeguards of a driver and of a site. A test that takes one out has to find
// the double run.
type worldOff struct {
	freshNow bool // rule 9: now was read before the inputs of a suspend were taken
	oneSave  bool // rule 1: the table and Applied are written apart
	newID    bool // rule 12: a lost disk is founded again under the old ID
	fromAsk  bool // a site counts its lease from the answer, not from its request
}

const (
	testLease  = 3 * time.Second
	testMargin = 500 * time.Millisecond // rule 6: at least 10.6 % of the lease for 5 % of drift
)

// newWorld has members of one group, and sites. Clocks are right until drift sets them off.
func newWorld(seed uint64, members, sites int) *world {
	w := &world{
		rng: workload.Stream(seed, "standby/world"), cut: map[[2]*host]bool{},
		delay: [2]time.Duration{time.Millisecond, 8 * time.Millisecond},
		disk:  [2]time.Duration{100 * time.Microsecond, 3 * time.Millisecond}, cfg: Default(1),
		jobs: jobRules{lease: testLease, margin: testMargin, sites: sites, seed: seed},
	}
	w.oracle.world = w
	var ids []MemberID
	for i := range members {
		ids = append(ids, MemberID(i+1))
	}
	for _, id := range ids {
		w.members = append(w.members, newMember(w, id, seed, ids...))
	}
	for i := range sites {
		w.sites = append(w.sites, newSite(w, i))
	}
	w.user = newUser(w)
	return w
}

// begin starts all hosts. What a test changes in the world it changes before.
func (w *world) begin() {
	for _, m := range w.members {
		m.start()
	}
	w.user.begin()
}

// event is something that happens at a time; of those at one time the first that was planned.
type event struct {
	at     time.Duration
	serial uint64
	do     func()
}

type events []event

func (e *events) Len() int { return len(*e) }
func (e *events) Less(i, j int) bool {
	a, b := (*e)[i], (*e)[j]
	return a.at < b.at || a.at == b.at && a.serial < b.serial
}
func (e *events) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *events) Push(x any)    { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// after plans something.
func (w *world) after(d time.Duration, do func()) {
	w.serial++
	heap.Push(&w.events, event{at: w.now + max(0, d), serial: w.serial, do: do})
}

// run lets time pass.
func (w *world) run(d time.Duration) { w.runUntil(d, func() bool { return false }) }

// runUntil lets time pass until something holds, and reports whether it does.
func (w *world) runUntil(d time.Duration, holds func() bool) bool {
	end := w.now + d
	for len(w.events) > 0 && w.events[0].at <= end {
		if holds() {
			return true
		}
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	if holds() {
		return true
	}
	w.now = end
	return false
}

// note takes something that happened into the trace.
func (w *world) note(format string, args ...any) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d ", w.trace, w.now)
	fmt.Fprintf(h, format, args...)
	w.trace = h.Sum64()
	if w.tell != nil {
		w.tell("%s: "+format, append([]any{w.now}, args...)...)
	}
}

// between draws a duration.
func (w *world) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rng.Int64N(int64(high-low)+1))
}

// host is a machine of the world: a clock, a queue of inputs, and whether it is up.
type host struct {
	world *world
	name  string
	rate  float64       // of its clock: 1 is right
	shift time.Duration // of its clock
	up    bool
	life  int // how often it was started; what an earlier life has planned is void

	suspended bool
	queue     []func(now time.Time) // inputs that came while it was suspended
	stuck     bool                  // messages do not leave
	outbox    []func()
	stale     time.Time // a time that was read before a suspend; zero: none
}

func newHost(w *world, name string) *host {
	h := &host{world: w, name: name, rate: 1, shift: time.Hour}
	w.hosts = append(w.hosts, h)
	return h
}

// clock is the host's time. It counts suspends, as a boot clock does.
func (h *host) clock() time.Time {
	return time.Unix(0, 0).UTC().Add(h.shift + time.Duration(float64(h.world.now)*h.rate))
}

// drift sets a clock off without moving it.
func (h *host) drift(rate float64) {
	h.shift += time.Duration(float64(h.world.now) * (h.rate - rate))
	h.rate = rate
}

// input gives the host something to do: now, or when it is no longer suspended.
func (h *host) input(do func(now time.Time)) {
	if h.suspended {
		h.queue = append(h.queue, do)
		return
	}
	now := h.clock()
	if h.world.off.freshNow && !h.stale.IsZero() {
		now = h.stale
	}
	do(now)
}

// at plans an input at a time of the host's clock. It is void if the host is started anew.
func (h *host) at(when time.Time, do func(now time.Time)) {
	d := time.Duration(float64(when.Sub(h.clock()))/h.rate) + 1
	life := h.life
	h.world.after(d, func() {
		if h.up && h.life == life {
			h.input(func(now time.Time) {
				if h.life == life {
					do(now)
				}
			})
		}
	})
}

// suspend stops a host for a while. What arrives meanwhile waits in its queue.
func (h *host) suspend(d time.Duration) {
	if h.suspended || !h.up {
		return
	}
	h.world.note("%s is suspended", h.name)
	h.suspended, h.stale = true, h.clock()
	life := h.life
	h.world.after(d, func() {
		if h.life == life {
			h.resume()
		}
	})
}

func (h *host) resume() {
	if !h.suspended {
		return
	}
	h.world.note("%s goes on", h.name)
	h.suspended = false
	queue := h.queue
	h.queue = nil
	life := h.life
	for _, do := range queue {
		if h.life == life && h.up {
			h.input(do)
		}
	}
	h.stale = time.Time{}
}

// unstick lets messages leave that were held up in the host.
func (h *host) unstick() {
	h.stuck = false
	for _, leave := range h.outbox {
		leave()
	}
	h.outbox = nil
}

// stop ends a host's processes; what waits in its queues is lost.
func (h *host) stop() {
	h.world.note("%s stops", h.name)
	h.up, h.suspended, h.stuck, h.queue, h.outbox = false, false, false, nil, nil
	h.life++
}

// send brings a payload to another host, perhaps.
func (w *world) send(from, to *host, payload any, arrive func(now time.Time)) {
	leave := func() {
		if w.cut[[2]*host{from, to}] || w.loss > 0 && w.rng.Float64() < w.loss ||
			w.drops != nil && w.drops(from, to, payload) {
			return
		}
		d := w.between(w.delay[0], w.delay[1])
		if w.lags != nil {
			d += w.lags(from, to, payload)
		}
		w.after(d, func() {
			if to.up {
				to.input(arrive)
			}
		})
	}
	if from.stuck {
		from.outbox = append(from.outbox, leave)
		return
	}
	leave()
}

// part cuts, or joins, one way between hosts.
func (w *world) part(from, to *host, cut bool) { w.cut[[2]*host{from, to}] = cut }

// isolate cuts, or joins, a member and all other members, both ways.
func (w *world) isolate(m *member, cut bool) {
	for _, other := range w.members {
		if other != m {
			w.part(m.host, other.host, cut)
			w.part(other.host, m.host, cut)
		}
	}
}
