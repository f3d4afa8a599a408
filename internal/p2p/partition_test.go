package p2p

import (
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/x/simlibp2p"
	"github.com/marcopolo/simnet"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// simulated is a network in virtual time, whose site 0 can be cut off.
type simulated struct {
	net  *simnet.Simnet
	cut  atomic.Bool
	mbps int // of the links of hosts made from now on
}

func newSimulated() *simulated {
	s := &simulated{mbps: 100}
	s.net = &simnet.Simnet{LatencyFunc: func(p *simnet.Packet) time.Duration {
		from, to := p.From.(*net.UDPAddr).IP, p.To.(*net.UDPAddr).IP
		if s.cut.Load() &&
			(from.Equal(simnet.IntToPublicIPv4(0)) || to.Equal(simnet.IntToPublicIPv4(0))) {
			return 24 * time.Hour // the simulator knows no loss
		}
		return 5 * time.Millisecond
	}}
	return s
}

func (s *simulated) host(t *testing.T, i int, more ...libp2p.Option) host.Host {
	t.Helper()
	link := simnet.LinkSettings{BitsPerSecond: s.mbps * simlibp2p.OneMbps}
	h, err := libp2p.New(append(more,
		libp2p.ListenAddrStrings(fmt.Sprintf("/ip4/%s/udp/8000/quic-v1", simnet.IntToPublicIPv4(i))),
		libp2p.DisableIdentifyAddressDiscovery(), libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableMetrics(), libp2p.DisableRelay(),
		simlibp2p.QUICSimnet(s.net, simnet.NodeBiDiLinkSettings{Downlink: link, Uplink: link}))...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAPartitionOfAMinuteHeals(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const sites = 4
		world := newSimulated()
		var nodes []node
		var hosts []host.Host
		for i := range sites {
			hosts = append(hosts, world.host(t, i))
		}
		world.net.Start()
		defer world.net.Close()
		for i, h := range hosts {
			cfg := Config{
				Host: h, Domain: "lab", Incarnation: 1, AcceptAnyone: true, Preset: PresetLAN,
				AddressFile: filepath.Join(dir, fmt.Sprint(i)),
			}
			if i > 0 {
				first, err := peer.AddrInfoToP2pAddrs(&peer.AddrInfo{
					ID: hosts[0].ID(), Addrs: hosts[0].Addrs(),
				})
				if err != nil {
					t.Fatal(err)
				}
				cfg.Bootstrap = []string{first[0].String()}
			}
			rec := &recorder{}
			m, err := New(t.Context(), cfg, rec.handlers(), nil)
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, node{m, rec})
		}
		defer func() {
			for i, n := range nodes {
				_ = n.Close()
				_ = hosts[i].Close()
			}
		}()
		begin := time.Now()
		whole := func(what string, limit time.Duration) {
			t.Helper()
			for since := time.Now(); ; time.Sleep(100 * time.Millisecond) {
				full := true
				for _, n := range nodes {
					full = full && n.peers() == sites-1 && n.hears(nodes)
				}
				if full {
					t.Logf("%s after %s (at %s)", what, time.Since(since), time.Since(begin))
					return
				}
				if time.Since(since) > limit {
					t.Fatalf("not within %s: %s", limit, what)
				}
			}
		}
		whole("mesh is whole", 10*time.Second)
		world.cut.Store(true)
		time.Sleep(time.Minute)
		for i, n := range nodes {
			want := 1
			if i == 0 {
				want = sites - 1
			}
			if got := n.losses(); len(got) != want || got[0].refusing {
				t.Errorf("site %d was told %+v, want %d losses that prove nothing", i, got, want)
			}
		}
		world.cut.Store(false)
		whole("mesh is whole again", 45*time.Second)
		before := nodes[3].count()
		if err := nodes[0].Broadcast(announcement(nodes[0].Self(), 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := nodes[3].count() - before; got != 1 {
			t.Errorf("an announcement after the partition came %d times, want once", got)
		}
	})
}

func TestARestartedAgentIsAdmittedBeforeItsOldConnectionEnds(t *testing.T) {
	id := newForge(t)
	synctest.Test(t, func(t *testing.T) {
		world := newSimulated()
		old, other := world.host(t, 0, libp2p.Identity(id.key)), world.host(t, 1)
		again := world.host(t, 2, libp2p.Identity(id.key))
		world.net.Start()
		defer world.net.Close()
		start := func(h host.Host, incarnation uint64) node {
			cfg := Config{Host: h, Domain: "lab", Incarnation: incarnation, AcceptAnyone: true}
			if h != other {
				cfg.Bootstrap = []string{other.Addrs()[0].String() + "/p2p/" + other.ID().String()}
			}
			rec := &recorder{}
			m, err := New(t.Context(), cfg, rec.handlers(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return node{m, rec}
		}
		witness, first := start(other, 1), start(old, 1)
		time.Sleep(5 * time.Second)
		if f, ok := witness.facts(id.site); !ok || f.Incarnation != 1 {
			t.Fatalf("facts = %+v, %t; want incarnation 1", f, ok)
		}
		world.cut.Store(true) // the first process falls silent
		second := start(again, 2)
		time.Sleep(5 * time.Second)
		if f, ok := witness.facts(id.site); !ok || f.Incarnation != 2 {
			t.Errorf("facts = %+v, %t; want incarnation 2", f, ok)
		}
		if got := witness.losses(); len(got) != 1 || !got[0].refusing {
			t.Errorf("losses = %+v, want one that is proven", got)
		}
		if err := witness.Send(id.site, protocol.Cancel{Job: jobID(1)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if second.count() != 1 {
			t.Errorf("the second process got %d messages, want 1", second.count())
		}
		for _, n := range []node{witness, first, second} {
			_ = n.Close()
			_ = n.Host().Close()
		}
	})
}
