package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// measureRaw takes the limits of the machine: round trips, the disk, processes.
func (b *bench) measureRaw(ctx context.Context) error {
	if err := b.measureEchoes(ctx); err != nil {
		return err
	}
	if err := b.measureSync(); err != nil {
		return err
	}
	if err := b.measureContent(ctx); err != nil {
		b.lost("durable content", err)
	}
	return b.measureSpawn(ctx)
}

const echoBytes = 256 // about an award

// measureEchoes sends the same bytes there and back: over TCP, over a bare
// stream of libp2p, and as a message of the mesh.
func (b *bench) measureEchoes(ctx context.Context) error {
	raw, err := newTCPEcho(ctx)
	if err != nil {
		return fmt.Errorf("raw echo: %w", err)
	}
	defer raw.close()
	pair, err := newMeshPair(ctx, b.dir)
	if err != nil {
		return fmt.Errorf("libp2p echo: %w", err)
	}
	defer pair.close()
	var tcp, stream, message sample
	for range b.rounds(3000) {
		if err := errors.Join(
			timed(&tcp, raw.once), timed(&stream, pair.echoStream), timed(&message, pair.echoMessage),
		); err != nil {
			return fmt.Errorf("echo: %w", err)
		}
	}
	rtt := b.add(spanned(figTCP, tcp, time.Microsecond)).P50
	b.add(spanned(figStream, stream, time.Microsecond)).against("TCP echo", rtt)
	b.add(spanned(figMessage, message, time.Microsecond)).against("TCP echo", rtt)
	return nil
}

// The names of the raw limits.
const (
	figTCP     = "raw TCP echo, 256 bytes"
	figStream  = "libp2p echo, bare stream"
	figMessage = "mesh echo, one message and its answer"
	figSync    = "fsync of 4 KiB"
	figSpawn   = "spawn of /bin/true"
	figBwrap   = "sandbox start, bwrap around /bin/true"
)

// tcpEcho is a connection whose other end answers with what it gets.
type tcpEcho struct {
	conn   net.Conn
	buffer []byte
	done   chan struct{}
}

