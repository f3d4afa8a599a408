package p2p

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/p2p/gate"
	"github.com/mrsmesh/mrsmesh/internal/p2p/gossip"
	"github.com/mrsmesh/mrsmesh/internal/p2p/join"
	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Why a message is not sent.
var (
	errClosed      = errors.New("the mesh is closed")
	errSelf        = errors.New("a site does not send to itself")
	errNotMember   = errors.New("the site is not on the list of members")
	errUnknownSite = errors.New("no address of the site is known")
	errQueueFull   = errors.New("too much is waiting for the site")
	errNoEd25519   = errors.New("the site's key is no ed25519 key; let the agent make one")
	errCrowded     = errors.New("too many peers are known already")
)

// Handlers are told what comes from the mesh. They are called concurrently and
// must not block; for one peer, OnPeerSeen and OnPeerGone never overlap, and
// OnPeerSeen comes before the first message from the peer's stream. A gossiped
// message may come from a site that is no peer, and a message may still come
// after OnPeerGone.
type Handlers struct {
	// OnMessage brings a validated message. from is the stream's peer, or the
	// verified signer of a gossiped message; that is this site for its own ones.
	OnMessage func(from grid.SiteID, m protocol.Message)
	// OnPeerSeen says that a peer was admitted, or that its facts changed.
	OnPeerSeen func(site grid.SiteID, facts Facts)
	// OnPeerGone says that an admitted peer was lost. refusing: its host refuses
	// connections where the agent listened a moment ago, or a later incarnation
	// answers; the process that was admitted seems to have ended.
	OnPeerGone func(site grid.SiteID, refusing bool)
	// OnAttemptsDied brings a site's own word that its agent had died, and that nothing is left
	// of these attempts. The agent may run again by now. nil = nobody wants to know.
	OnAttemptsDied func(site grid.SiteID, attempts []grid.AttemptID)
	// OnNewerRun says that another agent was started later with this site's identity: this one
	// has to end. It is called once. nil = nobody wants to know.
	OnNewerRun func(newer protocol.Run)
	// OnMembers says that the roster changed because of what a peer said. nil =
	// nobody wants to know.
	OnMembers func()
	// OnBorder brings a validated message of a linked domain, which is named as DomainSite does.
	// nil = nobody wants to know; so are the others.
	OnBorder func(domain grid.SiteID, m protocol.Message)
	// OnNeighbourSeen says that a gateway of a linked domain is connected, which, and what that
	// domain is called here. For one domain it never overlaps with OnNeighbourGone, and before
	// another gateway is seen the first is gone.
	OnNeighbourSeen func(domain grid.SiteID, name grid.DomainID, gateway grid.SiteID)
	// OnNeighbourGone says that a linked domain was lost.
	OnNeighbourGone func(domain grid.SiteID)
	// OnLinks says that the links changed because of what another domain said.
	OnLinks func()
}

// Mesh is this site's place among the others. It is safe for concurrent use.
type Mesh struct {
	cfg      Config
	handlers Handlers
	log      *slog.Logger
	counts   *wire.Counters
	book     *book
	host     host.Host
	ownHost  bool
	key      crypto.PrivKey
	self     grid.SiteID
	members  map[grid.SiteID]bool // nobody changes it
	gossip   *gossip.Topic
	logs     *askedStreams
	steering *askedStreams
	lobby    *join.Lobby
	gates    *gate.Gates
	relays   *relay.Relays
	puncher  *relay.Puncher // nil: the host is another's
	finder   *finder
	guard    *guard
	keptOut  partings
	trading  sync.Map // protocols of streams for data: of type protocol.ID, to true
	arrivals network.Notifiee
	run      protocol.Run // this one
	runs     *runs        // of the others
	newer    sync.Once    // guards Handlers.OnNewerRun

	cancel context.CancelFunc
	start  func(*remote) // runs the peer's goroutine until Close
	after  func(time.Duration, func())
	wg     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	remotes  map[grid.SiteID]*remote
	refusals map[refusedError]bool // that were logged
}

