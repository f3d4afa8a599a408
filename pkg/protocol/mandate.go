package protocol

import (
	"crypto/ed25519"
	"encoding/binary"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Mandate lets a site, a deputy, stand in for the gateway of its domain until a time. It is signed
// by the domain's key. What a deputy says as one is signed by its own key, which the mandate names.
type Mandate struct {
	Site      grid.SiteID `json:"site"`
	Key       []byte      `json:"key"`       // the site's ed25519 key, ed25519.PublicKeySize long
	UntilMS   int64       `json:"until_ms"`  // on the wall clock, ms since 1970 UTC
	Signature []byte      `json:"signature"` // of the domain's key over SignedBytes
}

// Handover gives a deputy what it needs to hold the links of its domain. The gateway, which is the
// site with the domain's key, says so to each deputy, and again long before the mandate ends. One
// whose mandate has ended takes it back.
type Handover struct {
	Gateway   grid.SiteID
	MadeMS    int64 // the gateway's wall clock, ms since 1970 UTC; a later one replaces this
	Mandate   Mandate
	Deputies  []grid.SiteID // the first of them that is there stands in; at most MaxDeputies
	Links     []byte        // as internal/member writes them, at most MaxHandedLinks
	Signature []byte        // of the domain's key over SignedBytes, SignatureBytes long
}

// Limits on what a deputy is told.
const (
	MaxDeputies    = 3
	MaxHandedLinks = MaxMessageBytes - 4<<10 // bytes
)

// The contexts of signatures keep one from being taken for another.
const (
	mandateContext  = "mrs mandate 1\x00"
	handoverContext = "mrs handover 1\x00"
)

// appendText adds a text behind its length.
func appendText(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(text))), text...)
}

// SignedBytes is the text that the domain's key signs.
func (m Mandate) SignedBytes() []byte {
	text := appendText([]byte(mandateContext), string(m.Site))
	text = appendText(text, string(m.Key))
	return binary.BigEndian.AppendUint64(text, uint64(m.UntilMS))
}

// IsSignedBy reports whether the domain of that key has given the mandate, and it has not ended.
func (m Mandate) IsSignedBy(domain grid.DomainKey, now time.Time) bool {
	public, err := domain.Bytes()
	return err == nil && m.Validate() == nil && now.UnixMilli() < m.UntilMS &&
		ed25519.Verify(public, m.SignedBytes(), m.Signature)
}

// HasSigned reports whether the deputy has signed a text.
func (m Mandate) HasSigned(text, signature []byte) bool {
	return len(m.Key) == ed25519.PublicKeySize && ed25519.Verify(m.Key, text, signature)
}

// Until is the time at which the mandate ends.
func (m Mandate) Until() time.Time { return time.UnixMilli(m.UntilMS) }

// Validate reports the first field that is out of its range. It does not verify the signature.
func (m Mandate) Validate() error {
	switch {
	case len(m.Key) != ed25519.PublicKeySize:
		return invalidf("mandate: key of %d bytes, want %d", len(m.Key), ed25519.PublicKeySize)
	case m.UntilMS <= 0:
		return invalidf("mandate: until %d ms, want more than 0", m.UntilMS)
	case len(m.Signature) != SignatureBytes:
		return invalidf("mandate: signature of %d bytes, want %d", len(m.Signature), SignatureBytes)
	}
	return m.Site.Validate()
}

// SignedBytes is the text that the domain's key signs.
func (m Handover) SignedBytes() []byte {
	text := appendText([]byte(handoverContext), string(m.Gateway))
	text = binary.BigEndian.AppendUint64(text, uint64(m.MadeMS))
	text = appendText(text, string(m.Mandate.SignedBytes()))
	text = binary.BigEndian.AppendUint64(text, uint64(len(m.Deputies)))
	for _, site := range m.Deputies {
		text = appendText(text, string(site))
	}
	return appendText(text, string(m.Links))
}

// Validate reports the first field that is out of its range. It does not verify signatures.
func (m Handover) Validate() error {
	switch {
	case m.MadeMS <= 0:
		return invalidf("handover: made at %d ms, want more than 0", m.MadeMS)
	case len(m.Deputies) > MaxDeputies:
		return invalidf("handover: want at most %d deputies, have %d", MaxDeputies, len(m.Deputies))
	case len(m.Links) > MaxHandedLinks:
		return invalidf("handover: %d bytes of links, at most %d are", len(m.Links), MaxHandedLinks)
	case len(m.Signature) != SignatureBytes:
		return invalidf(
			"handover: signature of %d bytes, want %d", len(m.Signature), SignatureBytes,
		)
	}
	for i, site := range m.Deputies {
		if err := site.Validate(); err != nil {
			return err
		}
		if slices.Contains(m.Deputies[:i], site) {
			return invalidf("handover: deputy %s is named twice", site)
		}
	}
	return firstError(m.Gateway.Validate(), m.Mandate.Validate())
}

// validMandate is Validate of a mandate that may be missing.
func validMandate(m *Mandate) error {
	if m == nil {
		return nil
	}
	return m.Validate()
}

func wireMandate(m *Mandate) *wirepb.Mandate {
	if m == nil {
		return nil
	}
	return &wirepb.Mandate{
		Site: string(m.Site), Key: m.Key, UntilMs: m.UntilMS, Signature: m.Signature,
	}
}

func mandate(w *wirepb.Mandate) *Mandate {
	if w == nil {
		return nil
	}
	return &Mandate{
		Site: grid.SiteID(w.GetSite()), Key: w.GetKey(), UntilMS: w.GetUntilMs(),
		Signature: w.GetSignature(),
	}
}

func wireHandover(m Handover) *wirepb.Handover {
	return &wirepb.Handover{
		Gateway: string(m.Gateway), MadeMs: m.MadeMS, Mandate: wireMandate(&m.Mandate),
		Deputies: each(m.Deputies, func(s grid.SiteID) string { return string(s) }),
		Links:    m.Links, Signature: m.Signature,
	}
}

func handover(w *wirepb.Handover) Message {
	m := Handover{
		Gateway: grid.SiteID(w.GetGateway()), MadeMS: w.GetMadeMs(), Links: w.GetLinks(),
		Deputies:  each(w.GetDeputies(), func(s string) grid.SiteID { return grid.SiteID(s) }),
		Signature: w.GetSignature(),
	}
	if given := mandate(w.GetMandate()); given != nil {
		m.Mandate = *given
	}
	return m
}
