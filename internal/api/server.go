package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mrsmesh/mrsmesh/internal/api/reference"
	"github.com/mrsmesh/mrsmesh/internal/api/session"
	"github.com/mrsmesh/mrsmesh/internal/tes"
)

// Options say where and how the API is served.
type Options struct {
	Socket    string                      // path of the unix socket; empty = none
	Listen    string                      // loopback TCP address; empty = none
	Token     string                      // bearer token for TCP; required with Listen
	Metrics   http.Handler                // serves /metrics; nil = none
	Ready     func(context.Context) error // nil = ready as soon as it listens
	Debug     bool                        // serve /debug/pprof
	Logger    *slog.Logger                // nil = silent
	Heartbeat time.Duration               // of the event stream; 0 = 15 s
	Tasks     *tes.Tasks                  // of workflow engines; nil = none
	MaxUpload int64                       // bytes of one upload; 0 = 1 TiB, so the quota decides
	Now       func() time.Time            // the clock of links and sessions; nil = time.Now
}

// Limits of every connection.
const (
	headerTimeout  = 5 * time.Second
	idleTimeout    = 2 * time.Minute
	writeTimeout   = 30 * time.Second // of one chunk of a stream
	shutdownGrace  = 3 * time.Second
	maxHeaderBytes = 16 << 10
	maxJSONBytes   = 64 << 20 // a job of 100,000 items
	maxUpload      = 1 << 40
	heartbeat      = 15 * time.Second
)

// Server serves a Backend. Listen and then Serve are called once each, by one
// goroutine.
type Server struct {
	options Options
	backend Backend
	book    session.Book
	inner   http.Handler // everything, without locks
	// reference is the specification for people, made when somebody looks for the first time.
	reference func() ([]byte, error)
	listeners []door
	late      chan door // one that is opened while it serves

	mu  sync.Mutex
	tcp net.Addr // guarded by mu; nil = no such door yet
}

// door is a listener with what is served behind it.
type door struct {
	listener net.Listener
	handler  http.Handler
}

// New makes a server that does not listen yet. It fails when no door is named or
// the TCP door has no lock.
func New(backend Backend, o Options) (*Server, error) {
	if o.Socket == "" && o.Listen == "" {
		return nil, errors.New("serve api: neither a socket nor an address; give one of them")
	}
	if o.Listen != "" && o.Token == "" {
		return nil, errors.New("serve api: an address without a token; make one with LoadToken")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = heartbeat
	}
	if o.MaxUpload <= 0 {
		o.MaxUpload = maxUpload
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{options: o, backend: backend, late: make(chan door)}
	s.reference = sync.OnceValues(func() ([]byte, error) { return reference.Page(specification) })
	s.inner = s.routes()
	return s, nil
}

// Listen opens the doors. After it clients can connect, though they wait for
// Serve. On an error nothing is left open.
func (s *Server) Listen(ctx context.Context) error {
	if s.options.Socket != "" {
		listener, err := listenUnix(ctx, s.options.Socket)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, door{listener: listener, handler: s.inner})
	}
	if s.options.Listen != "" {
		listener, err := listenLoopback(ctx, s.options.Listen)
		if err != nil {
			s.close()
			return err
		}
		s.listeners = append(s.listeners, door{listener: listener, handler: s.locked(s.inner)})
		s.mu.Lock()
		s.tcp = listener.Addr()
		s.mu.Unlock()
	}
	return nil
}

// Addr is the TCP address that was opened, or nil.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tcp
}

func (s *Server) close() {
	for _, d := range s.listeners {
		_ = d.listener.Close() // nothing was accepted yet
	}
}

// Serve answers until the context ends, then lets running requests finish for a
// moment and closes the doors.
func (s *Server) Serve(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, d := range s.listeners {
		s.serve(groupCtx, group, d)
	}
	group.Go(func() error {
		for {
			select {
			case d := <-s.late:
				s.serve(groupCtx, group, d)
			case <-groupCtx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}

// serve has the group answer at a door until the context ends.
func (s *Server) serve(ctx context.Context, group *errgroup.Group, d door) {
	server := &http.Server{
		Handler: d.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelWarn),
		BaseContext:    func(net.Listener) context.Context { return ctx },
	}
	group.Go(func() error {
		err := server.Serve(d.listener)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("serve api: %w", err)
	})
	group.Go(func() error {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		if err := server.Shutdown(grace); err != nil {
			_ = server.Close() // the grace is over
		}
		return nil
	})
}
