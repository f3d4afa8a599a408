package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Why nothing is sent to a linked domain.
var (
	errNoLink       = errors.New("no such domain is linked")
	errNotConnected = errors.New("the linked domain is not connected")
	errQueueFull    = errors.New("too much is waiting for the linked domain")
)

// Timing holds deadlines and pauses; see p2p.Timing.
type Timing struct {
	Dial, Hello, Write, Read, BackoffMin, BackoffMax time.Duration
}

// Config sets up Gates. All fields are required.
type Config struct {
	Links *member.Links
	Addrs func() []string // where this site can be dialled, multiaddrs that end in /p2p/ID
	// Through is the member through which an address leads; empty: none.
	Through func(ma.Multiaddr) grid.SiteID
	Now     func() time.Time // the wall clock
	Timing  Timing

	QueueMessages int   // that wait for one domain
	QueueBytes    int64 // of them

	// Pace waits until the next message of a peer may be read.
	Pace func(ctx context.Context, id peer.ID, size int) bool
	// OpenStream reports whether a peer may have one more stream; leave ends it.
	OpenStream func(id peer.ID) (leave func(), ok bool)
	// Guest reports whether the connection is a stranger's who is let in for an invitation, and
	// Blame notes that it knew no secret.
	Guest func(network.Conn) bool
	Blame func(network.Conn)
	// Hold keeps the mesh open until release is called; ok is false when it is closed.
	Hold func() (release func(), ok bool)
	// Go runs a function in a goroutine for which the mesh waits at its end. Live does so for as
	// long as the mesh lives, or until end is called.
	Go     func(func())
	Live   func(run func(context.Context)) (end context.CancelFunc)
	Counts *wire.Counters
	Log    *slog.Logger

	// OnMessage, OnSeen and OnGone must not block. For one domain OnSeen and OnGone never overlap,
	// and OnSeen comes before the first message.
	OnMessage func(domain grid.SiteID, m protocol.Message)
	OnSeen    func(domain grid.SiteID, name grid.DomainID, gateway grid.SiteID)
	OnGone    func(domain grid.SiteID)
	// OnLinks says that the links have changed because of what another domain said.
	OnLinks func()
}

// Gates are this domain's links as far as there are streams. It is safe for concurrent use.
type Gates struct {
	cfg  Config
	host atomic.Pointer[host.Host]
	self grid.SiteID // set by Start

	mu       sync.Mutex
	doors    map[grid.DomainKey]*door
	deputies []member.Gateway // who may stand in for this site
	edition  int              // counts the changes of deputies and of the own addresses
	shown    []string         // the own addresses when they last changed
	expected map[peer.ID]int  // inviters that are being asked
}

// New opens nothing: it answers who is a neighbour before there is a host.
func New(cfg Config) *Gates {
	return &Gates{
		cfg: cfg, doors: make(map[grid.DomainKey]*door), expected: make(map[peer.ID]int),
	}
}

// Start dials all linked domains.
func (g *Gates) Start(h host.Host) {
	g.self = wire.SiteOf(h.ID())
	g.host.Store(&h)
	g.Review()
}

// Knows reports whether the peer is a gateway of a linked domain, or was one and is to hear
// that the link has ended, or invites this domain and is being asked.
func (g *Gates) Knows(id peer.ID) bool {
	g.mu.Lock()
	asked := g.expected[id] > 0
	g.mu.Unlock()
	_, _, found := g.cfg.Links.Gateway(wire.SiteOf(id))
	return asked || found
}

// Linked reports whether the peer is a gateway of a linked domain now.
func (g *Gates) Linked(id peer.ID) bool {
	_, ended, found := g.cfg.Links.Gateway(wire.SiteOf(id))
	return found && !ended
}

// Review acts on what was decided about links: it begins to dial, and closes streams.
func (g *Gates) Review() {
	h := g.host.Load()
	if h == nil {
		return // nothing is open
	}
	wanted := make(map[grid.DomainKey]member.Link)
	for _, link := range g.cfg.Links.List() {
		wanted[link.Side.Key] = link
	}
	var over []*door
	g.mu.Lock()
	for key, d := range g.doors {
		if _, stays := wanted[key]; !stays {
			over = append(over, d)
			delete(g.doors, key)
		}
	}
	for key, link := range wanted {
		if g.doors[key] == nil {
			g.add(key, link)
		}
	}
	g.mu.Unlock()
	for _, d := range over {
		d.shut()
	}
}

