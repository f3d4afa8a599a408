package p2p

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestStreamsThatSayNothingAreFewAndEnd(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timing.Hello = 500 * time.Millisecond
	nodes := cluster(t, 2, nil)
	cfg.Bootstrap = nodes[0].Addrs()
	n := nodes[0]
	h := rawPeer(t, n)
	goroutines := runtime.NumGoroutine()
	var open []network.Stream
	for range 100 {
		s := openBid(t, h, n)
		if _, err := s.Write([]byte{0}); err == nil { // the beginning of a length
			open = append(open, s)
		}
	}
	eventually(t, "most are refused", func() bool {
		return n.Count(wire.CountDropped, queueStreams) >= uint64(100-bidStreamBurst)
	})
	n.guard.mu.Lock()
	streams := n.guard.of(h.ID()).streams
	n.guard.mu.Unlock()
	if streams > bidStreams {
		t.Errorf("%d streams are served at a time, want at most %d", streams, bidStreams)
	}
	if grown := runtime.NumGoroutine() - goroutines; grown > 150 {
		t.Errorf("%d goroutines for %d silent streams", grown, len(open))
	}
	late := startSite(t, cfg) // meanwhile somebody joins
	eventually(t, "an honest site is admitted", func() bool { return late.peers() >= 1 })
}

func TestAFrameThatDripsIsCutOff(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timing.Hello, cfg.Timing.Read = 400*time.Millisecond, 400*time.Millisecond
	n := startSite(t, cfg)
	s := openBid(t, rawPeer(t, n), n)
	frame := lie(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Read(make([]byte, 1))
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	sent := 0
	for done := false; !done && sent < len(frame); {
		select {
		case <-ended:
			done = true
		case <-tick.C:
			if _, err := s.Write(frame[sent : sent+1]); err != nil {
				done = true
			}
			sent++
		}
	}
	if sent > 12 {
		t.Errorf("%d bytes were taken, one in 100 ms, want the end after %s", sent, cfg.Timing.Read)
	}
	eventually(t, "it is counted", func() bool { return n.Count(wire.CountInvalid, "frame") == 1 })
}

func TestAStreamThatIsNeverReadDoesNotGrowMemory(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timing.Write = time.Minute // it is not given up during the test
	n := startSite(t, cfg)
	h, _ := admitRaw(t, n)
	site := wire.SiteOf(h.ID())
	jobs := make([]grid.JobID, protocol.MaxVacancies)
	for i := range jobs {
		jobs[i] = jobID(i)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, sent, refused := heap(), 0, 0
	for sent < 64<<20 {
		if n.Send(site, protocol.Vacancy{Jobs: jobs}) != nil {
			refused++
		}
		sent += 18 * len(jobs)
	}
	after := heap()
	grown := int64(after) - int64(before)
	t.Logf(
		"%d MiB said to who never reads: %d messages refused, the heap grew by %.1f MiB", sent>>20,
		refused, float64(grown)/(1<<20),
	)
	if refused == 0 || grown > 2*n.cfg.Limits.QueueBytes+4<<20 {
		t.Errorf(
			"the heap grew by %d bytes, want at most the queue of %d and what is on its way", grown,
			n.cfg.Limits.QueueBytes,
		)
	}
	if n.Count(wire.CountDropped, queueFull) == 0 {
		t.Error("nothing is counted")
	}
}

func TestOnePeerHasAShareOfTheLogStreams(t *testing.T) {
	g := newGuard(Config{}.withDefaults())
	a, b := newID(1), newID(2)
	var leave []func()
	for {
		end, ok := g.openLog(a)
		if !ok {
			break
		}
		leave = append(leave, end)
	}
	if want := defaultLimits().LogStreams / logShare; len(leave) != want {
		t.Errorf("%d log streams of one peer, want %d", len(leave), want)
	}
	if _, ok := g.openLog(b); !ok {
		t.Error("another peer gets none")
	}
	leave[0]()
	if _, ok := g.openLog(a); !ok {
		t.Error("an ended stream is still counted")
	}
}

func TestLedgersAreBounded(t *testing.T) {
	cfg := Config{Limits: Limits{Peers: 10}}.withDefaults()
	g := newGuard(cfg)
	for i := range 1000 {
		g.hello(newID(i))
	}
	if len(g.ledgers) > 10 {
		t.Errorf("%d ledgers, want at most 10", len(g.ledgers))
	}
	if g.hello(newID(2000)) { // the crowd has used up what it shares
		t.Error("a peer beyond the limit has a share of its own")
	}
}

func TestOnePeersConnectionsAndStreamsAreBounded(t *testing.T) {
	manager, err := resources(defaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	one, other := newForge(t).peer(), newForge(t).peer()
	at := parseAddrs([]string{"/ip4/127.0.0.1/tcp/4001"})[0]
	conns := 0
	for ; conns < 100; conns++ {
		c, err := manager.OpenConnection(network.DirInbound, true, at)
		if err != nil {
			t.Fatal(err)
		}
		if c.SetPeer(one) != nil {
			c.Done()
			break
		}
	}
	streams := func(id peer.ID) (n int) {
		for ; n < 1000; n++ {
			s, err := manager.OpenStream(id, network.DirInbound)
			if err != nil {
				return n
			}
			_ = s.SetProtocol(protocol.StreamID)
		}
		return n
	}
	first, second := streams(one), streams(other)
	t.Logf("%d connections and %d streams of one peer", conns, first)
	if conns > 8 || first > 128 || second < 64 {
		t.Errorf(
			"%d connections, %d streams, and %d of the next peer; want at most 8, 128, and as many", conns,
			first, second,
		)
	}
}

func TestWhoSendsTooFastWaitsAndLosesNothing(t *testing.T) {
	const beyond = 1000
	n := startSite(t, testConfig(t))
	_, s := admitRaw(t, n)
	frame, err := protocol.AppendFrame(nil, protocol.Cancel{Job: jobID(1)})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := s.Write(bytes.Repeat(frame, messageBurst+beyond)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all arrive", func() bool { return n.count() == messageBurst+beyond })
	if took, least := time.Since(began), beyond*time.Second/messageRate; took < least {
		t.Errorf("%d messages were read in %s, want at least %s", messageBurst+beyond, took, least)
	}
}
