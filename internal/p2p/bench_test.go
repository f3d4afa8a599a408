package p2p

import (
	"io"
	"net"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// BenchmarkRoundTrip is a message to a peer and its answer.
func BenchmarkRoundTrip(b *testing.B) {
	nodes := cluster(b, 2, nil)
	a, z := nodes[0], nodes[1]
	back := make(chan struct{}, 1)
	z.recorder.mu.Lock()
	z.on = func(from grid.SiteID, m protocol.Message) { _ = z.Send(from, m) }
	z.recorder.mu.Unlock()
	a.recorder.mu.Lock()
	a.on = func(grid.SiteID, protocol.Message) { back <- struct{}{} }
	a.recorder.mu.Unlock()
	for b.Loop() {
		if err := a.Send(z.Self(), protocol.Cancel{Job: jobID(1)}); err != nil {
			b.Fatal(err)
		}
		<-back
	}
}

// BenchmarkOneWay is many messages to one peer, as fast as they go.
func BenchmarkOneWay(b *testing.B) {
	nodes := cluster(b, 2, nil)
	a, z := nodes[0], nodes[1]
	const window = 1024
	tokens := make(chan struct{}, window)
	z.recorder.mu.Lock()
	z.on = func(grid.SiteID, protocol.Message) { <-tokens }
	z.recorder.mu.Unlock()
	for b.Loop() {
		tokens <- struct{}{}
		if err := a.Send(z.Self(), protocol.Cancel{Job: jobID(1)}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRawTCP measures the machine's limit: as many bytes there and back.
func BenchmarkRawTCP(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s, failed := l.Accept(); failed == nil {
			_, _ = io.Copy(s, s)
			_ = s.Close()
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	frame, err := protocol.AppendFrame(nil, protocol.Cancel{Job: jobID(1)})
	if err != nil {
		b.Fatal(err)
	}
	echo := make([]byte, len(frame))
	for b.Loop() {
		if _, err := c.Write(frame); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, echo); err != nil {
			b.Fatal(err)
		}
	}
	_ = c.Close()
	<-done
}
