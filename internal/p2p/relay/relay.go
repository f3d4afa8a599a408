package relay

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Config sets up Relays. All fields but Injected, Anyone, Puncher, Doors and
// Crosses are required.
type Config struct {
	Host     host.Host
	NAT      NAT           // with its defaults
	Puncher  *Puncher      // that of the host's options; nil: relayed connections stay so
	Injected bool          // the host is another's and may have no events
	Anyone   bool          // any site may be a member, so Allowed does not tell who is one
	Every    time.Duration // between two looks at which relays are held
	Named    int           // addresses of this site through one relay that are told
	Slots    int           // members for which this site relays at a time
	Circuits int           // relayed connections of one member at a time
	Peers    int           // known at all
	Members  Members
	// Doors are the members through which linked domains are to reach this site, if they relay;
	// nil: there are none.
	Doors func() []peer.ID
	// Crosses reports whether a stranger may reach a member through this site; nil: none may.
	Crosses func(stranger, member peer.ID) bool
	After   func(time.Duration, func()) // calls a function later, unless the mesh is closed
	Counts  *wire.Counters
	Log     *slog.Logger
}

// Members answers questions about the others, and is told about them.
type Members interface {
	// Allowed reports whether the peer may be a member now.
	Allowed(p peer.ID) bool
	// Admitted reports whether it is one, and present.
	Admitted(p peer.ID) bool
	// Present lists the admitted members.
	Present() []peer.ID
	// DirectAddrs lists where a connected member can be dialled without a relay.
	DirectAddrs(p peer.ID, conn network.Conn) []ma.Multiaddr
	// TellOwn tells all members where this site is reached through relays.
	TellOwn(addrs []ma.Multiaddr)
}

// Relays is this site's part in relaying: the slots that it holds at members,
// and the service that it gives to members. One goroutine, that of Run, changes them.
type Relays struct {
	cfg  Config
	wake chan struct{} // capacity 1: members or connections changed

	punched map[peer.ID]refusal // when a hole is tried again; Run's alone

	mu      sync.Mutex
	reach   network.Reachability
	slots   map[peer.ID]slot
	refused map[peer.ID]refusal // those that refused are asked again later
	named   []ma.Multiaddr      // the addresses last told to members
	hosted  []ma.Multiaddr      // ... and to the host
	service *circuit.Relay      // nil while this site does not relay
}

// New makes the part; it does nothing before Run.
func New(cfg Config) *Relays {
	return &Relays{
		cfg: cfg, wake: make(chan struct{}, 1),
		slots: make(map[peer.ID]slot), refused: make(map[peer.ID]refusal),
	}
}

// Run keeps slots and the service as the configuration and the reachability
// want them.
func (r *Relays) Run(ctx context.Context) {
	defer r.stopService()
	if r.cfg.NAT.Relay == Off && r.cfg.Injected {
		return // an injected host may have no events
	}
	events, err := r.cfg.Host.EventBus().Subscribe(new(event.EvtLocalReachabilityChanged))
	if err != nil {
		r.cfg.Log.Error("reachability is not watched", "error", err)
		return
	}
	defer func() { _ = events.Close() }()
	pace := time.Hour // nothing to do
	if r.cfg.NAT.Relay != Off {
		pace = r.cfg.Every
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

func (r *Relays) reached(now network.Reachability) {
	r.mu.Lock()
	was := r.reach
	r.reach = now
	r.mu.Unlock()
	if was != now {
		r.cfg.Log.Info("reachability changed", "now", string(reachabilityOf(now)))
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
func (r *Relays) review(ctx context.Context) {
	role := r.cfg.NAT.Relay
	r.mu.Lock()
	public := r.reach == network.ReachabilityPublic || role == Serve
	serving := r.service != nil
	r.mu.Unlock()
	switch {
	case role == Off:
		return
	case public && !serving && role != Use:
		r.startService()
	case !public && serving:
		r.stopService()
	}
	if public || !r.cfg.NAT.seeks() {
		r.dropSlots()
	} else {
		r.keepSlots(ctx)
	}
	r.publish()
	r.punchAgain(time.Now())
}

// publish tells members where this site can be reached through relays, if that changed. The host
// says what it knows to each peer that it meets, also to those of linked domains: so it is told of
// the ways through doors alone.
func (r *Relays) publish() {
	now := r.findCircuits()
	doors := r.doors()
	open := slices.DeleteFunc(slices.Clone(now), func(a ma.Multiaddr) bool {
		return !slices.ContainsFunc(doors, func(d peer.ID) bool { return wire.SiteOf(d) == Through(a) })
	})
	r.mu.Lock()
	told := slices.EqualFunc(now, r.named, ma.Multiaddr.Equal)
	known := slices.EqualFunc(open, r.hosted, ma.Multiaddr.Equal)
	r.named, r.hosted = now, open
	r.mu.Unlock()
	if !known {
		r.tellHost(open)
	}
	if !told {
		r.cfg.Members.TellOwn(now)
	}
}

func (r *Relays) tellHost(addrs []ma.Multiaddr) {
	emitter, err := r.cfg.Host.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated))
	if err != nil {
		return
	}
	_ = emitter.Emit(event.EvtAutoRelayAddrsUpdated{RelayAddrs: addrs})
	_ = emitter.Close()
}

// Addrs are the addresses of this site through its relays, as last told.
func (r *Relays) Addrs() []ma.Multiaddr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.named)
}

// findCircuits works out the addresses of this site through its relays.
func (r *Relays) findCircuits() []ma.Multiaddr {
	r.mu.Lock()
	var ids []peer.ID
	for id := range r.slots {
		ids = append(ids, id)
	}
	r.mu.Unlock()
	slices.Sort(ids)
	var addrs []ma.Multiaddr
	for nth := range r.cfg.Named { // first one of each relay
		for _, id := range ids {
			if a := r.circuit(id, nth); a != nil {
				addrs = append(addrs, a)
			}
		}
	}
	return addrs
}

// circuit is this site's address through the nth address of a relay, or nil.
func (r *Relays) circuit(id peer.ID, nth int) ma.Multiaddr {
	conn := Direct(r.cfg.Host, id)
	if conn == nil {
		return nil
	}
	direct := r.cfg.Members.DirectAddrs(id, conn)
	through, err := ma.NewMultiaddr("/p2p/" + id.String() + circuitOnly)
	if err != nil || nth >= len(direct) {
		return nil
	}
	return direct[nth].Encapsulate(through)
}

// Wake makes Relays look right away: members or connections changed.
func (r *Relays) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Reach tells what is known of reaching this site.
type Reach struct {
	Reachability Reachability  // whether others can dial this site; never ReachabilityAuto
	Serving      bool          // this site relays for members
	Relays       []grid.SiteID // members through which this site is reached, ascending
}

// Reach tells how this site is reached now.
func (r *Relays) Reach() Reach {
	r.mu.Lock()
	defer r.mu.Unlock()
	reach := Reach{Reachability: reachabilityOf(r.reach), Serving: r.service != nil}
	if forced := r.cfg.NAT.Reachability; forced != ReachabilityAuto {
		reach.Reachability = forced
	}
	for id := range r.slots {
		reach.Relays = append(reach.Relays, wire.SiteOf(id))
	}
	slices.Sort(reach.Relays)
	return reach
}

// Direct is a connection to the peer that no relay carries, or nil.
func Direct(h host.Host, id peer.ID) network.Conn {
	for _, c := range h.Network().ConnsToPeer(id) {
		if !IsCircuit(c.RemoteMultiaddr()) && !c.IsClosed() {
			return c
		}
	}
	return nil
}
