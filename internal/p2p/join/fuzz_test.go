package join

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// pieces is a stream that brings given bytes and then ends.
type pieces struct {
	io.Reader
}

func (p *pieces) Write(b []byte) (int, error)      { return len(b), nil }
func (p *pieces) SetWriteDeadline(time.Time) error { return nil }
func (p *pieces) SetReadDeadline(time.Time) error  { return nil }

// FuzzJoinStream reads what a stranger, or an inviter, may say on the stream of
// an invitation.
func FuzzJoinStream(f *testing.F) {
	record := protocol.MemberRecord{
		Domain: "lab", Site: "12D3KooWx", Kind: protocol.MemberAdmit, SerialMS: 1,
		Signature: make([]byte, protocol.SignatureBytes),
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
	request, err := protocol.AppendFrame(nil, protocol.JoinRequest{
		Secret: make([]byte, protocol.SecretBytes),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(request)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		answer, records, err := readAnswer(&pieces{Reader: bytes.NewReader(raw)})
		if err == nil && (answer.Validate() != nil ||
			len(records.Records) > maxRosterParts*protocol.MaxRosterRecords) {
			t.Fatalf("an invalid answer is accepted: %+v with %d records",
				answer, len(records.Records))
		}
		request, err := readRequest(&pieces{Reader: bytes.NewReader(raw)})
		if err == nil && request.Validate() != nil {
			t.Fatalf("an invalid request is accepted: %+v", request)
		}
	})
}
