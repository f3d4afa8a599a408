package p2p

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	lp "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/gossip"
	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// quiet is a mesh in which nothing happens by itself: its host is a stand-in, owners of peers are
// made and do not run, and what is to happen later is written down.
type quiet struct {
	*Mesh
	*recorder

	t     *testing.T
	stub  *stubHost
	later []delayed
	begun []*remote     // owners that would run
	ended []grid.SiteID // owners that were ended
	lines *lines
}

// delayed is something that a mesh wants to do later.
type delayed struct {
	after time.Duration
	do    func()
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// has reports whether one line holds all of the words.
func (l *lines) has(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			return true
		}
	}
	return false
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newQuiet(t *testing.T, change func(*Config)) *quiet {
	t.Helper()
	id, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	q := &quiet{recorder: &recorder{}, t: t, lines: &lines{}}
	q.stub = newStubHost(t, forge{t, id.Key(), id.Site()}.peer())
	cfg := Config{
		Domain: "lab", Name: "quiet", Incarnation: 3, AcceptAnyone: true, Preset: PresetTest,
		Host: q.stub,
	}
	if change != nil {
		change(&cfg)
	}
	m := &Mesh{
		cfg: cfg.withDefaults(), handlers: q.recorder.handlers(), log: q.lines.logger(),
		counts: wire.NewCounters(cfg.Registry), host: q.stub, self: id.Site(), key: id.Key(),
		gossip: &gossip.Topic{}, members: make(map[grid.SiteID]bool),
		remotes: make(map[grid.SiteID]*remote), cancel: func() {},
	}
	q.Mesh = m
	for _, site := range cfg.Allow {
		m.members[site] = true
	}
	m.guard = newGuard(m.cfg)
	m.guard.part, m.keptOut.patience = m.part, m.cfg.Timing.Parted
	m.runs = &runs{limit: m.cfg.Limits.Peers, newest: make(map[grid.SiteID]heardRun)}
	m.start = func(r *remote) {
		q.begun = append(q.begun, r)
		r.end = func() { q.ended = append(q.ended, r.site) }
	}
	m.after = func(d time.Duration, do func()) { q.later = append(q.later, delayed{d, do}) }
	if err = errors.Join(m.makeMembers(), m.sign()); err != nil {
		t.Fatal(err)
	}
	if m.book, err = openBook(""); err != nil {
		t.Fatal(err)
	}
	m.lobby = m.newLobby()
	m.gates = m.newGates(t.Context())
	m.relays, m.finder = relay.New(m.relayConfig()), newFinder(m)
	m.makeAsked()
	t.Cleanup(m.wg.Wait)
	return q
}

// stranger is a peer that nobody knows.
func (q *quiet) stranger() peer.ID {
	q.t.Helper()
	return somebody(q.t)
}

// knows makes an owner for the peer.
func (q *quiet) knows(id peer.ID) *remote {
	q.t.Helper()
	r := q.want(id, nil)
	if r == nil {
		q.t.Fatalf("%s is not taken", id)
	}
	return r
}

// present admits a peer, without a connection.
func (q *quiet) present(id peer.ID) *remote {
	q.t.Helper()
	r := q.knows(id)
	r.update(Facts{Name: "other", Incarnation: 1, Run: protocol.Run{Number: 1}}, false)
	return r
}

// soon does everything that is to be done later by now, and says after how long each was to be.
func (q *quiet) soon() (after []time.Duration) {
	due := q.later
	q.later = nil
	for _, d := range due {
		after = append(after, d.after)
		d.do()
	}
	return after
}

