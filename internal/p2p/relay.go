package p2p

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Habits of relaying.
const (
	relaysWanted   = 2                // members that relay for this site at once: one may die
	reserveTimeout = 10 * time.Second // for asking one of them
	refusedPause   = time.Minute      // longest pause before a member that said no is asked again
	slotTime       = 10 * time.Minute // a slot is given for so long and renewed at half of it
	relayBuffer    = 16 << 10         // bytes in each direction of a relayed connection
)

// relays is this site's part in relaying: the slots that it holds at members,
// and the service that it gives to members. One goroutine, run, changes them.
type relays struct {
	m    *Mesh
	wake chan struct{} // capacity 1: members or connections changed

	mu      sync.Mutex
	reach   network.Reachability
	slots   map[peer.ID]slot
	refused map[peer.ID]refusal // who said no is asked again later
	named   []ma.Multiaddr      // the addresses last told to members
	service *relay.Relay        // nil while this site does not relay
}

// refusal is when a member that said no is asked again, and the pause till then.
type refusal struct {
	until time.Time
	pause time.Duration
}

// slot is a member's promise to relay for this site.
type slot struct {
	taken, until time.Time
}

func newRelays(m *Mesh) *relays {
	return &relays{
		m: m, wake: make(chan struct{}, 1),
		slots: make(map[peer.ID]slot), refused: make(map[peer.ID]refusal),
	}
}

// run keeps slots and the service as the configuration and the reachability
// want them.
func (r *relays) run(ctx context.Context) {
	defer r.stopService()
	if r.m.cfg.NAT.Relay == RelayOff && r.m.cfg.Host != nil {
		return // an injected host may have no events
	}
	events, err := r.m.host.EventBus().Subscribe(new(event.EvtLocalReachabilityChanged))
	if err != nil {
		r.m.log.Error("reachability is not watched", "error", err)
		return
	}
	defer func() { _ = events.Close() }()
	pace := time.Hour // nothing to do
	if r.m.cfg.NAT.Relay != RelayOff {
		pace = r.m.cfg.Timing.Relay
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		r.review(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.wake:
		case e := <-events.Out():
			if changed, ok := e.(event.EvtLocalReachabilityChanged); ok {
				r.reached(changed.Reachability)
			}
		}
	}
}

func (r *relays) reached(now network.Reachability) {
	r.mu.Lock()
	was := r.reach
	r.reach = now
	r.mu.Unlock()
	if was != now {
		r.m.log.Info("reachability changed", "now", string(reachabilityOf(now)))
	}
}

func reachabilityOf(r network.Reachability) Reachability {
	switch r {
	case network.ReachabilityPublic:
		return ReachabilityPublic
	case network.ReachabilityPrivate:
		return ReachabilityPrivate
	case network.ReachabilityUnknown:
	}
	return ReachabilityUnknown
}

// review compares what is with what should be.
func (r *relays) review(ctx context.Context) {
	role := r.m.cfg.NAT.Relay
	r.mu.Lock()
	public := r.reach == network.ReachabilityPublic || role == RelayServe
	serving := r.service != nil
	r.mu.Unlock()
	switch {
	case role == RelayOff:
		return
	case public && !serving && role != RelayUse:
		r.startService()
	case !public && serving:
		r.stopService()
	}
	if public || !r.m.cfg.NAT.seeks() {
		r.dropSlots()
	} else {
		r.keepSlots(ctx)
	}
	r.publish()
}

// startService begins to relay for members. What is relayed is bounded in
// number and not in bytes: libp2p's usual bound of 128 KiB carries no gossip.
func (r *relays) startService() {
	resources := relay.DefaultResources()
	limits := r.m.cfg.Limits
	resources.Limit, resources.ReservationTTL, resources.BufferSize = nil, slotTime, relayBuffer
	resources.MaxReservations, resources.MaxCircuits = limits.RelaySlots, limits.RelayCircuits
	// Members are known by name; many of them may stand behind one router.
	resources.MaxReservationsPerIP, resources.MaxReservationsPerASN = limits.RelaySlots, limits.RelaySlots
	service, err := relay.New(r.m.host, relay.WithResources(resources), relay.WithACL(relayACL{r.m}),
		relay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return false })) // members know where we are
	if err != nil {
		r.m.log.Error("this site cannot relay", "error", err)
		return
	}
	r.mu.Lock()
	r.service = service
	r.mu.Unlock()
	r.m.log.Info("this site relays for members")
}

func (r *relays) stopService() {
	r.mu.Lock()
	service := r.service
	r.service = nil
	r.mu.Unlock()
	if service != nil {
		_ = service.Close()
	}
}

// relayACL lets only members relay, and only to members.
type relayACL struct{ m *Mesh }

// AllowReserve lets admitted members be reached through this site.
func (a relayACL) AllowReserve(p peer.ID, _ ma.Multiaddr) bool { return a.admitted(p) }

// AllowConnect lets members reach admitted members. Who has just connected in
// order to dial through this site may be on the list and not yet admitted.
func (a relayACL) AllowConnect(src peer.ID, _ ma.Multiaddr, dest peer.ID) bool {
	return a.m.Allowed(src) && (!a.m.cfg.AcceptAnyone || a.admitted(src)) && a.admitted(dest)
}

func (a relayACL) admitted(p peer.ID) bool {
	r := a.m.lookup(siteOf(p))
	if r == nil || !a.m.Allowed(p) {
		return false
	}
	_, present := r.admitted()
	return present
}

// dropSlots lets go of all slots: they are no longer renewed.
func (r *relays) dropSlots() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.slots)
}

