package p2p

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/time/rate"

	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Bounds of what is remembered of peers that were parted from.
const (
	maxParted = 1024 // peers, and as many addresses; then the one that ends first is forgotten
	// connections that are looked at from all addresses of such peers together, in a row: an
	// honest site may be behind the same router
	knockBurst = 4
	knockRate  = 1                     // and per second in the long run
	knockPause = 20 * time.Millisecond // before the next connection is accepted, after such a one
)

// partings are the peers that cost this site too much a short while ago. They are kept out until
// their time is over. It is safe for concurrent use; its zero value is ready once patience is set.
type partings struct {
	patience time.Duration // for so long a peer is kept out

	some   atomic.Bool // something is or was in sites; asked before mu
	mu     sync.Mutex
	sites  map[grid.SiteID]time.Time // until when
	addrs  map[netip.Addr]time.Time  // from where they were connected, until when
	knocks *rate.Limiter             // connections from there
}

// add keeps a site out from now on. It reports false when it was already.
func (p *partings) add(site grid.SiteID, from []netip.Addr, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sites == nil {
		p.sites, p.addrs = make(map[grid.SiteID]time.Time), make(map[netip.Addr]time.Time)
		p.knocks = rate.NewLimiter(knockRate, knockBurst)
	}
	if p.sites[site].After(now) {
		return false
	}
	p.some.Store(true)
	remember(p.sites, site, now, p.patience)
	for _, addr := range from {
		remember(p.addrs, addr, now, p.patience)
	}
	return true
}

// remember notes the key until patience is over, in a table of bounded size.
func remember[K comparable](table map[K]time.Time, key K, now time.Time, patience time.Duration) {
	if _, known := table[key]; !known && len(table) >= maxParted {
		var first K
		end := now.Add(patience)
		for k, until := range table {
			if !until.After(end) {
				first, end = k, until
			}
		}
		delete(table, first)
	}
	table[key] = now.Add(patience)
}

// has reports whether a peer is kept out.
func (p *partings) has(id peer.ID, now time.Time) bool {
	return p.some.Load() && p.hasSite(wire.SiteOf(id), now)
}

// hasSite reports whether a site is kept out.
func (p *partings) hasSite(site grid.SiteID, now time.Time) bool {
	if !p.some.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sites[site].After(now)
}

// comes reports whether a peer is kept out, and notes from where it comes.
func (p *partings) comes(id peer.ID, at network.ConnMultiaddrs, now time.Time) bool {
	if !p.has(id, now) {
		return false
	}
	if addr, ok := ipOf(at.RemoteMultiaddr()); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		remember(p.addrs, addr, now, p.patience)
	}
	return true
}

// list names the sites that are kept out, ascending.
func (p *partings) list(now time.Time) (sites []grid.SiteID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for site, until := range p.sites {
		if until.After(now) {
			sites = append(sites, site)
		}
	}
	slices.Sort(sites)
	return sites
}

// KeptOut names the sites that cost this one too much a short while ago, ascending. They are
// turned away for some minutes.
func (m *Mesh) KeptOut() []grid.SiteID { return m.keptOut.list(time.Now()) }

// accepts reports whether a connection is looked at, by where it comes from.
func (p *partings) accepts(c network.ConnMultiaddrs, now time.Time) bool {
	if !p.some.Load() {
		return true
	}
	addr, ok := ipOf(c.RemoteMultiaddr())
	p.mu.Lock()
	defer p.mu.Unlock()
	return !ok || !p.addrs[addr].After(now) || p.knocks.AllowN(now, 1)
}

// ipOf is the IP address from which a direct connection comes.
func ipOf(a ma.Multiaddr) (netip.Addr, bool) {
	ip, err := manet.ToIP(a)
	if err != nil || relay.IsCircuit(a) { // that is the relay's address
		return netip.Addr{}, false
	}
	addr, ok := netip.AddrFromSlice(ip)
	return addr.Unmap(), ok
}

// part ends all that this site has to do with a peer, for some minutes: it costs too much. It
// returns immediately and may be called while libp2p holds its locks.
func (m *Mesh) part(id peer.ID, why string) {
	if m.keptOut.has(id, time.Now()) || !m.enter() {
		return
	}
	defer m.wg.Done()
	m.after(0, func() { m.partNow(id, why) })
}

func (m *Mesh) partNow(id peer.ID, why string) {
	site := wire.SiteOf(id)
	var from []netip.Addr
	for _, c := range m.host.Network().ConnsToPeer(id) {
		if addr, ok := ipOf(c.RemoteMultiaddr()); ok {
			from = append(from, addr)
		}
	}
	if !m.keptOut.add(site, from, time.Now()) {
		return
	}
	m.counts.Inc(wire.CountParted, why)
	m.log.Warn("a peer made this site too much work, and is kept out for a time",
		"peer", site, "too_many", why, "time", m.keptOut.patience)
	if r := m.lookup(site); r != nil {
		m.expel(r, grid.ReasonFlood)
	}
	m.after(farewell, func() { _ = m.host.Network().ClosePeer(id) })
	m.after(m.keptOut.patience, func() { m.want(id, nil) })
}
