package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
)

// Wanted is the number of members that should relay for this site: one may die.
const Wanted = 2

// Habits of relaying.
const (
	reserveTimeout = 10 * time.Second // for asking one of them
	refusedPause   = time.Minute      // longest pause before a member that refused is asked again
	slotTime       = 10 * time.Minute // a slot's lifetime; it is renewed at half of it
	relayBuffer    = 16 << 10         // bytes in each direction of a relayed connection
)

// refusal tells when a member that refused is asked again, and the pause until then.
type refusal struct {
	until time.Time
	pause time.Duration
}

// slot is a member's promise to relay for this site.
type slot struct {
	taken, until time.Time
}

// dropSlots lets go of all slots: they are no longer renewed.
func (r *Relays) dropSlots() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.slots)
}

// keepSlots forgets slots that are lost, renews old ones and asks for new ones.
func (r *Relays) keepSlots(ctx context.Context) {
	now := time.Now()
	r.mu.Lock()
	var old []peer.ID
	for id, s := range r.slots {
		switch {
		case now.After(s.until) || Direct(r.cfg.Host, id) == nil || !r.cfg.Members.Allowed(id):
			delete(r.slots, id)
			r.cfg.Counts.Inc(wire.CountRelays, relayLost)
			r.cfg.Log.Info("a relay is lost", "relay", wire.SiteOf(id))
		case now.Sub(s.taken) > s.until.Sub(s.taken)/2:
			old = append(old, id)
		}
	}
	wanted := Wanted - len(r.slots)
	r.mu.Unlock()
	for _, id := range old {
		_ = r.reserve(ctx, id)
	}
	doors := r.doors()
	if wanted <= 0 && len(doors) == 0 {
		return
	}
	for _, id := range r.candidates(now) {
		if wanted <= 0 && !slices.Contains(doors, id) {
			continue
		}
		if r.reserve(ctx, id) == nil {
			wanted--
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// doors are the members at which a slot is held beyond those that are wanted.
func (r *Relays) doors() []peer.ID {
	if r.cfg.Doors == nil {
		return nil
	}
	return r.cfg.Doors()
}

// candidates are admitted members that relay and are connected directly: doors first, and the
// others in random order, so that members spread over the relays.
func (r *Relays) candidates(now time.Time) []peer.ID {
	var ids []peer.ID
	doors := r.doors()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.cfg.Members.Present() {
		_, held := r.slots[id]
		if held || now.Before(r.refused[id].until) || Direct(r.cfg.Host, id) == nil {
			continue
		}
		speaks, err := r.cfg.Host.Peerstore().SupportsProtocols(id, proto.ProtoIDv2Hop)
		if err == nil && len(speaks) > 0 {
			ids = append(ids, id)
		}
	}
	swap := func(i, j int) { ids[i], ids[j] = ids[j], ids[i] }
	rand.Shuffle(len(ids), swap) //nolint:gosec // a fair choice, no secret
	slices.SortStableFunc(ids, func(a, b peer.ID) int {
		return slices.Index(doors, b) - slices.Index(doors, a)
	})
	return ids
}

// Results of asking for a slot, the label of wire.CountRelays.
const (
	relayHeld    = "held"
	relayRefused = "refused"
	relayLost    = "lost"
)

// errLimited says that a relay bounds bytes or time, so that it is of no use.
var errLimited = errors.New("the relay bounds what it carries")

// reserve asks a member for a slot, or renews it.
func (r *Relays) reserve(ctx context.Context, id peer.ID) error {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "connected before"), reserveTimeout)
	defer cancel()
	given, err := client.Reserve(ctx, r.cfg.Host, peer.AddrInfo{ID: id})
	if err == nil && (given.LimitData > 0 || given.LimitDuration > 0) {
		err = errLimited
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.refuse(id, now)
		r.cfg.Counts.Inc(wire.CountRelays, relayRefused)
		r.cfg.Log.Debug("no slot at a relay", "relay", wire.SiteOf(id), "error", err)
		return fmt.Errorf("reserve a slot at %s: %w", wire.SiteOf(id), err)
	}
	delete(r.refused, id)
	if _, had := r.slots[id]; !had {
		r.cfg.Counts.Inc(wire.CountRelays, relayHeld)
		r.cfg.Log.Info("a member relays for this site", "relay", wire.SiteOf(id))
	}
	// The relay's clock may differ from ours: count from now, at most slotTime.
	lasts := min(slotTime, max(time.Minute, given.Expiration.Sub(now)))
	r.slots[id] = slot{taken: now, until: now.Add(lasts)}
	return nil
}

// refuse notes that a member said no: this site is not admitted there yet, or
// all slots are taken. Pauses double; r.mu is held.
func (r *Relays) refuse(id peer.ID, now time.Time) {
	if len(r.refused) >= r.cfg.Peers {
		clear(r.refused)
	}
	pause := min(max(r.cfg.Every/4, 2*r.refused[id].pause), refusedPause)
	r.refused[id] = refusal{until: now.Add(pause), pause: pause}
	r.cfg.After(pause, r.Wake)
}