// New joins the mesh: it listens, and dials the bootstrap peers and all remembered
// ones, without waiting for any of them. The mesh ends with Close, or
// when ctx is cancelled and Close is called.
func New(ctx context.Context, cfg Config, handlers Handlers, log *slog.Logger) (*Mesh, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("join mesh: %w", err)
	}
	m := &Mesh{
		cfg: cfg.withDefaults(), handlers: handlers,
		log: obs.Or(log), counts: wire.NewCounters(cfg.Registry),
		members: make(map[grid.SiteID]bool), remotes: make(map[grid.SiteID]*remote),
	}
	for _, site := range cfg.Allow {
		id, err := wire.PeerOf(site)
		if err != nil {
			return nil, fmt.Errorf("join mesh: %w", err)
		}
		m.members[wire.SiteOf(id)] = true // in the one form in which IDs are compared
	}
	m.guard = newGuard(m.cfg)
	m.guard.part, m.keptOut.patience = m.part, m.cfg.Timing.Parted
	m.runs = &runs{limit: m.cfg.Limits.Peers, newest: make(map[grid.SiteID]heardRun)}
	err := m.makeMembers()
	if err != nil {
		return nil, fmt.Errorf("join mesh: %w", err)
	}
	life, cancel := context.WithCancel(ctx)
	m.prepare(life, cancel)
	if err = m.makeHost(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("join mesh: %w", err)
	}
	if m.book, err = openBook(cfg.AddressFile); err != nil {
		m.log.Warn("addresses of members are not usable, starting without", "error", err)
	}
	m.arrivals = m.notifiee()
	cfg.Registry.GaugeFunc("p2p_peers", "Admitted peers.", func() float64 {
		return float64(len(m.Peers()))
	})
	m.relays, m.finder = relay.New(m.relayConfig()), newFinder(m)
	m.countConnections(cfg.Registry)
	m.makeAsked()
	if err := m.open(life); err != nil {
		return nil, errors.Join(fmt.Errorf("join mesh: %w", err), m.Close())
	}
	return m, nil
}

// prepare makes what the host's callbacks use as soon as it listens.
func (m *Mesh) prepare(life context.Context, cancel context.CancelFunc) {
	m.cancel = cancel
	m.start = func(r *remote) {
		own, end := context.WithCancel(life)
		r.end = end
		m.wg.Go(func() { defer end(); r.run(own) })
	}
	m.after = func(d time.Duration, f func()) { m.wg.Go(func() { wire.Later(life, d, f) }) }
	m.lobby = m.newLobby()
	m.gates = m.newGates(life)
}

// makeMembers takes the registry of members, or an empty one, and the links.
func (m *Mesh) makeMembers() error {
	var err error
	if m.cfg.Members == nil {
		m.cfg.Members, err = member.Open(member.Config{Domain: m.cfg.Domain})
	}
	if err == nil && m.cfg.Links == nil {
		m.cfg.Links, err = member.OpenLinks(m.cfg.Members)
	}
	return err
}

// makeHost takes the injected host, or makes one.
func (m *Mesh) makeHost(ctx context.Context) error {
	if m.host = m.cfg.Host; m.host != nil {
		m.self = wire.SiteOf(m.host.ID())
		m.key = m.host.Peerstore().PrivKey(m.host.ID())
		return m.sign()
	}
	id, err := LoadIdentity(m.cfg.KeyFile)
	if err != nil {
		return err
	}
	if err = refuseTaken(ctx, m.cfg.Listen); err != nil {
		return err
	}
	m.key, m.self, m.ownHost = id.Key(), id.Site(), true
	if err = m.sign(); err != nil {
		return err
	}
	m.host, err = newHost(m, id)
	return err
}

