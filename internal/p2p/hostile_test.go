package p2p

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// The numbers of the fields of a Hello in the wire format.
const (
	helloField     = 2 // of a message
	nameField      = 4
	incarnation    = 5
	capability     = 7
	peersField     = 9
	totalField     = 1 // of a capability
	mflopsField    = 2
	downField      = 3
	memoryField    = 2 // of resources
	varintWireType = 0
	bytesWireType  = 2
)

// number writes a field with a number, text one with bytes.
func number(field uint64, v int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, field<<3|varintWireType), uint64(v))
}

func text(field uint64, content []byte) []byte {
	return append(
		binary.AppendUvarint(binary.AppendUvarint(nil, field<<3|bytesWireType), uint64(len(content))),
		content...,
	)
}

// lie is the frame of a valid Hello with fields after it that this project's
// encoder refuses to write; the last one of a kind counts.
func lie(t *testing.T, fields ...[]byte) []byte {
	t.Helper()
	raw, err := protocol.Encode(validHello())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		raw = append(raw, text(helloField, f)...)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}

func TestLyingHellosAreRefused(t *testing.T) {
	n := startSite(t, testConfig(t))
	manyPeers := bytes.Repeat(text(peersField, []byte("x")), protocol.MaxHelloPeers+1)
	for _, c := range []struct {
		name  string
		field []byte
	}{
		{"more computation than there is", text(capability, number(mflopsField, math.MaxInt64))},
		{"negative computation", text(capability, number(mflopsField, -1))},
		{"negative bandwidth", text(capability, number(downField, -1))},
		{"endless memory", text(capability, text(totalField, number(memoryField, math.MaxInt64)))},
		{"no incarnation", number(incarnation, 0)},
		{"a name like a book", text(nameField, bytes.Repeat([]byte("x"), 20_000))},
		{"too many members", manyPeers},
		{"an endless address", text(peersField, bytes.Repeat([]byte("/"), 20_000))},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, refused := n.Count(wire.CountInvalid, "format"), n.Count(wire.CountRefused, "invalid")
			s := openBid(t, rawPeer(t, n), n)
			if _, err := s.Write(lie(t, c.field)); err != nil {
				t.Fatal(err)
			}
			answer, err := readHello(wire.NewReader(s, patience))
			if err != nil || answer.Refusal != grid.ReasonInvalid {
				t.Errorf("answered with %v, %v; want a refusal that says why", answer.Refusal, err)
			}
			if _, err := s.Read(make([]byte, 1)); err == nil {
				t.Error("the stream goes on")
			}
			eventually(t, "it is counted", func() bool {
				return n.Count(wire.CountInvalid, "format") == before+1 &&
					n.Count(wire.CountRefused, "invalid") == refused+1
			})
		})
	}
	s := openBid(t, rawPeer(t, n), n)
	if _, err := s.Write(lie(t, text(nameField, []byte("honest")))); err != nil {
		t.Fatal(err)
	}
	if answer, err := readHello(wire.NewReader(s, patience)); err != nil ||
		answer.Refusal != grid.ReasonNone {
		t.Errorf("a Hello written the same way without a lie is answered with %+v, %v", answer, err)
	}
	if n.peers() != 0 {
		t.Errorf("%d liars were admitted", n.peers())
	}
}

// 1e300 does not fit into the wire format: a peer that writes the bits of such a number
// claims an absurd one. It is refused where it is answered, too.
func TestLyingAnswersAreRefused(t *testing.T) {
	for name, field := range map[string][]byte{
		"the bits of 1e300 GFLOPS": text(capability, number(mflopsField, int64(math.Float64bits(1e300)))),
		"negative bandwidth":       text(capability, number(downField, -1)),
	} {
		t.Run(name, func(t *testing.T) {
			n := startSite(t, testConfig(t))
			h := rawPeer(t, n)
			h.SetStreamHandler(protocol.StreamID, func(s network.Stream) {
				if _, err := readHello(wire.NewReader(s, patience)); err == nil {
					_, _ = s.Write(lie(t, field))
				}
			})
			s := openBid(t, h, n)
			_ = writeHello(s, patience, validHello()) // n opens a stream of its own
			eventually(t, "the liar is refused and counted", func() bool {
				return n.Count(wire.CountRefused, "invalid") > 0 && n.Count(wire.CountInvalid, "format") > 0
			})
			if n.peers() != 0 {
				t.Error("the liar was admitted")
			}
		})
	}
}

