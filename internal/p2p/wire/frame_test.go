package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// pieces is a stream that brings given bytes and then ends.
type pieces struct {
	io.Reader
	deadlines int
}

func (p *pieces) Write(b []byte) (int, error)      { return len(b), nil }
func (p *pieces) SetWriteDeadline(time.Time) error { return nil }
func (p *pieces) SetReadDeadline(time.Time) error  { p.deadlines++; return nil }

func TestFramesSayHowAStreamEnded(t *testing.T) {
	good, err := protocol.AppendFrame(nil, protocol.Cancel{Job: "aaaaaaaaaaaaaaab"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		raw  []byte
		want error
	}{
		{"between two messages", nil, io.EOF},
		{"in the length", good[:2], io.ErrUnexpectedEOF},
		{"in the message", good[:len(good)-1], io.ErrUnexpectedEOF},
	} {
		stream := &pieces{Reader: bytes.NewReader(append(bytes.Clone(good), c.raw...))}
		in := NewReader(stream, time.Second)
		if m, err := in.Next(protocol.MaxMessageBytes); err != nil ||
			m != (protocol.Cancel{Job: "aaaaaaaaaaaaaaab"}) {
			t.Fatalf("%s: first message = %v, %v", c.name, m, err)
		}
		if _, err := in.Next(protocol.MaxMessageBytes); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	big := &pieces{Reader: bytes.NewReader(good)}
	if _, err := NewReader(big, time.Second).Next(3); !errors.Is(err, protocol.ErrTooLarge) {
		t.Errorf("beyond the limit: %v, want ErrTooLarge", err)
	}
	slow := &pieces{Reader: iotest.OneByteReader(bytes.NewReader(good))}
	if _, err := NewReader(slow, time.Second).Next(100); err != nil || slow.deadlines < 2 {
		t.Errorf("a slow message: %v with %d deadlines, want one set and cleared", err, slow.deadlines)
	}
}
