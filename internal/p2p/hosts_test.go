package p2p

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// In a local network TCP is dialled first, elsewhere QUIC; addresses through relays a second later,
// unless there is no other.
func TestWhichAddressIsDialledFirst(t *testing.T) {
	relay := somebody(t)
	const tcp, quic = "/ip4/192.168.0.1/tcp/1", "/ip4/192.168.0.1/udp/1/quic-v1"
	byTCP, byQUIC := through(relay, "/ip4/192.168.0.2/tcp/1"),
		through(relay, "/ip4/192.168.0.2/udp/1/quic-v1")
	for name, c := range map[string]struct {
		wide  bool
		addrs []string
		want  map[string]time.Duration
	}{
		"tcp":  {addrs: []string{tcp}, want: map[string]time.Duration{tcp: 0}},
		"quic": {addrs: []string{quic}, want: map[string]time.Duration{quic: 0}},
		"both": {
			addrs: []string{quic, tcp},
			want:  map[string]time.Duration{tcp: 0, quic: quicAfterTCP},
		},
		"a relay": {addrs: []string{byTCP}, want: map[string]time.Duration{byTCP: 0}},
		"a relay beside": {
			addrs: []string{byTCP, tcp},
			want:  map[string]time.Duration{tcp: 0, byTCP: relayWait},
		},
		"all": {addrs: []string{byQUIC, byTCP, quic, tcp}, want: map[string]time.Duration{
			tcp: 0, quic: quicAfterTCP, byTCP: relayWait, byQUIC: relayWait + quicAfterTCP,
		}},
		"far": {wide: true, addrs: []string{quic}, want: map[string]time.Duration{quic: 0}},
		"far, both": {
			wide: true, addrs: []string{quic, tcp},
			want: map[string]time.Duration{quic: 0, tcp: 30 * time.Millisecond},
		},
	} {
		got := make(map[string]time.Duration)
		for _, d := range dialRanker(c.wide)(parseAddrs(c.addrs)) {
			got[d.Addr.String()] = d.Delay
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What a host may use, as multiples of the members there may be, and what one peer may.
func TestTheLimitsOfAHost(t *testing.T) {
	l := defaultLimits()
	l.Members = 3
	manager, err := resources(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	said := func(of any) string {
		limit := of.(rcmgr.ResourceScopeLimiter).Limit()
		const in, out = network.DirInbound, network.DirOutbound
		return fmt.Sprint(limit.GetConnTotalLimit(), limit.GetConnLimit(in), limit.GetConnLimit(out),
			limit.GetStreamTotalLimit(), limit.GetStreamLimit(in), limit.GetStreamLimit(out),
			limit.GetFDLimit(), limit.GetMemoryLimit()>>20)
	}
	got := make(map[string]string)
	_ = manager.ViewSystem(func(s network.ResourceScope) error { got["system"] = said(s); return nil })
	_ = manager.ViewTransient(func(s network.ResourceScope) error {
		got["transient"] = said(s)
		return nil
	})
	_ = manager.ViewPeer(somebody(t), func(s network.PeerScope) error {
		got["peer"] = said(s)
		return nil
	})
	for name, want := range map[string]string{
		"system": "12 12 12 192 192 192 12 512", "transient": "12 12 12 12 12 12 12 ",
		"peer": "8 8 8 256 128 256 8 64",
	} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if got := burst(64); got.RPS != 2 || got.Burst != 128 {
		t.Errorf("64 connections: %+v, want 2 a second and 128 in a row", got)
	}
	n := startSite(t, testConfig(t))
	if info := n.Host().ConnManager().(*connmgr.BasicConnMgr).GetInfo(); info.LowWater != 256 ||
		info.HighWater != 512 || info.GracePeriod != time.Minute {
		t.Errorf("connections are trimmed as %+v says", info)
	}
}

// Connections are counted by IPv4 address and by IPv6 /56.
func TestConnectionsAreCountedBySubnet(t *testing.T) {
	for name, c := range map[string]struct{ one, same, other string }{
		"ip4": {"203.0.113.6", "203.0.113.6", "203.0.113.7"},
		"ip6": {"2001:db8:0:100::1", "2001:db8:0:1ff::1", "2001:db8:0:200::1"},
	} {
		l := defaultLimits()
		l.ConnsPerSubnet = 2
		manager, err := resources(l)
		if err != nil {
			t.Fatal(err)
		}
		opens := func(ip string) bool {
			at := parseAddrs([]string{"/" + name + "/" + ip + "/tcp/4001"})[0]
			_, err := manager.OpenConnection(network.DirInbound, true, at)
			return err == nil
		}
		got := []bool{
			opens(c.one), opens(c.same), opens(c.one), opens(c.same), opens(c.other),
			opens(c.other), opens(c.other),
		}
		if want := []bool{true, true, false, false, true, true, false}; !slices.Equal(got, want) {
			t.Errorf("%s: let in %v, want two of each", name, got)
		}
		_ = manager.Close()
	}
}

// What is wrong with a configuration, its key, its ports or its Hello is said, and nothing is left.
func TestAMeshThatCannotBegin(t *testing.T) {
	addr, _ := listening(t)
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"a preset": {func(c *Config) { c.Preset = "moon" }, "preset"},
		"a key":    {func(c *Config) { c.KeyFile += "/below" }, "identity"},
		"a port":   {func(c *Config) { c.Listen = []string{addr} }, "is taken by another program"},
		"a capability": {func(c *Config) {
			c.Capability = func() grid.Capability { return grid.Capability{CoreMFLOPS: -1} }
		}, "say hello: "},
	} {
		cfg := testConfig(t)
		c.change(&cfg)
		m, err := New(t.Context(), cfg, (&recorder{}).handlers(), nil)
		if err == nil || m != nil || !strings.HasPrefix(err.Error(), "join mesh: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to speak of %q", name, err, c.want)
		}
	}
}

// A site listens on further addresses while it runs; those that it has are left alone, and one that
// is taken is named.
func TestASiteListensOnMore(t *testing.T) {
	n := startSite(t, testConfig(t))
	before, began := n.Addrs(), time.Now()
	if err := n.Listen(t.Context(), []string{"/ip4/127.0.0.1/tcp/0"}); err != nil {
		t.Fatal(err)
	}
	more := func() bool { return len(n.Addrs()) == len(before)+1 }
	if !more() && time.Since(began) < listenPatience {
		t.Errorf("listens on %q, want one more than %q", n.Addrs(), before)
	}
	eventually(t, "it listens on one more", more)
	var have []string
	for _, a := range n.Host().Network().ListenAddresses() {
		have = append(have, a.String())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Listen(ended, have); err != nil || len(n.Addrs()) != len(before)+1 {
		t.Errorf("what it has again: %v", err)
	}
	if err := n.Listen(t.Context(), []string{"rubbish"}); err == nil ||
		!strings.HasPrefix(err.Error(), `listen on "rubbish": `) {
		t.Errorf("rubbish: %v", err)
	}
	addr, _ := listening(t)
	if err := n.Listen(t.Context(), []string{addr}); !errors.As(err, new(PortTakenError)) {
		t.Errorf("a port that is taken: %v", err)
	}
	if err := n.Listen(t.Context(), []string{"/ip4/203.0.113.1/tcp/4601"}); err == nil {
		t.Error("it listens on another machine's address")
	}
	eventually(t, "ports that are free before a look at them are free afterwards", func() bool {
		free := []string{closedPort(t), closedUDPPort(t)}
		for range 3 {
			if refuseTaken(t.Context(), free) != nil {
				return false
			}
		}
		return true
	})
	if err := refuseTaken(t.Context(), []string{"rubbish"}); err == nil {
		t.Error("rubbish is no error")
	}
}

// closedUDPPort is an address of this machine that nobody uses.
func closedUDPPort(t *testing.T) string {
	t.Helper()
	l, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", l.LocalAddr().(*net.UDPAddr).Port)
}

// Who was connected before the mesh began is met, too.
func TestAConnectionThatIsOlderThanTheMesh(t *testing.T) {
	a := startSite(t, testConfig(t))
	h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if err = h.Connect(t.Context(), peer.AddrInfo{
		ID:    a.Host().ID(),
		Addrs: a.Host().Addrs(),
	}); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	cfg.KeyFile, cfg.Host = "", h
	b := startSite(t, cfg)
	if b.lookup(a.Self()) == nil {
		t.Error("nobody looks after a peer that was connected before")
	}
	eventually(t, "it is admitted", func() bool { return b.peers() == 1 })
}

// Members are asked for another one after two failed attempts, and each once in Timing.Lookup.
// Where one is connected already, its owner wakes.
func TestWhenMembersAreAsked(t *testing.T) {
	cfg := testConfig(t)
	cfg.DHT, cfg.Timing.Lookup, cfg.Limits.Peers = true, time.Hour, 2
	n := startSite(t, cfg)
	f := n.finder
	asks := func(r *remote, failures int) bool {
		t.Helper()
		before := n.Count(wire.CountLookups, lookupUnknown) + n.Count(wire.CountLookups, lookupFound)
		f.missed(t.Context(), r, failures)
		eventually(t, "it is asked", func() bool { return len(f.slot) == 0 })
		return n.Count(wire.CountLookups, lookupUnknown)+n.Count(wire.CountLookups, lookupFound) > before
	}
	ghost := newRemote(n.Mesh, newForge(t).peer(), "ghost")
	if asks(ghost, lookupAfter-1) || !asks(ghost, lookupAfter) || asks(ghost, lookupAfter) {
		t.Error("want it asked for after two failures, once")
	}
	f.asked["ghost"] = time.Now().Add(-time.Hour)
	f.asked["other"] = time.Now()
	f.slot <- struct{}{}
	if f.missed(t.Context(), ghost, lookupAfter); n.Count(wire.CountLookups, lookupUnknown) != 1 {
		t.Error("two are looked for at a time")
	}
	<-f.slot
	if !asks(ghost, lookupAfter) || len(f.asked) != 1 {
		t.Errorf("want it asked for an hour later; remembered are %v", f.asked)
	}

	h := rawPeer(t, n)
	near := newRemote(n.Mesh, h.ID(), wire.SiteOf(h.ID()))
	eventually(t, "the connection is there from both ends", near.connected)
	if f.find(t.Context(), near); n.Count(wire.CountLookups, lookupFound) == 0 ||
		!marked(near.dialed) {
		t.Error("a member that is connected is not found, or its owner does not wake")
	}
	if marked(ghost.dialed) {
		t.Error("the owner of one that nobody knows wakes")
	}
	newFinder(n.Mesh).missed(t.Context(), ghost, 9) // without a table
}