// keepSlots forgets slots that are lost, renews old ones and asks for new ones.
func (r *relays) keepSlots(ctx context.Context) {
	now := time.Now()
	r.mu.Lock()
	var old []peer.ID
	for id, s := range r.slots {
		switch {
		case now.After(s.until) || r.m.direct(id) == nil || !r.m.Allowed(id):
			delete(r.slots, id)
			r.m.counts.inc(CountRelays, relayLost)
			r.m.log.Info("a relay is lost", "relay", siteOf(id))
		case now.Sub(s.taken) > s.until.Sub(s.taken)/2:
			old = append(old, id)
		}
	}
	wanted := relaysWanted - len(r.slots)
	r.mu.Unlock()
	for _, id := range old {
		_ = r.reserve(ctx, id)
	}
	if wanted <= 0 {
		return
	}
	for _, id := range r.candidates(now) {
		if r.reserve(ctx, id) == nil {
			wanted--
		}
		if wanted <= 0 || ctx.Err() != nil {
			return
		}
	}
}

// candidates are admitted members that relay and are connected directly, in
// random order, so that members spread over the relays.
func (r *relays) candidates(now time.Time) []peer.ID {
	var ids []peer.ID
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.m.all() {
		_, present := o.admitted()
		_, held := r.slots[o.id]
		if !present || held || now.Before(r.refused[o.id].until) || r.m.direct(o.id) == nil {
			continue
		}
		speaks, err := r.m.host.Peerstore().SupportsProtocols(o.id, proto.ProtoIDv2Hop)
		if err == nil && len(speaks) > 0 {
			ids = append(ids, o.id)
		}
	}
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] }) //nolint:gosec // a fair choice, no secret
	return ids
}

// Results of asking for a slot, the label of CountRelays.
const (
	relayHeld    = "held"
	relayRefused = "refused"
	relayLost    = "lost"
)

// errLimited says that a relay bounds bytes or time, so that it is of no use.
var errLimited = errors.New("the relay bounds what it carries")

// reserve asks a member for a slot, or renews it.
func (r *relays) reserve(ctx context.Context, id peer.ID) error {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "connected before"), reserveTimeout)
	defer cancel()
	given, err := client.Reserve(ctx, r.m.host, peer.AddrInfo{ID: id})
	if err == nil && (given.LimitData > 0 || given.LimitDuration > 0) {
		err = errLimited
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.refuse(id, now)
		r.m.counts.inc(CountRelays, relayRefused)
		r.m.log.Debug("no slot at a relay", "relay", siteOf(id), "error", err)
		return fmt.Errorf("reserve a slot at %s: %w", siteOf(id), err)
	}
	delete(r.refused, id)
	if _, had := r.slots[id]; !had {
		r.m.counts.inc(CountRelays, relayHeld)
		r.m.log.Info("a member relays for this site", "relay", siteOf(id))
	}
	// The relay's clock may differ from ours: count from now, at most slotTime.
	r.slots[id] = slot{taken: now, until: now.Add(min(slotTime, max(time.Minute, given.Expiration.Sub(now))))}
	return nil
}

// refuse notes that a member said no: this site is not admitted there yet, or
// all slots are taken. Pauses double; r.mu is held.
func (r *relays) refuse(id peer.ID, now time.Time) {
	if len(r.refused) > r.m.cfg.Limits.Peers {
		clear(r.refused)
	}
	pause := min(max(r.m.cfg.Timing.Relay/4, 2*r.refused[id].pause), refusedPause)
	r.refused[id] = refusal{until: now.Add(pause), pause: pause}
	r.m.after(pause, func() { signal(r.wake) })
}

// publish tells members where this site can be reached through relays, if that
// changed.
func (r *relays) publish() {
	now := r.findCircuits()
	r.mu.Lock()
	same := slices.EqualFunc(now, r.named, ma.Multiaddr.Equal)
	if !same {
		r.named = now
	}
	r.mu.Unlock()
	if same {
		return
	}
	if emitter, err := r.m.host.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated)); err == nil {
		_ = emitter.Emit(event.EvtAutoRelayAddrsUpdated{RelayAddrs: now})
		_ = emitter.Close()
	}
	r.m.tellAll(r.m.host.ID(), now)
}

// circuits are the addresses of this site through its relays, as last told.
func (r *relays) circuits() []ma.Multiaddr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.named)
}

// findCircuits works out the addresses of this site through its relays.
func (r *relays) findCircuits() []ma.Multiaddr {
	r.mu.Lock()
	var ids []peer.ID
	for id := range r.slots {
		ids = append(ids, id)
	}
	r.mu.Unlock()
	slices.Sort(ids)
	var addrs []ma.Multiaddr
	for nth := range addrsNamed { // first one of each relay
		for _, id := range ids {
			if a := r.circuit(id, nth); a != nil {
				addrs = append(addrs, a)
			}
		}
	}
	return addrs
}

// circuit is this site's address through the nth address of a relay, or nil.
func (r *relays) circuit(id peer.ID, nth int) ma.Multiaddr {
	conn := r.m.direct(id)
	if conn == nil {
		return nil
	}
	direct := r.m.directAddrs(id, conn)
	through, err := ma.NewMultiaddr("/p2p/" + id.String() + circuitOnly)
	if err != nil || nth >= len(direct) {
		return nil
	}
	return direct[nth].Encapsulate(through)
}

// direct is a connection to the peer that no relay carries, or nil.
func (m *Mesh) direct(id peer.ID) network.Conn {
	for _, c := range m.host.Network().ConnsToPeer(id) {
		if !isCircuit(c.RemoteMultiaddr()) && !c.IsClosed() {
			return c
		}
	}
	return nil
}

// lookup is the owner of a peer, or nil.
func (m *Mesh) lookup(site grid.SiteID) *remote {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remotes[site]
}
