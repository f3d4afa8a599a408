package data

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const benchBytes = 64 << 20

// BenchmarkFetch64MiB moves a file between two hosts on loopback, disk to disk.
// BenchmarkTCP64MiB is the same amount over a bare connection, memory to memory:
// what the machine could do at best.
func BenchmarkFetch64MiB(b *testing.B) {
	from := newSite(b, nil)
	ref := mustAdd(b, from.Store, noise(1, benchBytes))
	b.SetBytes(benchBytes)
	for b.Loop() {
		b.StopTimer()
		to := newSite(b, nil)
		to.knows(from)
		b.StartTimer()
		mustFetch(b, to.Store, ref.CID, from.id)
		b.StopTimer()
		if err := to.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkTCP64MiB(b *testing.B) {
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	data := noise(1, benchBytes)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(data)
			_ = c.Close()
		}
	}()
	b.SetBytes(benchBytes)
	for b.Loop() {
		c, err := new(net.Dialer).DialContext(b.Context(), "tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, c); err != nil || n != benchBytes {
			b.Fatalf("copied %d bytes, %v", n, err)
		}
		_ = c.Close()
	}
}

func BenchmarkAddFile64MiB(b *testing.B) {
	data := noise(1, benchBytes)
	s := newSite(b, nil).Store
	b.SetBytes(benchBytes)
	for b.Loop() {
		ref := mustAdd(b, s, data)
		b.StopTimer()
		if err := s.forget(ref.CID); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkFetchSmall measures the cost of one small input: connected, one block.
func BenchmarkFetchSmall(b *testing.B) {
	from, to := newSite(b, nil), newSite(b, nil)
	to.knows(from)
	var refs []Ref
	for i := range 200 {
		ref, err := from.AddFile(b.Context(), bytes.NewReader(noise(uint64(i), 1000)))
		if err != nil {
			b.Fatal(err)
		}
		refs = append(refs, ref)
	}
	i := 0
	for b.Loop() {
		ref := refs[i%len(refs)]
		i++
		if _, err := to.Fetch(b.Context(), ref.CID, []grid.SiteID{from.id}, nil); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := to.forget(ref.CID); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