// open starts everything that runs.
func (m *Mesh) open(ctx context.Context) error {
	if _, err := protocol.Encode(m.hello(grid.ReasonNone, nil)); err != nil {
		return fmt.Errorf("say hello: %w", err)
	}
	g, err := gossip.Join(ctx, m.gossipConfig())
	if err != nil {
		return err
	}
	m.gossip = g
	m.wg.Go(func() { g.Run(ctx) })
	m.wg.Go(func() { m.keepBook(ctx) })
	m.host.SetStreamHandler(protocol.StreamID, func(s network.Stream) { m.serve(ctx, s) })
	m.host.SetStreamHandler(protocol.LogStreamID, func(s network.Stream) { m.logs.serve(ctx, s) })
	m.host.SetStreamHandler(protocol.SteerStreamID, func(s network.Stream) {
		m.steering.serve(ctx, s)
	})
	m.host.SetStreamHandler(protocol.JoinStreamID, func(s network.Stream) { m.serveJoin(ctx, s) })
	m.host.SetStreamHandler(protocol.DeathStreamID, func(s network.Stream) { m.serveDeaths(ctx, s) })
	m.host.Network().Notify(m.arrivals)
	m.wg.Go(func() { m.relays.Run(ctx) })
	m.openGates(ctx)
	if err := m.discover(ctx); err != nil {
		return err
	}
	for _, text := range m.cfg.Bootstrap {
		info, err := peer.AddrInfoFromString(text)
		if err != nil {
			return fmt.Errorf("bootstrap address %q: %w", text, err)
		}
		m.want(info.ID, func(r *remote) { r.bootstrap = append(r.bootstrap, info.Addrs...) })
	}
	for _, id := range m.book.ids() {
		m.want(id, nil)
	}
	for _, id := range m.host.Network().Peers() {
		m.want(id, nil)
	}
	return nil
}

// notifiee wakes the owner of a peer that dialled us, and shows the owner the
// connection that it dialled itself.
func (m *Mesh) notifiee() network.Notifiee {
	return &network.NotifyBundle{
		ConnectedF: func(_ network.Network, c network.Conn) {
			m.want(c.RemotePeer(), func(r *remote) {
				if !relay.IsCircuit(c.RemoteMultiaddr()) {
					signal(r.better)
				}
				if c.Stat().Direction == network.DirInbound {
					r.kick()
				} else {
					r.outbound.Store(&c)
				}
			})
			m.dismiss(c)
		},
		DisconnectedF: func(_ network.Network, c network.Conn) {
			m.lobby.Left(c)
			m.parted(c)
		},
	}
}

// keepBook writes the addresses of members a little after they changed, and at
// the end.
func (m *Mesh) keepBook(ctx context.Context) {
	for ongoing := true; ongoing; {
		ongoing = wire.Pause(ctx, 2*time.Second, nil)
		if err := m.book.save(); err != nil {
			m.log.Warn("addresses of members are not saved", "error", err)
		}
	}
}

// enter keeps Close waiting until m.wg.Done; it reports false when Close came
// first.
func (m *Mesh) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.wg.Add(1)
	}
	return !m.closed
}

// Close leaves the mesh and waits until no handler runs any more. A host that
// was injected stays open.
func (m *Mesh) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.host.RemoveStreamHandler(protocol.StreamID)
	m.host.RemoveStreamHandler(protocol.LogStreamID)
	m.host.RemoveStreamHandler(protocol.JoinStreamID)
	m.host.RemoveStreamHandler(protocol.DeathStreamID)
	m.host.RemoveStreamHandler(gate.StreamID)
	m.host.RemoveStreamHandler(gate.LinkStreamID)
	m.host.Network().StopNotify(m.arrivals)
	var err error
	if m.gossip != nil {
		m.gossip.Close()
	}
	if m.ownHost {
		err = m.host.Close()
	}
	m.wg.Wait()
	if err != nil {
		return fmt.Errorf("leave mesh: %w", err)
	}
	return nil
}

// Host is the libp2p host, for the exchange of data between the same sites. Its streams may be
// many. Who serves them must ask Allowed where AcceptAnyone is not set and the host was injected.
func (m *Mesh) Host() host.Host { return tradingHost{m.host, m} }

