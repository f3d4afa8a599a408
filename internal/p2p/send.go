package p2p

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Send puts the message into the queue to one site and returns immediately.
// Nothing is promised: a message is lost when the site cannot be reached or takes
// nothing. Send fails when the site is this one, is no member, or has no known
// address; when too much waits for it; and when the mesh is closed.
func (m *Mesh) Send(to grid.SiteID, message protocol.Message) error {
	if to == m.self {
		return errSelf
	}
	message, err := m.signed(message)
	if err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	frame, err := protocol.AppendFrame(nil, message)
	if err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(to)
	if err == nil {
		err = r.enqueue(frame)
	}
	if err != nil {
		return fmt.Errorf("send %s to %s: %w", wire.NameOf(message), to, err)
	}
	m.counts.Inc(wire.CountOut, wire.NameOf(message))
	return nil
}

// Waiting tells how many bytes wait to be sent to a site. Who has much to say to it that can wait
// keeps that low: what other parts of the agent say is behind it.
func (m *Mesh) Waiting(to grid.SiteID) int64 {
	if r := m.lookup(to); r != nil {
		return r.queued.Load()
	}
	return 0
}

// find is the owner of a peer to which something is to be sent; m.mu is held.
func (m *Mesh) find(site grid.SiteID) (*remote, error) {
	if r, ok := m.remotes[site]; ok && !m.closed {
		return r, nil
	}
	if !m.allowsSite(site) {
		return nil, errNotMember
	}
	id, err := wire.PeerOf(site)
	if err != nil {
		return nil, err
	}
	if len(m.host.Peerstore().Addrs(id)) == 0 && !m.book.has(id) {
		return nil, errUnknownSite
	}
	return m.remote(id)
}

// remote is the owner of a peer, made if need be; m.mu is held.
func (m *Mesh) remote(id peer.ID) (*remote, error) {
	site := wire.SiteOf(id)
	switch r, ok := m.remotes[site]; {
	case m.closed:
		return nil, errClosed
	case ok:
		return r, nil
	case site == m.self:
		return nil, errSelf
	case !m.allowsSite(site):
		return nil, errNotMember
	case len(m.remotes) >= m.cfg.Limits.Peers:
		return nil, errCrowded
	}
	r := newRemote(m, id, site)
	m.remotes[site] = r
	m.start(r)
	return r, nil
}

// want makes sure that the peer has an owner, and lets change it before it can
// be forgotten.
func (m *Mesh) want(id peer.ID, change func(*remote)) *remote {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.remote(id)
	if err != nil {
		return nil
	}
	if change != nil {
		change(r)
	}
	return r
}

// forget drops the owner of a peer that nobody needs any more.
func (m *Mesh) forget(r *remote) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(r.queue) > 0 || r.needed() {
		return false
	}
	delete(m.remotes, r.site)
	return true
}

// lookup is the owner of a peer, or nil.
func (m *Mesh) lookup(site grid.SiteID) *remote {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remotes[site]
}
