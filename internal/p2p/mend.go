package p2p

import (
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
)

// How a peer that got lost on the topic is brought back.
const (
	mendAfter  = 500 * time.Millisecond // for the streams to open anew by themselves
	mendWithin = 10 * time.Minute       // after so long gossipsub forgets how often it tried
	// times in that span; at the fourth death gossipsub gives a peer up
	mendMost   = 2
	mendPrefix = "/meshsub/" // gossipsub's protocols
)

// mending counts how often a peer was brought back.
type mending struct {
	since time.Time
	times int
}

// parted is told of every connection that ends. When another connection to the
// peer remains, gossipsub opens its streams on that one, and may then not see
// the peer on the topic: each side forgets the other's subscriptions when its
// own stream ends, which may be after the other side has told them again.
func (m *Mesh) parted(c network.Conn) {
	m.relays.Wake()
	if id := c.RemotePeer(); m.host.Network().Connectedness(id) == network.Connected {
		m.mendSoon(id)
	}
}

func (m *Mesh) mendSoon(id peer.ID) {
	if !m.enter() {
		return
	}
	defer m.wg.Done()
	m.after(mendAfter, func() { m.mend(id) })
}

// mend ends the gossip streams of an admitted peer that is not seen on the topic,
// both directions together: then both sides forget first and tell afterwards,
// because gossipsub waits before it opens streams for a second time.
func (m *Mesh) mend(id peer.ID) {
	r := m.lookup(wire.SiteOf(id))
	if r == nil || m.gossip.Reaches(id) || !r.connected() {
		return
	}
	if _, present := r.admitted(); !present || !r.mayMend(time.Now()) {
		return
	}
	for _, c := range m.host.Network().ConnsToPeer(id) {
		for _, s := range c.GetStreams() {
			if strings.HasPrefix(string(s.Protocol()), mendPrefix) {
				_ = s.Reset()
			}
		}
	}
	m.log.Debug("gossip with peer begins anew", "peer", r.site)
	m.mendSoon(id)
}

func (r *remote) mayMend(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.mended.since) > mendWithin {
		r.mended = mending{since: now}
	}
	r.mended.times++
	return r.mended.times <= mendMost
}