// add makes the door of a link; g.mu is held.
func (g *Gates) add(key grid.DomainKey, link member.Link) {
	site, err := wire.DomainSite(key)
	if err != nil {
		g.cfg.Log.Error("a link's key is none", "domain", string(link.Name), "error", err)
		return
	}
	d := &door{
		g: g, key: key, site: site, name: link.Name,
		queue: make(chan []byte, g.cfg.QueueMessages),
		anew:  make(chan struct{}, 1),
	}
	g.doors[key] = d
	d.end = g.cfg.Live(d.run)
}

// door is the one of a domain, or nil.
func (g *Gates) door(is func(*door) bool) *door {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.doors {
		if is(d) {
			return d
		}
	}
	return nil
}

// endedByThem forgets a link that the other domain has ended. It reports false when that
// cannot be written down.
func (g *Gates) endedByThem(d *door) bool {
	d.failed(member.LinkUnlinked)
	if err := g.cfg.Links.EndedByThem(d.key); err != nil {
		g.cfg.Log.Error("the end of a link cannot be written down", "error", err)
		return false
	}
	g.cfg.Log.Warn("the other domain has ended the link", "domain", string(d.name))
	g.Review()
	g.cfg.OnLinks()
	return true
}

// gateways are this domain's: this site, and those that may stand in for it.
func (g *Gates) gateways() []member.Gateway {
	own := reached(g.self, g.cfg.Addrs()) // which asks who the deputies are
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]member.Gateway{own}, g.deputies...)
}

// reached is a gateway with those of its addresses that a card can name.
func reached(site grid.SiteID, addrs []string) member.Gateway {
	const most, longest = 8, 255
	own := member.Gateway{Site: site}
	for _, addr := range addrs {
		if len(own.Addrs) < most && len(addr) <= longest &&
			strings.HasSuffix(addr, "/p2p/"+string(site)) {
			own.Addrs = append(own.Addrs, addr)
		}
	}
	return own
}

// Deputies says who may stand in for this site, which has the domain's key, and where each is
// reached. Linked domains hear of a change immediately: new streams, with new cards, take the place
// of those in use. Who is not named any more is not let in there from then on.
func (g *Gates) Deputies(sites []grid.SiteID, addrs func(grid.SiteID) []string) {
	deputies := make([]member.Gateway, 0, len(sites))
	for _, site := range sites {
		deputies = append(deputies, reached(site, addrs(site)))
	}
	same := func(a, b member.Gateway) bool { return a.Site == b.Site }
	g.change(func() bool {
		changed := !slices.EqualFunc(g.deputies, deputies, same)
		g.deputies = deputies
		return changed
	})
}

// DeputyIDs are those that were named last.
func (g *Gates) DeputyIDs() (sites []grid.SiteID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, deputy := range g.deputies {
		sites = append(sites, deputy.Site)
	}
	return sites
}

// Moved says that this site may be reached elsewhere. If so, linked domains hear of it as they do
// of deputies.
func (g *Gates) Moved() {
	addrs := g.cfg.Addrs()
	g.change(func() bool {
		changed := !slices.Equal(g.shown, addrs)
		g.shown = addrs
		return changed
	})
}

// change notes what a card says, and has it shown anew at all doors if that is something else than
// before.
func (g *Gates) change(note func() bool) {
	g.mu.Lock()
	changed := note()
	if changed {
		g.edition++
	}
	doors := slices.Collect(maps.Values(g.doors))
	g.mu.Unlock()
	if !changed {
		return
	}
	for _, d := range doors {
		d.changed()
	}
}

// currentEdition is of the deputies whom a card that is made now names.
func (g *Gates) currentEdition() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.edition
}

