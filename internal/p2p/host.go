package p2p

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
)

// quicAfterTCP delays a QUIC address after a TCP address of the same peer inside
// a domain: over TCP a dead agent is noticed in milliseconds, over QUIC
// in tens of seconds.
const quicAfterTCP = 500 * time.Millisecond

// newHost makes the libp2p host that the configuration describes.
func newHost(m *Mesh, id wire.Identity) (host.Host, error) {
	limits, err := resources(m.cfg.Limits)
	if err != nil {
		return nil, fmt.Errorf("set limits: %w", err)
	}
	manager, err := connmgr.NewConnManager(m.cfg.Limits.Members, 2*m.cfg.Limits.Members,
		connmgr.WithGracePeriod(time.Minute))
	if err != nil {
		return nil, fmt.Errorf("make connection manager: %w", err)
	}
	options := []libp2p.Option{
		libp2p.Identity(id.Key()), libp2p.UserAgent("mrsmesh"),
		libp2p.ResourceManager(metered{limits, m}), libp2p.ConnectionManager(manager),
		libp2p.ConnectionGater(gater{m}),
		libp2p.Transport(libp2pquic.NewTransport), libp2p.DisableMetrics(),
		libp2p.Ping(false), libp2p.WithDialTimeout(m.cfg.Timing.Dial),
	}
	wide := m.cfg.Preset == PresetWAN
	options = append(options, libp2p.SwarmOpts(swarm.WithDialRanker(dialRanker(wide))))
	m.puncher = relay.NewPuncher(m.counts, m.log)
	options = append(options, m.cfg.NAT.Options(m.cfg.Listen, wide, m.puncher)...)
	h, err := libp2p.New(options...)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return h, nil
}

// dialRanker orders the addresses of a peer; wide: sites are not in a local network.
func dialRanker(wide bool) network.DialRanker {
	if wide {
		return relaysLast(swarm.DefaultDialRanker)
	}
	return relaysLast(tcpFirst)
}

// relayWait delays an address through a relay after a direct one. A peer of the
// same local network must be dialled there first, too.
const relayWait = time.Second

// relaysLast ranks direct addresses and appends those through relays.
func relaysLast(rank network.DialRanker) network.DialRanker {
	return func(addrs []ma.Multiaddr) []network.AddrDelay {
		circuits, direct := split(addrs, relay.IsCircuit)
		if len(circuits) == 0 || len(direct) == 0 {
			return rank(addrs)
		}
		order := rank(direct)
		for _, d := range rank(circuits) {
			order = append(order, network.AddrDelay{Addr: d.Addr, Delay: d.Delay + relayWait})
		}
		return order
	}
}

// split parts the addresses into those that are so and the others, each in
// their order.
func split(addrs []ma.Multiaddr, so func(ma.Multiaddr) bool) (yes, no []ma.Multiaddr) {
	for _, a := range addrs {
		if so(a) {
			yes = append(yes, a)
		} else {
			no = append(no, a)
		}
	}
	return yes, no
}

// tcpFirst dials the TCP addresses immediately, and the others only if that
// leads nowhere.
func tcpFirst(addrs []ma.Multiaddr) []network.AddrDelay {
	streams, others := split(addrs, isTCP)
	if len(streams) == 0 {
		return swarm.DefaultDialRanker(others)
	}
	order := swarm.DefaultDialRanker(streams)
	for _, d := range swarm.DefaultDialRanker(others) {
		order = append(order, network.AddrDelay{Addr: d.Addr, Delay: d.Delay + quicAfterTCP})
	}
	return order
}

// resources makes the resource manager. libp2p's own limits let 8 connections
// come from one address: too few for a laboratory behind one router.
func resources(l Limits) (network.ResourceManager, error) {
	scaled := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&scaled)
	conns := rcmgr.LimitVal(4 * l.Members)
	streams := rcmgr.LimitVal(64 * l.Members)
	wanted := rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{
			Conns: conns, ConnsInbound: conns, ConnsOutbound: conns,
			Streams: streams, StreamsInbound: streams, StreamsOutbound: streams,
			FD: conns, Memory: 512 << 20,
		},
		Transient: rcmgr.ResourceLimits{
			Conns: conns, ConnsInbound: conns, ConnsOutbound: conns,
			Streams: conns, StreamsInbound: conns, StreamsOutbound: conns, FD: conns,
		},
		// One peer has a few connections and streams: gossip, messages, identify, and
		// those of data and logs.
		PeerDefault: rcmgr.ResourceLimits{
			Conns: 8, ConnsInbound: 8, ConnsOutbound: 8, FD: 8,
			Streams: 256, StreamsInbound: 128, StreamsOutbound: 256, Memory: 64 << 20,
		},
	}
	perSubnet := l.ConnsPerSubnet
	limiter := &rate.Limiter{
		NetworkPrefixLimits: []rate.PrefixLimit{
			{Prefix: netip.MustParsePrefix("127.0.0.0/8")}, {Prefix: netip.MustParsePrefix("::1/128")},
		},
		SubnetRateLimiter: rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: burst(perSubnet)}},
			IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: burst(perSubnet)}},
			GracePeriod:      time.Minute,
		},
	}
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(wanted.Build(scaled.AutoScale())),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: perSubnet}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: perSubnet}}),
		rcmgr.WithNetworkPrefixLimit(
			[]rcmgr.NetworkPrefixLimit{{
				Network: netip.MustParsePrefix("127.0.0.0/8"), ConnCount: math.MaxInt,
			}},
			[]rcmgr.NetworkPrefixLimit{{Network: netip.MustParsePrefix("::1/128"), ConnCount: math.MaxInt}}),
		rcmgr.WithConnRateLimiters(limiter), rcmgr.WithMetricsDisabled())
}

// burst lets a subnet open all its connections in a row, and again every 32 s.
func burst(conns int) rate.Limit {
	return rate.Limit{RPS: float64(conns) / 32, Burst: 2 * conns}
}
