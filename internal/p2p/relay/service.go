package relay

import (
	"github.com/libp2p/go-libp2p/core/peer"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
)

// startService begins to relay for members. What is relayed is bounded in
// number and not in bytes: libp2p's usual bound of 128 KiB carries no gossip.
func (r *Relays) startService() {
	resources := circuit.DefaultResources()
	resources.Limit, resources.ReservationTTL, resources.BufferSize = nil, slotTime, relayBuffer
	resources.MaxReservations, resources.MaxCircuits = r.cfg.Slots, r.cfg.Circuits
	// Members are known by name; many of them may stand behind one router.
	resources.MaxReservationsPerIP, resources.MaxReservationsPerASN = r.cfg.Slots, r.cfg.Slots
	none := func(ma.Multiaddr) bool { return false } // members know where we are
	service, err := circuit.New(r.cfg.Host, circuit.WithResources(resources),
		circuit.WithACL(acl{r.cfg}), circuit.WithReservationAddressFilter(none))
	if err != nil {
		r.cfg.Log.Error("this site cannot relay", "error", err)
		return
	}
	r.mu.Lock()
	r.service = service
	r.mu.Unlock()
	r.cfg.Log.Info("this site relays for members")
}

func (r *Relays) stopService() {
	r.mu.Lock()
	service := r.service
	r.service = nil
	r.mu.Unlock()
	if service != nil {
		_ = service.Close()
	}
}

// acl lets only members relay, and only to members; and whom a link brings, see Config.Crosses.
type acl struct{ cfg Config }

// AllowReserve lets admitted members be reached through this site.
func (a acl) AllowReserve(p peer.ID, _ ma.Multiaddr) bool { return a.admitted(p) }

// AllowConnect lets members reach admitted members. Who has just connected in
// order to dial through this site may be on the list and not yet admitted.
func (a acl) AllowConnect(src peer.ID, _ ma.Multiaddr, dest peer.ID) bool {
	if !a.admitted(dest) {
		return false
	}
	return a.cfg.Members.Allowed(src) && (!a.cfg.Anyone || a.admitted(src)) ||
		a.cfg.Crosses != nil && a.cfg.Crosses(src, dest)
}

func (a acl) admitted(p peer.ID) bool {
	return a.cfg.Members.Allowed(p) && a.cfg.Members.Admitted(p)
}
