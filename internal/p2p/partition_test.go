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
)

// simulated is a network in virtual time, whose site 0 can be cut off.
type simulated struct {
	net *simnet.Simnet
	cut atomic.Bool
}

func newSimulated() *simulated {
	s := &simulated{}
	s.net = &simnet.Simnet{LatencyFunc: func(p *simnet.Packet) time.Duration {
		from, to := p.From.(*net.UDPAddr).IP, p.To.(*net.UDPAddr).IP
		if s.cut.Load() && (from.Equal(simnet.IntToPublicIPv4(0)) || to.Equal(simnet.IntToPublicIPv4(0))) {
			return 24 * time.Hour // the simulator knows no loss
		}
		return 5 * time.Millisecond
	}}
	return s
}

func (s *simulated) host(t *testing.T, i int) host.Host {
	t.Helper()
	link := simnet.LinkSettings{BitsPerSecond: 100 * simlibp2p.OneMbps}
	h, err := libp2p.New(
		libp2p.ListenAddrStrings(fmt.Sprintf("/ip4/%s/udp/8000/quic-v1", simnet.IntToPublicIPv4(i))),
		libp2p.DisableIdentifyAddressDiscovery(), libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableMetrics(), libp2p.DisableRelay(),
		simlibp2p.QUICSimnet(s.net, simnet.NodeBiDiLinkSettings{Downlink: link, Uplink: link}))
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
				first, err := peer.AddrInfoToP2pAddrs(&peer.AddrInfo{ID: hosts[0].ID(), Addrs: hosts[0].Addrs()})
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
					full = full && n.peers() == sites-1 && len(n.gossip.topic.ListPeers()) == sites-1
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
			if got := n.losses(); len(got) != want || got[0].proven {
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
