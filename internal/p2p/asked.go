package p2p

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	lp "github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// askedStreams are those on which admitted peers ask for something of one kind: the output of an
// attempt, or what only those whom the owner allows may ask.
type askedStreams struct {
	m     *Mesh
	kind  lp.ID
	what  string        // is opened, for people
	slots chan struct{} // a token for each stream that is served

	mu      sync.Mutex
	handler func(from grid.SiteID, rw io.ReadWriteCloser)
}

// HandleLog sets who serves the log streams that admitted peers open. handler
// may block: it runs in a goroutine of its own for each stream, at most
// Limits.LogStreams of them, and the stream is closed when it returns. Reads and
// writes fail when the peer does nothing for Timing.LogIdle and Timing.Write.
func (m *Mesh) HandleLog(handler func(from grid.SiteID, rw io.ReadWriteCloser)) {
	m.logs.handle(handler)
}

// OpenLog opens a stream to the log handler of an admitted peer. It ends when
// ctx ends, when Close is called on it, or when nothing comes for
// Timing.LogIdle: a reader that wants more asks again from where it stopped.
func (m *Mesh) OpenLog(ctx context.Context, site grid.SiteID) (io.ReadWriteCloser, error) {
	return m.logs.open(ctx, site)
}

// HandleSteering is HandleLog for the streams on which a site is looked at, and steered, from afar.
// Whether the peer may is the handler's to say.
func (m *Mesh) HandleSteering(handler func(from grid.SiteID, rw io.ReadWriteCloser)) {
	m.steering.handle(handler)
}

// OpenSteering is OpenLog for those streams.
func (m *Mesh) OpenSteering(ctx context.Context, site grid.SiteID) (io.ReadWriteCloser, error) {
	return m.steering.open(ctx, site)
}

func (m *Mesh) makeAsked() {
	m.logs = m.newAsked(protocol.LogStreamID, "log")
	m.steering = m.newAsked(protocol.SteerStreamID, "status")
}

func (m *Mesh) newAsked(kind lp.ID, what string) *askedStreams {
	return &askedStreams{
		m: m, kind: kind, what: what, slots: make(chan struct{}, m.cfg.Limits.LogStreams),
	}
}

func (l *askedStreams) handle(handler func(from grid.SiteID, rw io.ReadWriteCloser)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handler = handler
}

func (l *askedStreams) open(ctx context.Context, site grid.SiteID) (io.ReadWriteCloser, error) {
	m := l.m
	m.mu.Lock()
	r, ok := m.remotes[site]
	m.mu.Unlock()
	if ok {
		_, ok = r.admitted()
	}
	if !ok {
		return nil, fmt.Errorf("open %s of %s: %w", l.what, site, errUnknownSite)
	}
	opening, cancel := context.WithTimeout(ctx, m.cfg.Timing.Hello)
	defer cancel()
	stream, err := m.host.NewStream(
		network.WithNoDial(opening, "admitted before"), r.id, l.kind,
	)
	if err != nil {
		return nil, fmt.Errorf("open %s of %s: %w", l.what, site, err)
	}
	return newAskedStream(ctx, m, stream), nil
}

// serve hands one stream to the handler.
func (l *askedStreams) serve(ctx context.Context, stream network.Stream) {
	if !l.m.enter() {
		_ = stream.Reset()
		return
	}
	defer l.m.wg.Done()
	site := wire.SiteOf(stream.Conn().RemotePeer())
	l.mu.Lock()
	handler := l.handler
	l.mu.Unlock()
	l.m.mu.Lock()
	r, ok := l.m.remotes[site]
	l.m.mu.Unlock()
	if handler == nil || !ok || !r.awaitSeen(ctx) {
		_ = stream.Reset()
		return
	}
	leave, ok := l.m.guard.openLog(r.id)
	if !ok {
		l.m.counts.Inc(wire.CountDropped, queueLogs)
		_ = stream.Reset()
		return
	}
	defer leave()
	select {
	case l.slots <- struct{}{}:
	default:
		l.m.counts.Inc(wire.CountDropped, queueLogs)
		_ = stream.Reset()
		return
	}
	defer func() { <-l.slots }()
	s := newAskedStream(ctx, l.m, stream)
	defer func() { _ = s.Close() }()
	handler(site, s)
}

// askedStream is a stream with deadlines that move on with every read and write.
type askedStream struct {
	stream network.Stream
	idle   time.Duration // for a read
	write  time.Duration // for a write
	stop   func() bool   // lets go of the context
}

func newAskedStream(ctx context.Context, m *Mesh, stream network.Stream) *askedStream {
	return &askedStream{
		stream: stream, idle: m.cfg.Timing.LogIdle, write: m.cfg.Timing.Write,
		stop: context.AfterFunc(ctx, func() { _ = stream.Reset() }),
	}
}

// Read reads what has come, waiting at most Timing.LogIdle.
func (s *askedStream) Read(b []byte) (int, error) {
	if err := s.stream.SetReadDeadline(time.Now().Add(s.idle)); err != nil {
		return 0, err
	}
	return s.stream.Read(b)
}

// Write writes all of b within Timing.Write.
func (s *askedStream) Write(b []byte) (int, error) {
	if err := s.stream.SetWriteDeadline(time.Now().Add(s.write)); err != nil {
		return 0, err
	}
	return s.stream.Write(b)
}

// Close ends the stream in both directions; what was written still arrives.
func (s *askedStream) Close() error {
	s.stop()
	return s.stream.Close()
}