// waiting takes the messages that wait for a peer.
func (r *remote) waiting(t *testing.T) (all []protocol.Message) {
	t.Helper()
	for len(r.queue) > 0 {
		frame := <-r.queue
		r.queued.Add(-int64(len(frame)))
		m, err := protocol.Decode(frame[protocol.FrameHeaderBytes:])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// marked takes the mark out of a channel, and reports whether there was one.
func marked(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stubHost stands for a libp2p host.
type stubHost struct {
	host.Host // what is not below is not called

	id        peer.ID
	net       *stubNet
	store     peerstore.Peerstore
	bus       event.Bus
	manager   *stubManager
	addrs     []ma.Multiaddr
	removed   []lp.ID
	closed    int
	failClose error
	connect   func(context.Context, peer.AddrInfo) error
	open      func(context.Context) (network.Stream, error)
}

func newStubHost(t *testing.T, id peer.ID) *stubHost {
	t.Helper()
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &stubHost{
		id: id, store: store, bus: eventbus.NewBus(),
		net:     &stubNet{conns: make(map[peer.ID][]network.Conn)},
		manager: &stubManager{protected: make(map[peer.ID]string)},
		addrs:   parseAddrs([]string{"/ip4/10.0.0.1/tcp/4601"}),
	}
}

func (h *stubHost) ID() peer.ID                      { return h.id }
func (h *stubHost) Peerstore() peerstore.Peerstore   { return h.store }
func (h *stubHost) EventBus() event.Bus              { return h.bus }
func (h *stubHost) Network() network.Network         { return h.net }
func (h *stubHost) ConnManager() connmgr.ConnManager { return h.manager }
func (h *stubHost) Addrs() []ma.Multiaddr            { return h.addrs }
func (h *stubHost) RemoveStreamHandler(id lp.ID)     { h.removed = append(h.removed, id) }
func (h *stubHost) Close() error                     { h.closed++; return h.failClose }
func (h *stubHost) Connect(ctx context.Context, info peer.AddrInfo) error {
	return h.connect(ctx, info)
}

func (h *stubHost) NewStream(ctx context.Context, _ peer.ID, _ ...lp.ID) (network.Stream, error) {
	return h.open(ctx)
}

// stubManager remembers who is protected.
type stubManager struct {
	connmgr.NullConnMgr

	protected map[peer.ID]string
}

func (m *stubManager) Protect(id peer.ID, tag string) { m.protected[id] = tag }
func (m *stubManager) Unprotect(id peer.ID, tag string) bool {
	if m.protected[id] == tag {
		delete(m.protected, id)
	}
	return false
}

// stubNet has the connections that a test gives it.
type stubNet struct {
	network.Network

	mu      sync.Mutex
	conns   map[peer.ID][]network.Conn
	closed  []peer.ID // by ClosePeer
	stopped int       // notifiees that were taken away
}

func (n *stubNet) StopNotify(network.Notifiee) { n.stopped++ }

func (n *stubNet) Connectedness(id peer.ID) network.Connectedness {
	if len(n.ConnsToPeer(id)) > 0 {
		return network.Connected
	}
	return network.NotConnected
}

func (n *stubNet) ConnsToPeer(id peer.ID) []network.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.conns[id])
}

func (n *stubNet) Conns() (all []network.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, some := range n.conns {
		all = append(all, some...)
	}
	return all
}

func (n *stubNet) ClosePeer(id peer.ID) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = append(n.closed, id)
	delete(n.conns, id)
	return nil
}

// isClosed reports whether the peer was disconnected.
func (n *stubNet) isClosed(id peer.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.closed, id)
}

// stubConn stands for a connection.
type stubConn struct {
	network.Conn

	name      string
	peer      peer.ID
	at        ma.Multiaddr
	direction network.Direction
	closed    bool
	why       error // why it gives no stream
	streams   []network.Stream
}

func (c *stubConn) ID() string                    { return c.name }
func (c *stubConn) RemotePeer() peer.ID           { return c.peer }
func (c *stubConn) RemoteMultiaddr() ma.Multiaddr { return c.at }
func (c *stubConn) Close() error                  { c.closed = true; return nil }
func (c *stubConn) IsClosed() bool                { return c.closed }
func (c *stubConn) GetStreams() []network.Stream  { return c.streams }

func (c *stubConn) NewStream(context.Context) (network.Stream, error) { return nil, c.why }

func (c *stubConn) Stat() network.ConnStats {
	return network.ConnStats{Stats: network.Stats{Direction: c.direction}}
}

// connected gives the mesh one more connection to a peer.
func (q *quiet) connected(id peer.ID, at string, direction network.Direction) *stubConn {
	q.t.Helper()
	q.stub.net.mu.Lock()
	defer q.stub.net.mu.Unlock()
	addr, err := ma.NewMultiaddr(at)
	if err != nil {
		q.t.Fatal(err)
	}
	c := &stubConn{
		name: fmt.Sprint(id, len(q.stub.net.conns[id])), peer: id, at: addr, direction: direction,
	}
	q.stub.net.conns[id] = append(q.stub.net.conns[id], c)
	return c
}

// stubStream is a stream over a pipe: a write waits until the other end reads.
type stubStream struct {
	network.Stream

	pipe net.Conn
	conn network.Conn
	name lp.ID

	mu     sync.Mutex
	resets int
	closed bool  // in the one direction, or in both
	stuck  error // why no deadline can be set
}

// newStream is a stream on a connection, and its other end.
func newStream(t *testing.T, conn network.Conn) (*stubStream, *stubStream) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	return &stubStream{pipe: here, conn: conn, name: protocol.StreamID},
		&stubStream{pipe: there, name: protocol.StreamID}
}

func (s *stubStream) Read(b []byte) (int, error)  { return s.pipe.Read(b) }
func (s *stubStream) Write(b []byte) (int, error) { return s.pipe.Write(b) }
func (s *stubStream) Conn() network.Conn          { return s.conn }
func (s *stubStream) Protocol() lp.ID             { return s.name }

func (s *stubStream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.pipe.Close()
}

func (s *stubStream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *stubStream) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resets++
	return s.pipe.Close()
}

func (s *stubStream) SetDeadline(at time.Time) error {
	return errors.Join(s.stuck, s.pipe.SetDeadline(at))
}

func (s *stubStream) SetReadDeadline(at time.Time) error {
	return errors.Join(s.stuck, s.pipe.SetReadDeadline(at))
}

func (s *stubStream) SetWriteDeadline(at time.Time) error {
	return errors.Join(s.stuck, s.pipe.SetWriteDeadline(at))
}

func (s *stubStream) isReset() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resets > 0
}

func (s *stubStream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// ends waits until the other end is gone.
func (s *stubStream) ends(t *testing.T) {
	t.Helper()
	if _, err := io.Copy(io.Discard, s); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the stream ends with %v", err)
	}
}
