package p2p

import (
	"context"
	"fmt"
	"sync"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/peer"
	lp "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// discover starts the two further ways of finding members, where they are
// wanted.
func (m *Mesh) discover(ctx context.Context) error {
	if m.cfg.MDNS {
		service := mdns.NewMdnsService(m.host, mdnsName(m.cfg.Domain), found{m})
		if err := service.Start(); err != nil {
			return fmt.Errorf("find sites on the local network: %w", err)
		}
		m.wg.Go(func() {
			<-ctx.Done()
			_ = service.Close()
		})
	}
	if m.cfg.DHT {
		return m.finder.start(ctx)
	}
	return nil
}

// mdnsName is the domain's service on the local network. A label has at most 63
// bytes; should two domains share what is left, Hello tells them apart.
func mdnsName(d grid.DomainID) string {
	label := "_mrs-" + string(d)
	return label[:min(len(label), 63)] + "._udp"
}

// found is told of sites on the local network.
type found struct{ m *Mesh }

// HandlePeerFound takes the site as hearsay: it is dialled if it may be a member,
// and then Hello decides.
func (f found) HandlePeerFound(info peer.AddrInfo) {
	if info.ID == f.m.host.ID() || len(info.Addrs) == 0 || !f.m.Allowed(info.ID) ||
		len(f.m.Peers()) >= f.m.cfg.Limits.Members {
		return
	}
	for _, a := range info.Addrs[:min(len(info.Addrs), maxRememberedAddr)] {
		f.m.hearOf(info.ID, peer.AddrInfo{ID: info.ID, Addrs: []ma.Multiaddr{a}})
	}
}

// Bounds of looking members up.
const (
	lookupTimeout = 20 * time.Second
	lookupAfter   = 2  // failed attempts to reach a member
	lookupBuckets = 20 // entries of the routing table for each distance
)

// finder asks members for the addresses of members that are not reached, in a
// routing table of the domain's own. It asks for one member at a time.
type finder struct {
	m     *Mesh
	table *dht.IpfsDHT // nil: not wanted
	slot  chan struct{}

	mu    sync.Mutex
	asked map[grid.SiteID]time.Time
}

func newFinder(m *Mesh) *finder {
	return &finder{m: m, slot: make(chan struct{}, 1), asked: make(map[grid.SiteID]time.Time)}
}

// start joins the routing table. Nothing is stored there: it holds members'
// addresses, which its nodes know from their connections.
func (f *finder) start(ctx context.Context) error {
	table, err := dht.New(f.m.host,
		dht.ProtocolPrefix(lp.ID("/mrs/1/"+string(f.m.cfg.Domain))), dht.Mode(dht.ModeServer),
		dht.DisableProviders(), dht.DisableValues(), dht.BucketSize(lookupBuckets),
		dht.RoutingTableFilter(func(_ any, p peer.ID) bool { return f.m.Allowed(p) }),
		dht.QueryFilter(func(_ any, info peer.AddrInfo) bool { return f.m.Allowed(info.ID) }),
		dht.DisableAutoRefresh())
	if err != nil {
		return fmt.Errorf("join the routing table: %w", err)
	}
	f.table = table
	f.m.wg.Go(func() {
		<-ctx.Done()
		_ = table.Close()
	})
	return nil
}

// missed is told that the member could not be reached. After some failures the
// members that are connected are asked where it is.
func (f *finder) missed(ctx context.Context, r *remote, failures int) {
	if f.table == nil || failures < lookupAfter {
		return
	}
	f.mu.Lock()
	due := time.Since(f.asked[r.site]) >= f.m.cfg.Timing.Lookup
	f.mu.Unlock()
	if !due {
		return
	}
	select {
	case f.slot <- struct{}{}:
	default:
		return // another one is being looked for
	}
	f.mu.Lock()
	if len(f.asked) >= f.m.cfg.Limits.Peers {
		clear(f.asked)
	}
	f.asked[r.site] = time.Now()
	f.mu.Unlock()
	f.m.wg.Go(func() {
		defer func() { <-f.slot }()
		f.find(ctx, r)
	})
}

// Results of looking a member up, the label of CountLookups.
const (
	lookupFound   = "found"
	lookupUnknown = "unknown"
)

// find asks for a member and tries what is answered. The routing table may have
// reached the member already while it asked.
func (f *finder) find(ctx context.Context, r *remote) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	known := f.m.host.Peerstore().Addrs(r.id)
	info, err := f.table.FindPeer(ctx, r.id)
	_, fresh := split(info.Addrs, func(a ma.Multiaddr) bool { return ma.Contains(known, a) })
	if err != nil || len(fresh) == 0 && !r.connected() {
		f.m.counts.Inc(wire.CountLookups, lookupUnknown)
		f.m.log.Debug("nobody knows where the member is", "peer", r.site, "error", err)
		return
	}
	f.m.counts.Inc(wire.CountLookups, lookupFound)
	f.m.log.Info("members told where a member is", "peer", r.site)
	r.kick()
}
