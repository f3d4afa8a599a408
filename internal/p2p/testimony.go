package p2p

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// causeTestimony labels testimonies that their authors have not signed, in wire.CountInvalid.
const causeTestimony = "testimony"

// signed is a message as it is sent: what this site says of others has its signature, so that it
// can be held to its word.
func (m *Mesh) signed(message protocol.Message) (protocol.Message, error) {
	said, is := message.(protocol.Testimony)
	if !is || said.Author != m.self {
		return message, nil
	}
	signature, err := m.key.Sign(said.SignedBytes(m.cfg.Domain))
	if err != nil {
		return nil, fmt.Errorf("sign testimony: %w", err)
	}
	said.Signature = signature
	return said, nil
}

// isGenuine reports whether a message is no testimony, or one that its author has signed for this
// domain.
func (m *Mesh) isGenuine(message protocol.Message) bool {
	said, is := message.(protocol.Testimony)
	if !is {
		return true
	}
	id, err := wire.PeerOf(said.Author)
	if err != nil {
		return false
	}
	var key crypto.PubKey
	if key, err = id.ExtractPublicKey(); err != nil {
		return false
	}
	ok, err := key.Verify(said.SignedBytes(m.cfg.Domain), said.Signature)
	return ok && err == nil
}
