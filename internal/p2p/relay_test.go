package p2p

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// hidden makes a site open no port: it is reached through members or not at all.
func hidden(cfg *Config) {
	cfg.Listen = []string{circuit}
	cfg.NAT = relay.NAT{Relay: relay.Use, Reachability: relay.ReachabilityPrivate}
}

// relayed starts a site that relays and n hidden ones, all of which know only
// the first.
func relayed(t *testing.T, n int) []node {
	t.Helper()
	return cluster(t, n+1, func(i int, cfg *Config) {
		if i == 0 {
			cfg.NAT.Relay = relay.Serve
		} else {
			hidden(cfg)
		}
	})
}

func TestHiddenMembersMeetThroughARelay(t *testing.T) {
	nodes := relayed(t, 2)
	server, a, b := nodes[0], nodes[1], nodes[2]
	for _, pair := range [][2]node{{a, b}, {b, a}} {
		i := slices.IndexFunc(pair[0].Peers(), func(p Peer) bool { return p.Site == pair[1].Self() })
		if i < 0 || pair[0].Peers()[i].Relay != server.Self() {
			t.Errorf("peers = %+v, want %s through %s", pair[0].Peers(), pair[1].Self(), server.Self())
		}
		want := Reach{
			relay.Reach{Reachability: relay.ReachabilityPrivate, Relays: []grid.SiteID{server.Self()}}, 1, 1,
		}
		if got := pair[0].Reach(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("Reach() = %+v, want %+v", got, want)
		}
		if err := pair[0].Send(pair[1].Self(), protocol.Cancel{Job: jobID(1)}); err != nil {
			t.Errorf("Send() = %v", err)
		}
		eventually(t, "the message arrives", func() bool { return pair[1].count() > 0 })
	}
	if got := server.Reach(); got.Reachability != relay.ReachabilityPublic || !got.Serving ||
		got.Direct != 2 || got.Relayed != 0 {
		t.Errorf("the relay's Reach() = %+v, want public, serving, 2 direct peers", got)
	}
	before := b.count()
	for i := range 300 {
		if err := a.Broadcast(announcement(a.Self(), i)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "announcements arrive at the relayed member", func() bool {
		return b.count() == before+300
	})
}

func TestTheRelaysEndIsNobodyElsesDeath(t *testing.T) {
	nodes := relayed(t, 2)
	for _, n := range nodes[1:] {
		for _, other := range nodes[1:] {
			if r := n.lookup(other.Self()); r != nil && len(proofs(r)) > 0 {
				t.Errorf("%v would prove the death of a relayed member", proofs(r))
			}
		}
	}
	if err := nodes[0].Close(); err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes[1:] {
		other := nodes[2-i].Self()
		eventually(t, "both are lost", func() bool { return len(n.losses()) == 2 })
		for _, loss := range n.losses() {
			if loss.site == other && loss.refusing {
				t.Errorf("the end of the relay proved the death of %s", other)
			}
		}
	}
}

func TestMembersMeetAgainWhenTheRelayIsBack(t *testing.T) {
	cfg := testConfig(t)
	cfg.NAT.Relay = relay.Serve
	first := startSite(t, cfg)
	nodes := []node{first}
	for range 2 {
		behind := testConfig(t)
		hidden(&behind)
		behind.Bootstrap = first.Addrs()
		nodes = append(nodes, startSite(t, behind))
	}
	whole(t, nodes)
	for _, a := range first.Host().Network().ListenAddresses() {
		if !relay.IsCircuit(a) {
			cfg.Listen = []string{a.String()}
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[1:] {
		eventually(t, "both are lost", func() bool { return n.peers() == 0 })
	}
	cfg.Incarnation++
	nodes[0] = startSite(t, cfg)
	whole(t, nodes)
}

func proofs(r *remote) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	targets := make(map[string]bool)
	for target := range r.knocked {
		targets[target.String()] = true
	}
	return targets
}

func TestNothingProvesTheDeathOfAMemberBehindARouter(t *testing.T) {
	nodes := cluster(t, 2, nil)
	r := nodes[0].lookup(nodes[1].Self())
	eventually(t, "the address would prove a death", func() bool { return len(proofs(r)) == 1 })
	nodes[0].learn(r.id, []string{nodes[0].Addrs()[0] + circuit + "/p2p/" + string(r.site)})
	if err := nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is told", func() bool { return len(nodes[0].losses()) == 1 })
	if nodes[0].losses()[0].refusing {
		t.Error("a refusal in front of which a router may stand proved a death")
	}
}

func TestStreamsMoveToADirectConnectionAndLoseNothing(t *testing.T) {
	const messages = 400
	nodes := relayed(t, 2)
	server, a, b := nodes[0], nodes[1], nodes[2]
	before := b.count()
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for i := range messages {
		if err := a.Send(b.Self(), protocol.Cancel{Job: jobID(i)}); err != nil {
			t.Fatal(err)
		}
		if i == messages/4 {
			connectDirectly(t, a, b)
		}
		<-pace.C
	}
	eventually(t, fmt.Sprintf("all messages arrive (%d)", b.count()-before), func() bool {
		return b.count() == before+messages
	})
	for _, n := range []node{a, b} {
		eventually(t, "the streams move", func() bool { return n.Count(wire.CountMoves, moveOK) == 1 })
		eventually(t, "the relayed connection ends", func() bool {
			return !slices.ContainsFunc(n.Host().Network().Conns(), func(c network.Conn) bool {
				return relay.IsCircuit(c.RemoteMultiaddr())
			})
		})
		eventually(t, "nobody is relayed", func() bool { return n.Reach().Relayed == 0 })
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []node{a, b} {
		eventually(t, "the relay is gone", func() bool { return len(n.losses()) > 0 })
		if got := n.losses(); len(got) != 1 || got[0].site != server.Self() {
			t.Errorf("losses = %+v, want only the relay", got)
		}
	}
	at := b.count()
	eventually(t, "gossip finds the direct connection", func() bool {
		return a.hears([]node{b}) && !a.gossip.Reaches(server.Host().ID())
	})
	if err := a.Broadcast(announcement(a.Self(), 1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an announcement arrives", func() bool { return b.count() > at })
}

// connectDirectly stands for a hole that is punched.
func connectDirectly(t *testing.T, from, to node) {
	t.Helper()
	at, err := ma.NewMultiaddr("/ip4/127.0.0.1/tcp/0")
	if err == nil {
		err = to.Host().Network().Listen(at)
	}
	if err != nil {
		t.Fatal(err)
	}
	listens := slices.DeleteFunc(to.Host().Network().ListenAddresses(), relay.IsCircuit)
	ctx := network.WithForceDirectDial(t.Context(), "test")
	if err := from.Host().Connect(ctx, peer.AddrInfo{ID: to.Host().ID(), Addrs: listens}); err != nil {
		t.Fatalf("Connect() = %v", err)
	}
}

func TestAConnectionThatAnswersNothingIsNotMovedTo(t *testing.T) {
	nodes := relayed(t, 2)
	a, b := nodes[1], nodes[2]
	b.Host().RemoveStreamHandler(protocol.StreamID) // the new connection carries nothing
	connectDirectly(t, a, b)
	eventually(t, "the move fails", func() bool { return a.Count(wire.CountMoves, moveFailed) > 0 })
	if got := a.losses(); len(got) != 0 {
		t.Errorf("losses = %+v, want none", got)
	}
	at := b.count()
	if err := a.Send(b.Self(), protocol.Cancel{Job: jobID(1)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the relayed stream still carries", func() bool { return b.count() > at })
}

func TestStrangersGetNoSlotAndReachNobody(t *testing.T) {
	nodes := relayed(t, 1)
	server, member := nodes[0], nodes[1]
	stranger, err := libp2p.New(libp2p.NoListenAddrs, libp2p.EnableRelay(), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	info, err := peer.AddrInfoFromString(server.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err = stranger.Connect(ctx, *info); err != nil { // anyone may connect, and must then say Hello
		t.Fatalf("Connect() = %v", err)
	}
	if _, err = client.Reserve(ctx, stranger, *info); err == nil {
		t.Error("a stranger got a slot")
	}
	through, err := peer.AddrInfoFromString(
		server.Addrs()[0] + circuit + "/p2p/" + string(member.Self()),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err = stranger.Connect(ctx, *through); err == nil {
		t.Error("a stranger reached a member through the relay")
	}
}

func TestARelayThatIsFullIsSaidSo(t *testing.T) {
	nodes := cluster(t, 2, func(i int, cfg *Config) {
		cfg.NAT.Relay = relay.Serve
		cfg.Limits.RelaySlots = 1
		if i > 0 {
			hidden(cfg)
		}
	})
	eventually(t, "the slot is taken", func() bool { return len(nodes[1].Reach().Relays) == 1 })
	cfg := testConfig(t)
	hidden(&cfg)
	cfg.Bootstrap = nodes[0].Addrs()
	late := startSite(t, cfg)
	eventually(t, "the second is refused", func() bool {
		return late.Count(wire.CountRelays, "refused") > 1
	})
	if got := late.Reach().Relays; len(got) != 0 {
		t.Errorf("relays = %v, want none", got)
	}
	if err := nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slot is free again", func() bool { return len(late.Reach().Relays) == 1 })
}

func TestAddressesThroughRelaysAreNamedLast(t *testing.T) {
	server, id := newForge(t), newForge(t)
	p, err := wire.PeerOf(id.site)
	if err != nil {
		t.Fatal(err)
	}
	through := func(ip string) string {
		return "/ip4/" + ip + "/tcp/1/p2p/" + string(server.site) + circuit
	}
	addrs := parseAddrs([]string{
		"/ip4/10.0.0.1/tcp/1", "/ip4/10.0.0.2/tcp/1", "/ip4/10.0.0.3/tcp/1",
		through("127.0.0.1"), through("8.8.8.8"), through("8.8.4.4"), through("1.1.1.1"),
	})
	me := "/p2p/" + string(id.site)
	want := []string{
		"/ip4/10.0.0.1/tcp/1" + me, "/ip4/10.0.0.2/tcp/1" + me, through("8.8.8.8") + me,
		through("8.8.4.4") + me,
	}
	if got := nameAddrs(p, addrs, false); !slices.Equal(got, want) {
		t.Errorf("nameAddrs(far) = %q, want %q", got, want)
	}
	want[2], want[3] = through("127.0.0.1")+me, through("8.8.8.8")+me
	if got := nameAddrs(p, addrs, true); !slices.Equal(got, want) {
		t.Errorf("nameAddrs(near) = %q, want %q", got, want)
	}
	if got := relay.Through(addrs[4]); got != server.site {
		t.Errorf("relay.Through(%s) = %s, want %s", addrs[4], got, server.site)
	}
	order := relaysLast(tcpFirst)(append(slices.Clone(addrs[4:]), addrs[:3]...))
	for _, d := range order {
		if late := d.Delay >= relayWait; late != relay.IsCircuit(d.Addr) {
			t.Errorf("%s is dialled after %s", d.Addr, d.Delay)
		}
	}
}
