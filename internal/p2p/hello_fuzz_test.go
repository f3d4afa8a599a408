package p2p

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// pieces is a stream that brings given bytes and then ends.
type pieces struct {
	io.Reader
}

func (p *pieces) Write(b []byte) (int, error)      { return len(b), nil }
func (p *pieces) SetWriteDeadline(time.Time) error { return nil }
func (p *pieces) SetReadDeadline(time.Time) error  { return nil }

func FuzzReadHello(f *testing.F) {
	good, err := protocol.AppendFrame(nil, validHello())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{0, 0, 0, 1, 8})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		hello, err := readHello(wire.NewReader(&pieces{Reader: bytes.NewReader(raw)}, time.Second))
		slowly, slowErr := readHello(
			wire.NewReader(&pieces{Reader: iotest.OneByteReader(bytes.NewReader(raw))}, time.Second),
		)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("in one piece: %v; byte by byte: %v", err, slowErr)
		}
		if err != nil {
			return
		}
		if err := hello.Validate(); err != nil {
			t.Fatalf("an invalid hello is accepted: %v", err)
		}
		if (Facts{Name: hello.Name, Capability: hello.Capability}).same(Facts{
			Name: slowly.Name, Capability: slowly.Capability,
		}) == false {
			t.Fatalf("in one piece %+v, byte by byte %+v", hello, slowly)
		}
	})
}