// Self is this site's name.
func (m *Mesh) Self() grid.SiteID { return m.self }

// PrivateKey is the ed25519 key that this site is known by. It goes nowhere: other keys are made of
// it, and what others have encrypted for the site is opened with it.
func (m *Mesh) PrivateKey() (ed25519.PrivateKey, error) {
	raw, err := m.key.Raw()
	if err != nil {
		return nil, fmt.Errorf("read the site's key: %w", err)
	}
	if len(raw) != ed25519.PrivateKeySize {
		return nil, errNoEd25519
	}
	return raw, nil
}

// Addrs lists where this site can be dialled: multiaddrs that end in /p2p/ID.
func (m *Mesh) Addrs() []string {
	return append(m.ownAddrs(), nameAddrs(m.host.ID(), m.relays.Addrs(), true)...)
}

// ownAddrs are those without a relay.
func (m *Mesh) ownAddrs() []string {
	addrs, err := peer.AddrInfoToP2pAddrs(&peer.AddrInfo{ID: m.host.ID(), Addrs: m.host.Addrs()})
	if err != nil {
		return nil
	}
	texts := make([]string, 0, len(addrs))
	for _, a := range addrs {
		if !relay.IsCircuit(a) {
			texts = append(texts, a.String())
		}
	}
	return texts
}

// Allowed reports whether the peer may be a member now: it is on the list, or
// admitted, or there is no list, or it is this site; and it is not banned.
func (m *Mesh) Allowed(p peer.ID) bool { return m.allowsSite(wire.SiteOf(p)) }

// Admits is Allowed for a site.
func (m *Mesh) Admits(site grid.SiteID) bool { return m.allowsSite(site) }

func (m *Mesh) allowsSite(site grid.SiteID) bool { return m.judgeSite(site) == grid.ReasonNone }

// Count is the number of events of a family, one of the Count constants, with
// that label.
func (m *Mesh) Count(family, label string) uint64 { return m.counts.Get(family, label) }

// Refusals counts how often a peer was not admitted since the start, by us or by
// it, by the reason's label.
func (m *Mesh) Refusals() map[string]uint64 { return m.counts.Labels(wire.CountRefused) }

// Peer is an admitted peer.
type Peer struct {
	Site  grid.SiteID
	Facts Facts
	Addr  string      // where the connection leads, a multiaddr; empty when it was just lost
	Relay grid.SiteID // the member that relays the connection; empty when it is direct
}

// Peers lists the admitted peers, ascending by site.
func (m *Mesh) Peers() []Peer {
	var peers []Peer
	for _, r := range m.all() {
		if facts, ok := r.admitted(); ok {
			p := Peer{Site: r.site, Facts: facts}
			p.Addr, p.Relay = m.leadsTo(r.id)
			peers = append(peers, p)
		}
	}
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Compare(a.Site, b.Site) })
	return peers
}

func (m *Mesh) all() []*remote {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*remote, 0, len(m.remotes))
	for _, r := range m.remotes {
		all = append(all, r)
	}
	return all
}

// Announce tells every peer the capability anew. Call it when that changed.
func (m *Mesh) Announce() {
	for _, r := range m.all() {
		r.tell(nil)
	}
}

// refused counts and logs that a peer is not admitted.
func (m *Mesh) refused(why *refusedError) {
	m.counts.Inc(wire.CountRefused, reasonLabel(why.Reason))
	say := m.log.Debug // a stranger tries again and again
	if m.firstRefusal(why) {
		say = m.log.Info
	}
	say("peer is not admitted", "peer", why.Site, "reason", why.Reason.String(), "by_peer", why.ByPeer)
}

// maxRefusals bounds the peers whose refusal is remembered; then all are told anew.
const maxRefusals = 1024

func (m *Mesh) firstRefusal(why *refusedError) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refusals == nil || len(m.refusals) >= maxRefusals {
		m.refusals = make(map[refusedError]bool)
	}
	known := m.refusals[*why]
	m.refusals[*why] = true
	return !known
}