// Serve takes the stream that a linked domain's gateway opens.
func (g *Gates) Serve(ctx context.Context, stream network.Stream) {
	id := stream.Conn().RemotePeer()
	release, ok := g.cfg.Hold()
	if !ok {
		_ = stream.Reset()
		return
	}
	defer release()
	stop := context.AfterFunc(ctx, func() { _ = stream.Reset() })
	defer stop()
	leave, ok := g.cfg.OpenStream(id)
	if !ok || g.cfg.Guest(stream.Conn()) || !g.Knows(id) {
		g.cfg.Counts.Inc(wire.CountBorder, "stranger")
		_ = stream.Reset()
		if ok {
			leave()
		}
		return
	}
	defer leave()
	edition := g.currentEdition()
	key, deputy, err := g.receive(stream)
	if err != nil {
		g.cfg.Counts.Inc(wire.CountBorder, label(err))
		g.cfg.Log.Info("a linked domain's gateway is refused",
			"peer", wire.SiteOf(id), "error", err)
		_ = stream.Reset()
		return
	}
	d := g.door(func(d *door) bool { return d.key == key })
	s := newSession(stream, false, deputy)
	s.edition = edition
	if d == nil || !d.adopt(ctx, s) {
		g.cfg.Counts.Inc(wire.CountBorder, string(busy))
		_ = g.turnAway(stream, verdict{Refusal: busy}, busy)
		_ = stream.Reset()
		return
	}
	if say(stream, verdict{}) != nil || stream.SetDeadline(time.Time{}) != nil {
		close(s.ended)
		_ = stream.Reset()
		d.leave(s)
		return
	}
	d.carry(ctx, s)
}

// Send puts the message into the queue to a linked domain and returns immediately. Nothing is
// promised: a message is lost with the stream. It fails when the domain is not linked or not
// connected, and when too much waits for it.
func (g *Gates) Send(domain grid.SiteID, message protocol.Message) error {
	frame, err := protocol.AppendFrame(nil, message)
	if err != nil {
		return fmt.Errorf("send to domain %s: %w", domain, err)
	}
	d := g.door(func(d *door) bool { return d.site == domain })
	switch {
	case d == nil:
		err = errNoLink
	case d.open() == nil:
		err = errNotConnected
	default:
		err = d.enqueue(frame)
	}
	if err != nil {
		return fmt.Errorf("send %s to domain %s: %w", wire.NameOf(message), domain, err)
	}
	g.cfg.Counts.Inc(wire.CountOut, wire.NameOf(message))
	return nil
}

func (d *door) enqueue(frame []byte) error {
	size := int64(len(frame))
	if d.queued.Add(size) <= d.g.cfg.QueueBytes {
		select {
		case d.queue <- frame:
			return nil
		default:
		}
	}
	d.queued.Add(-size)
	d.g.cfg.Counts.Inc(wire.CountDropped, queueBorder)
	return errQueueFull
}

// Neighbour is a linked domain as far as there is a stream.
type Neighbour struct {
	Key       grid.DomainKey
	Site      grid.SiteID // the domain's, as DomainSite names it
	Name      grid.DomainID
	Connected bool
	Why       string      // it is not connected
	Gateway   grid.SiteID // the peer at the other end; empty when it is not connected
	Addr      string      // where the connection leads, a multiaddr
}

// Neighbours lists the linked domains, ascending by name.
func (g *Gates) Neighbours() []Neighbour {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]Neighbour, 0, len(g.doors))
	for _, d := range g.doors {
		list = append(list, d.view())
	}
	slices.SortFunc(list, func(a, b Neighbour) int {
		return strings.Compare(string(a.Name), string(b.Name))
	})
	return list
}

func (d *door) view() Neighbour {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := Neighbour{Key: d.key, Site: d.site, Name: d.name, Connected: d.current != nil}
	switch {
	case d.current != nil:
		n.Gateway = wire.SiteOf(d.current.stream.Conn().RemotePeer())
		n.Addr = d.current.stream.Conn().RemoteMultiaddr().String()
	case d.why != nil:
		n.Why = d.why.Error()
	default:
		n.Why = "it is being dialled"
	}
	return n
}