func newTCPEcho(ctx context.Context) (*tcpEcho, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &tcpEcho{buffer: make([]byte, echoBytes), done: make(chan struct{})}
	go func() {
		defer close(e.done)
		defer func() { _ = listener.Close() }()
		if conn, failed := listener.Accept(); failed == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	var dialer net.Dialer
	if e.conn, err = dialer.DialContext(ctx, "tcp", listener.Addr().String()); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return e, nil
}

func (e *tcpEcho) once() error { return echo(e.conn, e.buffer) }

func (e *tcpEcho) close() {
	_ = e.conn.Close()
	<-e.done
}

// echo writes the buffer and reads as much.
func echo(rw io.ReadWriter, buffer []byte) error {
	if _, err := rw.Write(buffer); err != nil {
		return err
	}
	_, err := io.ReadFull(rw, buffer)
	return err
}

// meshPair is two sites without agents.
type meshPair struct {
	a, z   *p2p.Mesh
	stream io.ReadWriteCloser
	buffer []byte
	back   chan struct{}
}

const echoProtocol = "/bench/echo"

func newMeshPair(ctx context.Context, dir string) (*meshPair, error) {
	p := &meshPair{buffer: make([]byte, echoBytes), back: make(chan struct{}, 1)}
	open := func(name string, bootstrap []string, h p2p.Handlers) (*p2p.Mesh, error) {
		return p2p.New(ctx, p2p.Config{
			KeyFile: filepath.Join(dir, name+".key"), Listen: []string{"/ip4/127.0.0.1/tcp/0"},
			Domain:      "bench",
			Incarnation: 1, AcceptAnyone: true, Bootstrap: bootstrap,
		}, h, slog.New(slog.DiscardHandler))
	}
	quiet := p2p.Handlers{
		OnPeerSeen: func(grid.SiteID, p2p.Facts) {}, OnPeerGone: func(grid.SiteID, bool) {},
	}
	answers, gives := quiet, quiet
	gives.OnMessage = func(from grid.SiteID, m protocol.Message) { _ = p.z.Send(from, m) }
	answers.OnMessage = func(grid.SiteID, protocol.Message) { p.back <- struct{}{} }
	var err error
	if p.z, err = open("echo-z", nil, gives); err != nil {
		return nil, err
	}
	if p.a, err = open("echo-a", p.z.Addrs(), answers); err != nil {
		return nil, errors.Join(err, p.z.Close())
	}
	seen := func() bool { return len(p.a.Peers()) == 1 && len(p.z.Peers()) == 1 }
	if err = await(ctx, time.Minute, "two sites to meet", seen); err != nil {
		p.close()
		return nil, err
	}
	p.z.Host().SetStreamHandler(echoProtocol, reflect)
	stream, err := p.a.Host().NewStream(ctx, p.z.Host().ID(), echoProtocol)
	if err != nil {
		p.close()
		return nil, err
	}
	p.stream = stream
	return p, nil
}

// reflect answers a stream of any library with what it gets.
func reflect[S io.ReadWriteCloser](s S) {
	_, _ = io.Copy(s, s)
	_ = s.Close()
}

func (p *meshPair) echoStream() error { return echo(p.stream, p.buffer) }

func (p *meshPair) echoMessage() error {
	if err := p.a.Send(p.z.Self(), protocol.Cancel{Job: "aaaaaaaaaaaaaaaa"}); err != nil {
		return err
	}
	select {
	case <-p.back:
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("a message was lost between two sites")
	}
}

func (p *meshPair) close() {
	if p.stream != nil {
		_ = p.stream.Close()
	}
	_ = p.a.Close()
	_ = p.z.Close()
}

// measureSync appends a page to a file and waits for the disk.
func (b *bench) measureSync() error {
	file, err := os.Create(filepath.Join(b.dir, "sync"))
	if err != nil {
		return fmt.Errorf("fsync: %w", err)
	}
	defer func() { _ = file.Close() }() // it is thrown away
	page := make([]byte, 4096)
	var s sample
	for range b.rounds(200) {
		if err := timed(&s, func() error {
			if _, failed := file.Write(page); failed != nil {
				return failed
			}
			return file.Sync()
		}); err != nil {
			return fmt.Errorf("fsync: %w", err)
		}
	}
	b.add(spanned(figSync, s, time.Millisecond))
	return nil
}

// measureSpawn starts the smallest program, bare and in the smallest sandbox.
func (b *bench) measureSpawn(ctx context.Context) error {
	program, err := exec.LookPath("true")
	if err != nil {
		b.missing(figSpawn, err)
		return nil
	}
	box, noBox := exec.LookPath("bwrap")
	boxed := []string{
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--ro-bind", "/", "/",
		"--proc", "/proc", "--dev", "/dev", "--", program,
	}
	if noBox == nil {
		noBox = exec.CommandContext(ctx, box, boxed...).Run() //nolint:gosec // G204: fixed words
	}
	var bare, inBox sample
	for range b.rounds(100) {
		alone := exec.CommandContext(ctx, program) //nolint:gosec // G204: as PATH has it
		if err := timed(&bare, alone.Run); err != nil {
			return fmt.Errorf("spawn: %w", err)
		}
		if noBox != nil {
			continue
		}
		within := exec.CommandContext(ctx, box, boxed...) //nolint:gosec // G204: fixed words
		if err := timed(&inBox, within.Run); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	spawn := b.add(spanned(figSpawn, bare, time.Millisecond)).P50
	if noBox != nil {
		b.missing(figBwrap, fmt.Errorf("no sandbox for commands: %w", noBox))
		return nil
	}
	b.add(spanned(figBwrap, inBox, time.Millisecond)).against("spawn", spawn)
	return nil
}

// star is the raw limit of asking all sites: one TCP server, a message to each
// client, and their answers.
type star struct {
	conns   []net.Conn
	ask     []byte
	answers chan error
	closing []io.Closer
}

// newStar connects n clients that answer so many bytes with so many.
func newStar(ctx context.Context, n, askBytes, answerBytes int) (*star, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("raw star: %w", err)
	}
	s := &star{
		ask: make([]byte, askBytes), answers: make(chan error, n), closing: []io.Closer{listener},
	}
	var dialer net.Dialer
	for range n {
		client, err := dialer.DialContext(ctx, "tcp", listener.Addr().String())
		if err != nil {
			s.close()
			return nil, fmt.Errorf("raw star: %w", err)
		}
		s.closing = append(s.closing, client)
		conn, err := listener.Accept()
		if err != nil {
			s.close()
			return nil, fmt.Errorf("raw star: %w", err)
		}
		s.closing = append(s.closing, conn)
		s.conns = append(s.conns, conn)
		go answer(client, make([]byte, askBytes), make([]byte, answerBytes))
		go s.listen(conn, make([]byte, answerBytes))
	}
	return s, nil
}

// answer is a client's life; it ends with its connection.
func answer(conn net.Conn, ask, reply []byte) {
	for {
		if _, err := io.ReadFull(conn, ask); err != nil {
			return
		}
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}

func (s *star) listen(conn net.Conn, reply []byte) {
	for {
		_, err := io.ReadFull(conn, reply)
		s.answers <- err
		if err != nil {
			return
		}
	}
}

// once asks all clients and waits for the last answer.
func (s *star) once() error {
	for _, conn := range s.conns {
		if _, err := conn.Write(s.ask); err != nil {
			return fmt.Errorf("raw star: %w", err)
		}
	}
	for range s.conns {
		if err := <-s.answers; err != nil {
			return fmt.Errorf("raw star: %w", err)
		}
	}
	return nil
}

// close ends the connections, and with them the goroutines.
func (s *star) close() {
	for _, c := range slices.Backward(s.closing) {
		_ = c.Close() // nothing is lost
	}
}
