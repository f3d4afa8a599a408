package p2p

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
		hello, err := newFrameReader(&pieces{Reader: bytes.NewReader(raw)}, time.Second).readHello()
		slowly, slowErr := newFrameReader(&pieces{Reader: iotest.OneByteReader(bytes.NewReader(raw))}, time.Second).readHello()
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("at once: %v; byte by byte: %v", err, slowErr)
		}
		if err != nil {
			return
		}
		if err := hello.Validate(); err != nil {
			t.Fatalf("an invalid hello is accepted: %v", err)
		}
		if (Facts{Name: hello.Name, Capability: hello.Capability}).same(Facts{Name: slowly.Name, Capability: slowly.Capability}) == false {
			t.Fatalf("at once %+v, byte by byte %+v", hello, slowly)
		}
	})
}

func TestFramesSayHowAStreamEnded(t *testing.T) {
	good, err := protocol.AppendFrame(nil, protocol.Cancel{Job: jobID(1)})
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
		in := newFrameReader(stream, time.Second)
		if m, err := in.next(protocol.MaxMessageBytes); err != nil || m != (protocol.Cancel{Job: jobID(1)}) {
			t.Fatalf("%s: first message = %v, %v", c.name, m, err)
		}
		if _, err := in.next(protocol.MaxMessageBytes); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	big := &pieces{Reader: bytes.NewReader(good)}
	if _, err := newFrameReader(big, time.Second).next(3); !errors.Is(err, protocol.ErrTooLarge) {
		t.Errorf("beyond the limit: %v, want ErrTooLarge", err)
	}
	slow := &pieces{Reader: iotest.OneByteReader(bytes.NewReader(good))}
	if _, err := newFrameReader(slow, time.Second).next(100); err != nil || slow.deadlines < 2 {
		t.Errorf("a slow message: %v with %d deadlines, want one set and cleared", err, slow.deadlines)
	}
}

// FuzzJoinStream reads what a stranger, or an inviter, may say on the stream of
// an invitation.
func FuzzJoinStream(f *testing.F) {
	record := protocol.MemberRecord{
		Domain: "lab", Site: "12D3KooWx", Kind: protocol.MemberAdmit, SerialMS: 1, Signature: make([]byte, protocol.SignatureBytes),
	}
	var whole []byte
	for _, m := range []protocol.Message{
		protocol.JoinAnswer{Admit: &record, Addrs: []string{"/ip4/10.0.0.1/tcp/1/p2p/12D3KooWx"}},
		protocol.Roster{Records: []protocol.MemberRecord{record}, Answer: true},
		protocol.Roster{Digest: protocol.Digest{1}},
	} {
		var err error
		if whole, err = protocol.AppendFrame(whole, m); err != nil {
			f.Fatal(err)
		}
	}
	request, err := protocol.AppendFrame(nil, protocol.JoinRequest{Secret: make([]byte, protocol.SecretBytes)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(request)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		answer, records, err := readJoinAnswer(&pieces{Reader: bytes.NewReader(raw)})
		if err == nil && (answer.Validate() != nil || len(records) > maxRosterParts*protocol.MaxRosterRecords) {
			t.Fatalf("an invalid answer is accepted: %+v with %d records", answer, len(records))
		}
		request, err := readJoinRequest(&pieces{Reader: bytes.NewReader(raw)}, time.Second)
		if err == nil && request.Validate() != nil {
			t.Fatalf("an invalid request is accepted: %+v", request)
		}
	})
}
