package p2p

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestWhoDoesNotFitIsRefusedByName(t *testing.T) {
	for _, c := range []struct {
		name   string
		reason string
		change func(a, b *Config)
	}{
		{"other domain", "domain", func(_, b *Config) { b.Domain = "elsewhere" }},
		{"clock ahead", "clock", func(_, b *Config) {
			b.Now = func() time.Time { return time.Now().Add(protocol.MaxSkew + time.Minute) }
		}},
		{"clock behind", "clock", func(_, b *Config) {
			b.Now = func() time.Time { return time.Now().Add(-protocol.MaxSkew - time.Minute) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := testConfig(t), testConfig(t)
			c.change(&first, &second)
			a := startSite(t, first)
			second.Bootstrap = a.Addrs()
			b := startSite(t, second)
			for _, n := range []node{a, b} {
				eventually(t, "the refusal is counted", func() bool {
					return n.Count(wire.CountRefused, c.reason) > 0
				})
				if n.peers() != 0 {
					t.Errorf("site %s admitted a peer", n.Self())
				}
			}
			eventually(t, "the connection is closed", func() bool {
				return a.Host().Network().Connectedness(b.Host().ID()) != network.Connected
			})
		})
	}
}

func TestClocksWithinTheLimitAreMeasured(t *testing.T) {
	const ahead = 5 * time.Minute
	nodes := cluster(t, 2, func(i int, cfg *Config) {
		if i == 1 {
			cfg.Now = func() time.Time { return time.Now().Add(ahead) }
		}
	})
	a, b := nodes[0], nodes[1]
	if f, _ := a.facts(b.Self()); (f.Skew - ahead).Abs() > time.Second {
		t.Errorf("skew seen by the slow clock = %s, want %s", f.Skew, ahead)
	}
	if f, _ := b.facts(a.Self()); (f.Skew + ahead).Abs() > time.Second {
		t.Errorf("skew seen by the fast clock = %s, want -%s", f.Skew, ahead)
	}
	if err := b.Broadcast(announcement(b.Self(), 1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an announcement crosses", func() bool { return a.count() == 1 })
}

func TestAStrangerIsTurnedAwayAndToldWhy(t *testing.T) {
	for _, c := range []struct{ name, listen string }{
		{"tcp", "/ip4/127.0.0.1/tcp/0"}, {"quic", "/ip4/127.0.0.1/udp/0/quic-v1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			member := startSite(t, testConfig(t))
			cfg := testConfig(t)
			cfg.AcceptAnyone, cfg.Allow, cfg.Bootstrap = false, []grid.SiteID{member.Self()}, member.Addrs()
			cfg.Listen = []string{c.listen}
			a := startSite(t, cfg)
			eventually(t, "the member is admitted", func() bool { return a.peers() == 1 })

			cfg = testConfig(t)
			cfg.Bootstrap, cfg.Listen = a.Addrs(), []string{c.listen}
			stranger := startSite(t, cfg)
			eventually(t, "the stranger is counted", func() bool {
				return a.Count(wire.CountRefused, "not_member") > 0
			})
			eventually(t, "the stranger knows why", func() bool {
				return stranger.Count(wire.CountRefused, "not_member") > 0
			})
			if stranger.peers() != 0 || a.peers() != 1 {
				t.Errorf(
					"admitted: %d by the stranger, %d by the site; want 0 and 1", stranger.peers(), a.peers(),
				)
			}
			if a.Allowed(stranger.Host().ID()) || !a.Allowed(member.Host().ID()) ||
				!a.Allowed(a.Host().ID()) {
				t.Error("Allowed() does not follow the list")
			}
			if err := a.Send(stranger.Self(), protocol.Cancel{Job: jobID(1)}); err == nil {
				t.Error("Send to a stranger is accepted")
			}
		})
	}
}

// rawPeer is a libp2p host that knows nothing of the mesh.
func rawPeer(tb testing.TB, n node) host.Host {
	tb.Helper()
	h, err := libp2p.New(
		libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay(), libp2p.DisableMetrics(),
	)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = h.Close() })
	err = h.Connect(tb.Context(), peer.AddrInfo{ID: n.Host().ID(), Addrs: n.Host().Addrs()})
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	return h
}

func validHello() protocol.Hello {
	return protocol.Hello{
		MinVersion: 1, MaxVersion: 1, Domain: "lab", Name: "raw", Incarnation: 1,
		WallMS: time.Now().UnixMilli(),
	}
}

