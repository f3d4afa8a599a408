package p2p

import (
	"errors"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A site certifies its own group, whatever owner is named, and nothing that makes no sense.
func TestASiteCertifiesItsOwnGroup(t *testing.T) {
	n := startSite(t, testConfig(t))
	members := []protocol.CertMember{{ID: 9, Site: "other"}, {ID: 7, Site: n.Self()}}
	c, err := n.Certify(protocol.Certificate{Owner: "other", Epoch: 2, Members: members})
	if err != nil {
		t.Fatal(err)
	}
	if c.Owner != n.Self() || c.Members[0].ID != 7 {
		t.Errorf("certified: %+v", c)
	}
	read, err := protocol.DecodeCertificate(c.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Verify(SignedBy); err != nil {
		t.Error(err)
	}
	read.Epoch++
	if err := read.Verify(SignedBy); !errors.Is(err, protocol.ErrForged) {
		t.Errorf("of another epoch: %v", err)
	}
	if _, err := n.Certify(protocol.Certificate{Epoch: 2}); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("of nobody: %v", err)
	}
}
