package protocol

import (
	"crypto/ed25519"
	"encoding/binary"
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Neighbours names the neighbouring domains that can be reached now through this domain's gateway.
// The gateway, or the deputy that stands in for it, says so to each member. It is signed by the
// domain's key, or under a mandate of it, so that no other member can stand for a neighbour.
type Neighbours struct {
	Gateway   grid.SiteID
	MadeMS    int64       // the gateway's wall clock, ms since 1970 UTC; a later one replaces this
	All       []Neighbour // ascending by domain, at most MaxNeighbours
	Mandate   *Mandate    // of the deputy that says it; nil: the site with the domain's key does
	Signature []byte      // over SignedBytes, SignatureBytes long
}

// Neighbour is one domain.
type Neighbour struct {
	Domain grid.SiteID   // the site that it is taken for here
	Name   grid.DomainID // what it calls itself
	Beside bool          // it is asked together with the members, not after them
}

// MaxNeighbours bounds the neighbours of a domain.
const MaxNeighbours = 256

// ByGateway carries a message of a submitter to a neighbouring domain, or of that domain to a
// submitter, by way of the gateway.
type ByGateway struct {
	Domain  grid.SiteID // the neighbour
	Message Message     // one of those between submitters and sites, or such an OnBehalf
}

// IsSignedBy reports whether the domain of that key says so, or one of its deputies whose mandate
// has not ended.
func (m Neighbours) IsSignedBy(domain grid.DomainKey, now time.Time) bool {
	if m.Mandate != nil {
		return m.Mandate.Site == m.Gateway && m.Mandate.IsSignedBy(domain, now) &&
			m.Mandate.HasSigned(m.SignedBytes(), m.Signature)
	}
	public, err := domain.Bytes()
	return err == nil && len(m.Signature) == ed25519.SignatureSize &&
		ed25519.Verify(public, m.SignedBytes(), m.Signature)
}

// SignedBytes is the text that is signed.
func (m Neighbours) SignedBytes() []byte {
	text := appendText([]byte("mrs neighbours 1\x00"), string(m.Gateway))
	text = binary.BigEndian.AppendUint64(text, uint64(m.MadeMS))
	for _, n := range m.All {
		text = appendText(text, string(n.Domain))
		text = appendText(text, string(n.Name))
		if n.Beside { // no text is so long
			text = binary.BigEndian.AppendUint64(text, math.MaxUint64)
		}
	}
	return text
}

// Validate reports the first field that is out of its range.
func (m Neighbours) Validate() error {
	switch {
	case m.MadeMS <= 0:
		return invalidf("neighbours: made at %d ms, want more than 0", m.MadeMS)
	case len(m.All) > MaxNeighbours:
		return invalidf("neighbours: want at most %d, have %d", MaxNeighbours, len(m.All))
	case len(m.Signature) != SignatureBytes:
		return invalidf(
			"neighbours: signature of %d bytes, want %d", len(m.Signature), SignatureBytes,
		)
	}
	for i, n := range m.All {
		if err := firstError(n.Domain.Validate(), n.Name.Validate()); err != nil {
			return err
		}
		if i > 0 && n.Domain <= m.All[i-1].Domain {
			return invalidf("neighbours: not ascending by domain")
		}
	}
	return firstError(m.Gateway.Validate(), validMandate(m.Mandate))
}

// Validate reports the first field that is out of its range.
func (m ByGateway) Validate() error {
	if _, behalf := m.Message.(OnBehalf); !behalf && !betweenMachines(m.Message) {
		return invalidf("neighbour: %T is not said to one, nor by one", m.Message)
	}
	return firstError(m.Domain.Validate(), m.Message.Validate())
}

// byGateway puts what was read of a message into what is said beside it.
func byGateway(domain string, m Message) Message {
	if domain == "" || m == nil {
		return m
	}
	return ByGateway{Domain: grid.SiteID(domain), Message: m}
}

// setNeighbours sets the body for what a gateway tells members; it reports false for all others.
func setNeighbours(w *wirepb.Wire, m Message) bool {
	switch m := m.(type) {
	case Neighbours:
		w.Body = &wirepb.Wire_Neighbours{Neighbours: &wirepb.Neighbours{
			Gateway: string(m.Gateway), MadeMs: m.MadeMS, Signature: m.Signature,
			Mandate: wireMandate(m.Mandate),
			All: each(m.All, func(n Neighbour) *wirepb.Neighbour {
				return &wirepb.Neighbour{
					Domain: string(n.Domain), Name: string(n.Name), Beside: n.Beside,
				}
			}),
		}}
	case Handover:
		w.Body = &wirepb.Wire_Handover{Handover: wireHandover(m)}
	default:
		return false
	}
	return true
}

// aboutNeighbours is the counterpart of setNeighbours.
func aboutNeighbours(w *wirepb.Wire) Message {
	switch b := w.GetBody().(type) {
	case *wirepb.Wire_Neighbours:
		n := b.Neighbours
		return Neighbours{
			Gateway: grid.SiteID(n.GetGateway()), MadeMS: n.GetMadeMs(),
			Mandate: mandate(n.GetMandate()), Signature: n.GetSignature(),
			All: each(n.GetAll(), func(n *wirepb.Neighbour) Neighbour {
				return Neighbour{
					Domain: grid.SiteID(n.GetDomain()), Name: grid.DomainID(n.GetName()),
					Beside: n.GetBeside(),
				}
			}),
		}
	case *wirepb.Wire_Handover:
		return handover(b.Handover)
	default:
		return nil
	}
}