func openBid(tb testing.TB, h host.Host, n node) network.Stream {
	tb.Helper()
	s, err := h.NewStream(tb.Context(), n.Host().ID(), protocol.StreamID)
	if err != nil {
		tb.Fatalf("open stream: %v", err)
	}
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestNoCommonVersionIsRefused(t *testing.T) {
	n := startSite(t, testConfig(t))
	s := openBid(t, rawPeer(t, n), n)
	hello := validHello()
	hello.MinVersion, hello.MaxVersion = 7, 9
	if err := writeHello(s, patience, hello); err != nil {
		t.Fatal(err)
	}
	answer, err := readHello(wire.NewReader(s, patience))
	if err != nil || answer.Refusal != grid.ReasonVersion {
		t.Fatalf("answer = %+v, %v; want a refusal for the version", answer, err)
	}
	if answer.MaxVersion != protocol.Version || answer.Domain != "lab" {
		t.Errorf("the answer does not say what is spoken here: %+v", answer)
	}
	if n.Count(wire.CountRefused, "version") == 0 || n.peers() != 0 {
		t.Errorf(
			"counted %d refusals, %d peers; want 1 and none", n.Count(wire.CountRefused, "version"),
			n.peers(),
		)
	}
}

func TestBadHellosEndTheStream(t *testing.T) {
	huge := binary.BigEndian.AppendUint32(nil, maxHelloBytes+1)
	cancel, err := protocol.AppendFrame(nil, protocol.Cancel{Job: jobID(1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		cause string
	}{
		{"oversize", huge, "size"},
		{"empty frame", []byte{0, 0, 0, 0}, "size"},
		{"no protobuf", []byte{0, 0, 0, 2, 0xff, 0xff}, "format"},
		{"another message", cancel, "format"},
		{"half a frame", []byte{0, 0, 0, 9, 1}, "frame"},
		{"nothing", nil, "frame"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.Timing.Hello, cfg.Timing.Read = 300*time.Millisecond, 300*time.Millisecond
			n := startSite(t, cfg)
			s := openBid(t, rawPeer(t, n), n)
			if _, err := s.Write(c.bytes); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Read(make([]byte, 1)); err == nil {
				t.Error("the stream goes on")
			}
			eventually(t, "the cause is counted", func() bool {
				return n.Count(wire.CountInvalid, c.cause) == 1
			})
		})
	}
}

// admitRaw makes a raw peer a member: it answers our Hello and opens a stream.
func admitRaw(tb testing.TB, n node) (host.Host, network.Stream) {
	tb.Helper()
	h := rawPeer(tb, n)
	h.SetStreamHandler(protocol.StreamID, func(s network.Stream) {
		if _, err := readHello(wire.NewReader(s, patience)); err == nil {
			_ = writeHello(s, patience, validHello())
		}
	})
	s := openBid(tb, h, n)
	if err := writeHello(s, patience, validHello()); err != nil {
		tb.Fatal(err)
	}
	if _, err := readHello(wire.NewReader(s, patience)); err != nil {
		tb.Fatalf("read hello: %v", err)
	}
	eventually(tb, "the raw peer is admitted", func() bool { return n.peers() == 1 })
	return h, s
}

func TestMessagesThatMakeNoSenseAreCountedAndNotFatal(t *testing.T) {
	n := startSite(t, testConfig(t))
	_, s := admitRaw(t, n)
	good, err := protocol.AppendFrame(nil, protocol.Cancel{Job: jobID(1)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Write(append([]byte{0, 0, 0, 2, 0xff, 0xff}, good...)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the good ones arrive", func() bool { return n.count() == 3 })
	if got := n.Count(wire.CountInvalid, "format"); got != 3 {
		t.Errorf("counted %d invalid messages, want 3", got)
	}
	if _, err := s.Write(binary.BigEndian.AppendUint32(nil, protocol.MaxMessageBytes+1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an oversize frame ends the stream", func() bool {
		return n.Count(wire.CountInvalid, "size") == 1
	})
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("the stream goes on")
	}
}

func TestAPeerThatNeverReadsCostsABoundedQueue(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timing.Write = 200 * time.Millisecond
	cfg.Limits.QueueMessages, cfg.Limits.QueueBytes = 64, 1<<20
	n := startSite(t, cfg)
	h, _ := admitRaw(t, n) // it reads no more than the Hello
	site := wire.SiteOf(h.ID())
	jobs := make([]grid.JobID, protocol.MaxVacancies)
	for i := range jobs {
		jobs[i] = jobID(i)
	}
	full := 0
	eventually(t, "the stream is given up", func() bool {
		for range 100 {
			if n.Send(site, protocol.Vacancy{Jobs: jobs}) != nil {
				full++
			}
		}
		return n.Count(wire.CountDropped, queueSend) > 0
	})
	if full == 0 {
		t.Error("the queue was never full")
	}
	n.Mesh.mu.Lock()
	r := n.remotes[site]
	n.Mesh.mu.Unlock()
	if r.queued.Load() > n.cfg.Limits.QueueBytes || len(r.queue) > n.cfg.Limits.QueueMessages {
		t.Errorf("%d bytes in %d messages wait, over the limit", r.queued.Load(), len(r.queue))
	}
	if len(n.losses()) != 0 {
		t.Errorf("the peer was reported gone: %+v", n.losses())
	}
}

func TestManySitesBehindOneAddressMayConnect(t *testing.T) {
	l := defaultLimits()
	manager, err := resources(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	addrs := parseAddrs([]string{"/ip4/203.0.113.7/tcp/4001", "/ip4/127.0.0.1/tcp/4001"})
	for i := range 80 { // 40 agents, both of two dialling at the same time
		if _, err := manager.OpenConnection(network.DirInbound, true, addrs[0]); err != nil {
			t.Fatalf("connection %d of one address = %v", i, err)
		}
	}
	for i := 80; ; i++ {
		if _, err := manager.OpenConnection(network.DirInbound, true, addrs[0]); err != nil {
			break
		}
		if i > 4*l.ConnsPerSubnet {
			t.Fatal("connections of one address have no bound")
		}
	}
	if _, err := manager.OpenConnection(network.DirInbound, true, addrs[1]); err != nil {
		t.Errorf("loopback = %v, want it exempt", err)
	}
}
