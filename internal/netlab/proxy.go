package netlab

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Impairment says what happens to each packet that passes the switch. The zero
// value is a perfect network.
type Impairment struct {
	Latency   time.Duration // one way
	Jitter    time.Duration // added, uniform from 0 to this; packets of one way keep their order
	Loss      float64       // probability of being lost
	Duplicate float64       // probability of arriving twice
	// probability of being overtaken by what comes in the next Latency + Jitter
	Reorder float64
}

// passed counts what the switch did to packets since the first Impair.
type passed struct {
	Packets, Lost, Duplicated, Reordered int64
	Overflow                             int64 // lost because too much was on its way
}

const (
	tunName      = "delay0"
	tunTable     = "100"
	packetBytes  = 2048     // more than an interface's MTU
	onTheWayMost = 64 << 20 // bytes that may wait for their time
)

// Impair delays and loses packets from now on. It may be called again with other
// values; the chances come from the first call's seed.
func (l *Lab) Impair(ctx context.Context, seed uint64, i Impairment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("the lab is closed")
	}
	if l.proxy == nil {
		p, err := startProxy(ctx, l.hub.space, seed)
		if err != nil {
			return fmt.Errorf("delay packets: %w", err)
		}
		l.proxy = p
	}
	l.proxy.set(i)
	return nil
}

// passed counts the packets that went through Impair.
func (l *Lab) passed() passed {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proxy == nil {
		return passed{}
	}
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.proxy.passed
}

// way is from where to where a packet goes.
type way struct{ from, to netip.Addr }

// proxy holds packets until their time has come. Two goroutines work for it: one
// takes packets from the device, one puts them back.
type proxy struct {
	device *os.File
	more   chan struct{} // the earliest packet is another one
	end    chan struct{}
	done   sync.WaitGroup

	mu     sync.Mutex
	rng    *rand.Rand        // guarded by mu
	impair Impairment        // guarded by mu
	last   map[way]time.Time // guarded by mu; when the last packet of each way is due
	queue  packets           // guarded by mu
	bytes  int64             // guarded by mu; of queue
	next   uint64            // guarded by mu; number of the next packet
	passed passed            // guarded by mu
}

// startProxy leads all packets that a namespace forwards through a device.
func startProxy(ctx context.Context, space string, seed uint64) (*proxy, error) {
	p := &proxy{
		more: make(chan struct{}, 1), end: make(chan struct{}), last: make(map[way]time.Time),
		rng: newChances(seed),
	}
	err := inNamespace(space, func() error {
		var err error
		p.device, err = openTUN(tunName)
		return err
	})
	if err != nil {
		return nil, err
	}
	// What the device gives back goes its way; all else goes to the device.
	err = inside(ctx, space, "ip link set "+tunName+" up txqueuelen 10000",
		"ip route add default dev "+tunName+" table "+tunTable,
		"ip rule add not iif "+tunName+" lookup "+tunTable)
	if err != nil {
		return nil, errors.Join(err, p.device.Close())
	}
	p.done.Go(p.take)
	p.done.Go(p.give)
	return p, nil
}

// newChances makes the source of the chances.
func newChances(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a lab wants the same chances again
}

func (p *proxy) set(i Impairment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.impair = i
}

func (p *proxy) close() error {
	close(p.end)
	err := p.device.Close()
	p.done.Wait()
	return err
}

// take reads packets until the device is closed.
func (p *proxy) take() {
	buffer := make([]byte, packetBytes)
	for {
		n, err := p.device.Read(buffer)
		if err != nil {
			return
		}
		if p.plan(buffer[:n], time.Now()) {
			select {
			case p.more <- struct{}{}:
			default:
			}
		}
	}
}

// plan decides what becomes of a packet, and reports whether it is the next to
// go.
func (p *proxy) plan(packet []byte, now time.Time) bool {
	w, ok := wayOf(packet)
	if !ok {
		return false // IPv6 has no routes in a lab
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed.Packets++
	i := p.impair
	if p.rng.Float64() < i.Loss {
		p.passed.Lost++
		return false
	}
	due := now.Add(i.Latency + time.Duration(p.rng.Float64()*float64(i.Jitter)))
	if last := p.last[w]; due.Before(last) {
		due = last
	}
	if p.rng.Float64() < i.Reorder {
		p.passed.Reordered++
		due = due.Add(i.Latency + i.Jitter) // the next ones do not wait for it
	} else {
		p.last[w] = due
	}
	first := p.push(packet, due)
	if p.rng.Float64() < i.Duplicate {
		p.passed.Duplicated++
		first = p.push(packet, due.Add(i.Jitter/2)) || first
	}
	return first
}

// push queues a packet and reports whether it is the next to go. The caller has
// the lock.
func (p *proxy) push(packet []byte, due time.Time) bool {
	if p.bytes+int64(len(packet)) > onTheWayMost {
		p.passed.Overflow++
		return false
	}
	p.bytes += int64(len(packet))
	p.next++
	number := p.next
	heap.Push(&p.queue, waiting{due: due, number: number, packet: append([]byte(nil), packet...)})
	return p.queue[0].number == number
}

// give puts packets back when they are due.
func (p *proxy) give() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		packet, wait := p.pop(time.Now())
		if packet != nil {
			_, _ = p.device.Write(packet) // a full device loses it, as a network does
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-p.more:
		case <-p.end:
			return
		}
	}
}

// pop takes the packet that is due, or says how long there is none.
func (p *proxy) pop(now time.Time) ([]byte, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil, time.Hour
	}
	if wait := p.queue[0].due.Sub(now); wait > 0 {
		return nil, wait
	}
	w, ok := heap.Pop(&p.queue).(waiting)
	if !ok {
		panic("netlab: the queue holds packets only")
	}
	p.bytes -= int64(len(w.packet))
	return w.packet, 0
}

// wayOf reads the addresses of an IPv4 packet.
func wayOf(packet []byte) (way, bool) {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return way{}, false
	}
	return way{netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20]))}, true
}

// waiting is a packet on its way.
type waiting struct {
	due    time.Time
	number uint64 // in the order of arrival
	packet []byte
}

// packets is a heap: first due, first out.
type packets []waiting

func (q *packets) Len() int { return len(*q) }

func (q *packets) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	if !a.due.Equal(b.due) {
		return a.due.Before(b.due)
	}
	return a.number < b.number
}

func (q *packets) Swap(i, j int) { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }

// Push implements heap.Interface.
func (q *packets) Push(x any) {
	if w, ok := x.(waiting); ok {
		*q = append(*q, w)
	}
}

// Pop implements heap.Interface.
func (q *packets) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = waiting{}
	*q = old[:len(old)-1]
	return last
}
