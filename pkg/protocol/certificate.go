package protocol

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Certificate says which group members may act for an owner. It is signed by the owner's key and
// nobody else's, so that no standby can name another (ADR 53, rule 15). The one with the highest
// epoch holds.
type Certificate struct {
	Owner     grid.SiteID
	Epoch     uint64       // from 1; grows with every certificate of the owner
	Members   []CertMember // 1 to maxCertMembers, ascending by ID
	Signature []byte       // of the owner's key over signedBytes, SignatureBytes long
}

// CertMember is a group member of a certificate. While a site whose log was lost is replaced by
// itself, it is named twice, with two IDs.
type CertMember struct {
	ID   uint64 // drawn when it joined; neither 0 nor one of the last two numbers
	Site grid.SiteID
}

// Limits on certificates.
const (
	maxCertMembers      = 6       // the three of a group, and three that replace them
	maxCertificateBytes = 2 << 10 // of an encoded certificate
	maxCertMember       = math.MaxUint64 - 2
	certificateContext  = "mrs/1/certificate"
)

// errForged says that a certificate was not signed by its owner's key.
var errForged = errors.New("not signed by the owner's key")

// Validate reports the first field that is out of its range. It does not verify the signature.
func (c Certificate) Validate() error {
	if len(c.Signature) != SignatureBytes {
		return invalidf(
			"certificate: signature of %d bytes, want %d", len(c.Signature), SignatureBytes,
		)
	}
	return c.validateContent()
}

func (c Certificate) validateContent() error {
	switch {
	case c.Epoch == 0:
		return invalidf("certificate: epochs count from 1")
	case len(c.Members) == 0 || len(c.Members) > maxCertMembers:
		return invalidf(
			"certificate: want 1 to %d members, have %d", maxCertMembers, len(c.Members),
		)
	}
	for i, m := range c.Members {
		if err := firstError(checkMember(m.ID), m.Site.Validate()); err != nil {
			return err
		}
		if i > 0 && m.ID <= c.Members[i-1].ID {
			return invalidf("certificate: member %d is named twice or out of order", m.ID)
		}
	}
	return c.Owner.Validate()
}

func checkMember(id uint64) error {
	if id == 0 || id > maxCertMember {
		return invalidf("member: number %d is kept for nobody; draw another", id)
	}
	return nil
}

// Names reports whether the site is one of the members.
func (c Certificate) Names(site grid.SiteID) bool {
	return slices.ContainsFunc(c.Members, func(m CertMember) bool { return m.Site == site })
}

// Sites lists the members' sites, each once, ascending by the IDs of the members.
func (c Certificate) Sites() []grid.SiteID {
	sites := make([]grid.SiteID, 0, len(c.Members))
	for _, m := range c.Members {
		if !slices.Contains(sites, m.Site) {
			sites = append(sites, m.Site)
		}
	}
	return sites
}

// Sign is the certificate with its members in order and the signature that sign makes of
// signedBytes with the owner's key. A certificate with a field out of its range is not signed.
func (c Certificate) Sign(sign func(text []byte) ([]byte, error)) (Certificate, error) {
	c.Members = slices.SortedFunc(slices.Values(c.Members), func(a, b CertMember) int {
		return cmp.Compare(a.ID, b.ID)
	})
	err := c.validateContent()
	if err == nil {
		c.Signature, err = sign(c.signedBytes())
	}
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return Certificate{}, fmt.Errorf("sign certificate: %w", err)
	}
	return c, nil
}

// Verify is errForged unless holds, which verifies a signature with the key of a site, says that
// the owner has signed this.
func (c Certificate) Verify(holds func(signer grid.SiteID, text, signature []byte) bool) error {
	text := c.signedBytes()
	if text == nil || !holds(c.Owner, text, c.Signature) {
		return fmt.Errorf("certificate %d of %s: %w", c.Epoch, c.Owner, errForged)
	}
	return nil
}

// signedBytes returns the bytes that the signature covers. Equal certificates give equal bytes.
// The bytes of one whose fields are out of range are nil.
func (c Certificate) signedBytes() []byte {
	if c.validateContent() != nil {
		return nil
	}
	signed, err := marshalOptions().Marshal(&wirepb.SignedCertificate{
		Context: certificateContext, Owner: string(c.Owner), Epoch: c.Epoch,
		Members: each(c.Members, func(m CertMember) *wirepb.CertMember {
			return &wirepb.CertMember{Id: m.ID, Site: string(m.Site)}
		}),
	})
	if err != nil { // the names of sites are ASCII
		return nil
	}
	return signed
}

// Encode writes a valid certificate; the bytes of one that is not are nil.
func (c Certificate) Encode() []byte {
	if c.Validate() != nil {
		return nil
	}
	raw, err := marshalOptions().
		Marshal(&wirepb.Certificate{Signed: c.signedBytes(), Signature: c.Signature})
	if err != nil { // there is no text in it that could be wrong
		return nil
	}
	return raw
}

// DecodeCertificate reads what Encode wrote, and nothing else: one statement has one form. The
// signature is not verified. The errors are those of Decode.
func DecodeCertificate(raw []byte) (Certificate, error) {
	if len(raw) > maxCertificateBytes {
		return Certificate{}, fmt.Errorf("%w: certificate of %d bytes, the limit is %d",
			ErrTooLarge, len(raw), maxCertificateBytes)
	}
	var outer wirepb.Certificate
	var inner wirepb.SignedCertificate
	err := proto.Unmarshal(raw, &outer)
	if err == nil {
		err = proto.Unmarshal(outer.GetSigned(), &inner)
	}
	if err != nil {
		return Certificate{}, fmt.Errorf("%w: certificate: %w", ErrMalformed, err)
	}
	c := Certificate{
		Owner: grid.SiteID(inner.GetOwner()), Epoch: inner.GetEpoch(),
		Signature: outer.GetSignature(),
		Members: each(inner.GetMembers(), func(m *wirepb.CertMember) CertMember {
			return CertMember{ID: m.GetId(), Site: grid.SiteID(m.GetSite())}
		}),
	}
	if err := c.Validate(); err != nil {
		return Certificate{}, err
	}
	if inner.GetContext() != certificateContext || !bytes.Equal(c.Encode(), raw) {
		return Certificate{}, fmt.Errorf(
			"%w: certificate: signed for another purpose, or in another form", ErrMalformed)
	}
	return c, nil
}

// checkCertificateBytes looks at the size alone: who is to heed the certificate decodes it.
func checkCertificateBytes(raw []byte) error {
	if len(raw) == 0 || len(raw) > maxCertificateBytes {
		return invalidf("certificate: want 1 to %d bytes, have %d", maxCertificateBytes, len(raw))
	}
	return nil
}
