package p2p

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Certify signs a certificate of this site, as the owner of a group, with the site's key. It signs
// nothing else, and for no other owner. The certificate's Owner and Signature are filled in, and
// its members are put in order.
func (m *Mesh) Certify(c protocol.Certificate) (protocol.Certificate, error) {
	c.Owner = m.self
	signed, err := c.Sign(m.key.Sign)
	if err != nil {
		return protocol.Certificate{}, fmt.Errorf("certify the group of this site: %w", err)
	}
	return signed, nil
}
