package p2p

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// lie is the frame of a Hello that this project's encoder refuses to write.
func lie(t *testing.T, change func(*wirepb.Hello)) []byte {
	t.Helper()
	raw, err := protocol.Encode(validHello())
	if err != nil {
		t.Fatal(err)
	}
	var wire wirepb.Wire
	if err := proto.Unmarshal(raw, &wire); err != nil {
		t.Fatal(err)
	}
	change(wire.GetHello())
	if raw, err = proto.Marshal(&wire); err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}

func TestLyingHellosAreRefused(t *testing.T) {
	n := join(t, testConfig(t))
	for _, c := range []struct {
		name   string
		change func(*wirepb.Hello)
	}{
		{"more computation than there is", func(h *wirepb.Hello) {
			h.Capability = &wirepb.Capability{CoreMflops: math.MaxInt64}
		}},
		{"negative computation", func(h *wirepb.Hello) { h.Capability = &wirepb.Capability{CoreMflops: -1} }},
		{"negative bandwidth", func(h *wirepb.Hello) { h.Capability = &wirepb.Capability{DownBps: -1} }},
		{"endless memory", func(h *wirepb.Hello) {
			h.Capability = &wirepb.Capability{Total: &wirepb.Resources{MemoryBytes: math.MaxInt64}}
		}},
		{"no incarnation", func(h *wirepb.Hello) { h.Incarnation = 0 }},
		{"a name like a book", func(h *wirepb.Hello) { h.Name = strings.Repeat("x", 20_000) }},
		{"too many members", func(h *wirepb.Hello) { h.Peers = make([]string, protocol.MaxHelloPeers+1) }},
		{"an endless address", func(h *wirepb.Hello) { h.Peers = []string{strings.Repeat("/", 20_000)} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := n.Count(CountInvalid, causeFormat)
			s := openBid(t, rawPeer(t, n), n)
			if _, err := s.Write(lie(t, c.change)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Read(make([]byte, 1)); err == nil {
				t.Error("the stream goes on")
			}
			eventually(t, "it is counted", func() bool { return n.Count(CountInvalid, causeFormat) == before+1 })
		})
	}
	if n.peers() != 0 {
		t.Errorf("%d liars were admitted", n.peers())
	}
}

// hellos opens a stream and says Hello on it.
func hellos(tb testing.TB, h host.Host, n node, hello protocol.Hello) (network.Stream, error) {
	tb.Helper()
	s := openBid(tb, h, n)
	if err := writeHello(s, patience, hello); err != nil {
		return s, err
	}
	_, err := newFrameReader(s, patience).readHello()
	return s, err
}

func TestFalseIncarnationsConcernOnlyTheLiar(t *testing.T) {
	nodes := cluster(t, 2, nil)
	n := nodes[0]
	h := rawPeer(t, n)
	var incarnation atomic.Uint64
	incarnation.Store(5)
	h.SetStreamHandler(protocol.StreamID, func(s network.Stream) {
		hello := validHello()
		hello.Incarnation = incarnation.Load()
		if _, err := newFrameReader(s, patience).readHello(); err == nil {
			_ = writeHello(s, patience, hello)
		}
	})
	eventually(t, "the raw peer is admitted", func() bool { return n.peers() == 2 })
	hello := validHello()
	for _, lower := range []uint64{4, 1, 4} {
		hello.Incarnation = lower
		s, _ := hellos(t, h, n, hello) // the answer may be overtaken by the end
		if _, err := s.Read(make([]byte, 1)); err == nil {
			t.Errorf("a stream of incarnation %d goes on", lower)
		}
	}
	if f, ok := n.facts(siteOf(h.ID())); !ok || f.Incarnation != 5 {
		t.Errorf("facts = %+v, %t; want those of incarnation 5", f, ok)
	}
	for i := range uint64(200) { // it claims to have been restarted again and again
		incarnation.Store(6 + i)
		hello.Incarnation = 6 + i
		if s, err := hellos(t, h, n, hello); err != nil {
			_ = s.Reset()
		}
	}
	if lost := len(n.losses()); lost > bidStreamBurst+60*bidStreamRate {
		t.Errorf("it was reported lost %d times", lost)
	}
	if n.Count(CountDropped, queueStreams) == 0 {
		t.Error("no stream was refused")
	}
	if f, ok := n.facts(nodes[1].Self()); !ok || f.Incarnation != 1 {
		t.Errorf("the honest peer: %+v, %t", f, ok)
	}
}

// victim counts who connects to it.
type victim struct {
	addr  string
	calls atomic.Int64
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{addr: fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			v.calls.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return v
}

// somebody is a peer ID that nobody has.
func somebody(t *testing.T) peer.ID {
	t.Helper()
	_, key, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAHelloDoesNotMakeASiteDialWhomItNames(t *testing.T) {
	v := newVictim(t)
	cfg := testConfig(t)
	cfg.Limits.Members = 16
	n := join(t, cfg)
	h, s := admitRaw(t, n)
	named := 0
	for range 40 {
		hello := validHello()
		for range protocol.MaxHelloPeers {
			ghost := somebody(t)
			hello.Peers = append(hello.Peers, v.addr+"/p2p/"+ghost.String())
			named++
		}
		if err := writeHello(s, patience, hello); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the rest is not followed", func() bool {
		return n.Count(CountDropped, hearsay)+n.Count(CountDropped, queueHello) > 0
	})
	eventually(t, "all are forgotten", func() bool {
		n.Mesh.mu.Lock()
		defer n.Mesh.mu.Unlock()
		return len(n.remotes) == 1 && n.remotes[siteOf(h.ID())] != nil
	})
	calls, limit := v.calls.Load(), int64((followPerMember*cfg.Limits.Members+60*followRate)*hearsayTries)
	t.Logf("%d addresses named, the victim was called %d times", named, calls)
	if calls > limit {
		t.Errorf("called %d times, want at most %d", calls, limit)
	}
}

func TestReservedPortsAreNotDialledOnHearsay(t *testing.T) {
	for text, want := range map[string]bool{
		"/ip4/192.0.2.1/tcp/22": false, "/ip4/192.0.2.1/udp/53/quic-v1": false, "/ip4/192.0.2.1/tcp/4601": true,
		"/ip6/2001:db8::1/udp/4601/quic-v1": true, "/ip4/0.0.0.0/tcp/4601": false, "/ip4/224.0.0.1/udp/4601/quic-v1": false,
		"/dns4/example.org/tcp/25": false, "/dns4/example.org/tcp/4601": true, "/ip4/192.0.2.1": false, "/tcp/443": false,
	} {
		if got := dialable(parseAddrs([]string{text})[0]); got != want {
			t.Errorf("%s: dialled %t, want %t", text, got, want)
		}
	}
}

func TestAddressesOfOnePeerAreBounded(t *testing.T) {
	n := join(t, testConfig(t))
	id := newForge(t).id.id
	for i := range 100 {
		var texts []string
		for k := range protocol.MaxAddrs {
			texts = append(texts, fmt.Sprintf("/ip4/192.0.2.%d/tcp/%d", i, 2000+k))
		}
		n.hint(id, texts)
	}
	if got := len(n.Host().Peerstore().Addrs(id)); got > knownAddrs {
		t.Errorf("%d addresses of one peer are kept, want at most %d", got, knownAddrs)
	}
	if n.Count(CountDropped, hearsay) == 0 {
		t.Error("nothing is counted")
	}
}

func TestAHelloThatChangesAllTheTimeIsHeededNowAndThen(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timing.Spread = time.Second
	n := join(t, cfg)
	_, s := admitRaw(t, n)
	for i := range 1000 {
		hello := validHello()
		hello.Name = fmt.Sprint("name ", i)
		if err := writeHello(s, patience, hello); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "most are dropped", func() bool { return n.Count(CountDropped, queueHello) > 800 })
	n.recorder.mu.Lock()
	defer n.recorder.mu.Unlock()
	if n.sightings > 200 {
		t.Errorf("it was told of %d times", n.sightings)
	}
}

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
	eventually(t, "most are refused", func() bool { return n.Count(CountDropped, queueStreams) >= uint64(100-bidStreamBurst) })
	n.guard.mu.Lock()
	streams := n.guard.of(h.ID()).streams
	n.guard.mu.Unlock()
	if streams > bidStreams {
		t.Errorf("%d streams are served at once, want at most %d", streams, bidStreams)
	}
	if grown := runtime.NumGoroutine() - goroutines; grown > 150 {
		t.Errorf("%d goroutines for %d silent streams", grown, len(open))
	}
	late := join(t, cfg) // meanwhile somebody joins
	eventually(t, "an honest site is admitted", func() bool { return late.peers() >= 1 })
}

func TestAFrameThatDripsIsCutOff(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timing.Hello, cfg.Timing.Read = 400*time.Millisecond, 400*time.Millisecond
	n := join(t, cfg)
	s := openBid(t, rawPeer(t, n), n)
	frame := lie(t, func(*wirepb.Hello) {})
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
	eventually(t, "it is counted", func() bool { return n.Count(CountInvalid, causeFrame) == 1 })
}

func TestAStreamThatIsNeverReadDoesNotGrowMemory(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timing.Write = time.Minute // it is not given up during the test
	n := join(t, cfg)
	h, _ := admitRaw(t, n)
	site := siteOf(h.ID())
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
	t.Logf("%d MiB said to who never reads: %d messages refused, the heap grew by %.1f MiB", sent>>20, refused, float64(grown)/(1<<20))
	if refused == 0 || grown > 2*n.cfg.Limits.QueueBytes+4<<20 {
		t.Errorf("the heap grew by %d bytes, want at most the queue of %d and what is on its way", grown, n.cfg.Limits.QueueBytes)
	}
	if n.Count(CountDropped, queueFull) == 0 {
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
	if want := DefaultLimits().LogStreams / logShare; len(leave) != want {
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
		t.Error("who finds no room has a share of his own")
	}
}

func TestOnePeersConnectionsAndStreamsAreBounded(t *testing.T) {
	manager, err := resources(DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	one, other := newForge(t).id.id, newForge(t).id.id
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
		t.Errorf("%d connections, %d streams, and %d of the next peer; want at most 8, 128, and as many", conns, first, second)
	}
}