// One that lies later stays with what it said before.
func TestALieAfterTheHelloChangesNothing(t *testing.T) {
	n := startSite(t, testConfig(t))
	h, s := admitRaw(t, n)
	if _, err := s.Write(lie(t, text(capability, number(mflopsField, -1)))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is counted", func() bool { return n.Count(wire.CountInvalid, "format") == 1 })
	if f, ok := n.facts(wire.SiteOf(h.ID())); !ok || f.Capability.CoreMFLOPS != 0 {
		t.Errorf("facts = %+v, %t; want those of before", f, ok)
	}
}

// hellos opens a stream and says Hello on it. There is no stream when the site has just ended
// the connection, as is its right.
func hellos(tb testing.TB, h host.Host, n node, hello protocol.Hello) (network.Stream, error) {
	tb.Helper()
	s, err := h.NewStream(tb.Context(), n.Host().ID(), protocol.StreamID)
	if err != nil {
		return nil, err
	}
	if err = s.SetDeadline(time.Now().Add(patience)); err != nil {
		tb.Fatal(err)
	}
	if err = writeHello(s, patience, hello); err != nil {
		return s, err
	}
	_, err = readHello(wire.NewReader(s, patience))
	return s, err
}

func TestFalseIncarnationsConcernOnlyTheLiar(t *testing.T) {
	nodes := cluster(t, 2, nil)
	n := nodes[0]
	h := rawPeer(t, n)
	var life atomic.Uint64
	life.Store(5)
	h.SetStreamHandler(protocol.StreamID, func(s network.Stream) {
		hello := validHello()
		hello.Incarnation = life.Load()
		if _, err := readHello(wire.NewReader(s, patience)); err == nil {
			_ = writeHello(s, patience, hello)
		}
	})
	eventually(t, "the raw peer is admitted", func() bool { return n.peers() == 2 })
	hello := validHello()
	for _, lower := range []uint64{4, 1, 4} {
		hello.Incarnation = lower
		s, _ := hellos(t, h, n, hello) // the answer may be overtaken by the end
		if s == nil {
			continue
		}
		if _, err := s.Read(make([]byte, 1)); err == nil {
			t.Errorf("a stream of incarnation %d goes on", lower)
		}
	}
	if f, ok := n.facts(wire.SiteOf(h.ID())); !ok || f.Incarnation != 5 {
		t.Errorf("facts = %+v, %t; want those of incarnation 5", f, ok)
	}
	for i := range uint64(200) { // it claims to have been restarted again and again
		life.Store(6 + i)
		hello.Incarnation = 6 + i
		if s, err := hellos(t, h, n, hello); err != nil && s != nil {
			_ = s.Reset()
		}
	}
	if lost := len(n.losses()); lost > bidStreamBurst+60*bidStreamRate {
		t.Errorf("it was reported lost %d times", lost)
	}
	if n.Count(wire.CountDropped, queueStreams) == 0 {
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
	n := startSite(t, cfg)
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
		return n.Count(wire.CountDropped, hearsay)+n.Count(wire.CountDropped, queueHello) > 0
	})
	eventually(t, "all are forgotten", func() bool {
		n.Mesh.mu.Lock()
		defer n.Mesh.mu.Unlock()
		return len(n.remotes) == 1 && n.remotes[wire.SiteOf(h.ID())] != nil
	})
	calls := v.calls.Load()
	limit := int64((followPerMember*cfg.Limits.Members + 60*followRate) * hearsayTries)
	t.Logf("%d addresses named, the victim was called %d times", named, calls)
	if calls > limit {
		t.Errorf("called %d times, want at most %d", calls, limit)
	}
}

func TestReservedPortsAreNotDialledOnHearsay(t *testing.T) {
	for text, want := range map[string]bool{
		"/ip4/192.0.2.1/tcp/22": false, "/ip4/192.0.2.1/udp/53/quic-v1": false,
		"/ip4/192.0.2.1/tcp/4601":           true,
		"/ip6/2001:db8::1/udp/4601/quic-v1": true, "/ip4/0.0.0.0/tcp/4601": false,
		"/ip4/224.0.0.1/udp/4601/quic-v1": false,
		"/dns4/example.org/tcp/25":        false, "/dns4/example.org/tcp/4601": true,
		"/ip4/192.0.2.1": false, "/tcp/443": false,
	} {
		if got := dialable(parseAddrs([]string{text})[0]); got != want {
			t.Errorf("%s: dialled %t, want %t", text, got, want)
		}
	}
}

func TestAddressesOfOnePeerAreBounded(t *testing.T) {
	n := startSite(t, testConfig(t))
	id := newForge(t).peer()
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
	if n.Count(wire.CountDropped, hearsay) == 0 {
		t.Error("nothing is counted")
	}
}

func TestAHelloThatChangesAllTheTimeIsHeededNowAndThen(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timing.Spread = time.Second
	n := startSite(t, cfg)
	_, s := admitRaw(t, n)
	for i := range 1000 {
		hello := validHello()
		hello.Name = fmt.Sprint("name ", i)
		if err := writeHello(s, patience, hello); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "most are dropped", func() bool {
		return n.Count(wire.CountDropped, queueHello) > 800
	})
	n.recorder.mu.Lock()
	defer n.recorder.mu.Unlock()
	if n.sightings > 200 {
		t.Errorf("it was told of %d times", n.sightings)
	}
}
