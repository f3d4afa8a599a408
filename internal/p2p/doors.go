package p2p

import (
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Where both gateways of a link are behind routers, one of them is reached through a door: a
// member of its domain that relays, and that the other domain hears of anyway, since it may stand
// in. No other member's ID or address crosses a border.

// BorderAddrs are the addresses of this site that linked domains may hear, multiaddrs that end in
// /p2p/ID: those of its own, and those through doors.
func (m *Mesh) BorderAddrs() []string {
	addrs := slices.DeleteFunc(m.relays.Addrs(), m.hides(m.speakers()))
	return append(m.ownAddrs(), nameAddrs(m.host.ID(), addrs, true)...)
}

// hides tells which addresses lead through members that linked domains do not hear of.
func (m *Mesh) hides(known []grid.SiteID) func(ma.Multiaddr) bool {
	return func(a ma.Multiaddr) bool {
		return relay.IsCircuit(a) && !slices.Contains(known, relay.Through(a))
	}
}

// speakers are the sites that linked domains hear of: the gateway and its deputies, as far as
// this site is one of them.
func (m *Mesh) speakers() []grid.SiteID {
	if m.cfg.Links.Holds() {
		return m.gates.DeputyIDs()
	}
	if told, deputy := m.cfg.Links.Deputy(); deputy {
		return append([]grid.SiteID{told.Gateway}, told.Deputies...)
	}
	return nil
}

// doors are the peers at which this site holds slots for the sake of links.
func (m *Mesh) doors() (ids []peer.ID) {
	for _, site := range m.speakers() {
		if id, err := wire.PeerOf(site); err == nil && id != m.host.ID() {
			ids = append(ids, id)
		}
	}
	return ids
}

// crosses reports whether a stranger may reach a member through this site, which is a door: who
// speaks for a linked domain, or comes for an invitation, may reach who speaks for this one.
func (m *Mesh) crosses(stranger, to peer.ID) bool {
	if _, deputy := m.cfg.Links.Deputy(); !deputy {
		return false
	}
	return slices.Contains(m.doors(), to) && (m.borders(stranger) || m.lobby.Houses(stranger))
}

// addrsAt lists where members were reached, as multiaddrs that end in /p2p/ID, for linked domains.
func (m *Mesh) addrsAt(members []grid.SiteID) func(grid.SiteID) []string {
	hidden := m.hides(members)
	return func(site grid.SiteID) (texts []string) {
		id, err := wire.PeerOf(site)
		if err != nil {
			return nil
		}
		known := m.book.addrs(id)
		if len(known) == 0 {
			known = m.host.Peerstore().Addrs(id)
		}
		for _, addr := range known {
			if !hidden(addr) {
				texts = append(texts, addr.String()+"/p2p/"+string(site))
			}
		}
		return texts
	}
}
