package p2p

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// logServer serves the streams on which peers read the output of attempts.
type logServer struct {
	m     *Mesh
	slots chan struct{} // a token for each stream that is served

	mu      sync.Mutex
	handler func(from grid.SiteID, rw io.ReadWriteCloser)
}

// HandleLog sets who serves the log streams that admitted peers open. handler
// may block: it runs in a goroutine of its own for each stream, at most
// Limits.LogStreams of them, and the stream is closed when it returns. Reads and
// writes fail when the peer does nothing for Timing.LogIdle and Timing.Write.
func (m *Mesh) HandleLog(handler func(from grid.SiteID, rw io.ReadWriteCloser)) {
	m.logs.mu.Lock()
	defer m.logs.mu.Unlock()
	m.logs.handler = handler
}

// OpenLog opens a stream to the log handler of an admitted peer. It ends when
// ctx ends, when Close is called on it, or when nothing comes for
// Timing.LogIdle: a reader that wants more asks again from where it stopped.
func (m *Mesh) OpenLog(ctx context.Context, site grid.SiteID) (io.ReadWriteCloser, error) {
	m.mu.Lock()
	r, ok := m.remotes[site]
	m.mu.Unlock()
	if ok {
		_, ok = r.admitted()
	}
	if !ok {
		return nil, fmt.Errorf("open log of %s: %w", site, errUnknownSite)
	}
	opening, cancel := context.WithTimeout(ctx, m.cfg.Timing.Hello)
	defer cancel()
	stream, err := m.host.NewStream(
		network.WithNoDial(opening, "admitted before"), r.id, protocol.LogStreamID,
	)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", site, err)
	}
	return newLogStream(ctx, m, stream), nil
}

// serve hands one stream to the handler.
func (l *logServer) serve(ctx context.Context, stream network.Stream) {
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
	s := newLogStream(ctx, l.m, stream)
	defer func() { _ = s.Close() }()
	handler(site, s)
}

// logStream is a stream with deadlines that move on with every read and write.
type logStream struct {
	stream network.Stream
	idle   time.Duration // for a read
	write  time.Duration // for a write
	stop   func() bool   // lets go of the context
}

func newLogStream(ctx context.Context, m *Mesh, stream network.Stream) *logStream {
	return &logStream{
		stream: stream, idle: m.cfg.Timing.LogIdle, write: m.cfg.Timing.Write,
		stop: context.AfterFunc(ctx, func() { _ = stream.Reset() }),
	}
}

// Read reads what has come, waiting at most Timing.LogIdle.
func (s *logStream) Read(b []byte) (int, error) {
	if err := s.stream.SetReadDeadline(time.Now().Add(s.idle)); err != nil {
		return 0, err
	}
	return s.stream.Read(b)
}

// Write writes all of b within Timing.Write.
func (s *logStream) Write(b []byte) (int, error) {
	if err := s.stream.SetWriteDeadline(time.Now().Add(s.write)); err != nil {
		return 0, err
	}
	return s.stream.Write(b)
}

// Close ends the stream in both directions; what was written still arrives.
func (s *logStream) Close() error {
	s.stop()
	return s.stream.Close()
}
