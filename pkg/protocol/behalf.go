package protocol

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Behalf says for which owner a message is said or meant, where that is not simply the site that
// sends or gets it (ADR 53).
//
// From an acting submitter to sites it has all three: by them a site judges whether it heeds the
// sender. From a site to the group members of an owner it has the owner alone.
type Behalf struct {
	Owner       grid.SiteID // whose jobs these are
	Term        uint64      // of the acting submitter, from 1; 0: a site says it
	Certificate []byte      // as Certificate.Encode writes it, at most maxCertificateBytes
}

// OnBehalf is a message between an acting submitter and a site. A site that knows no standbys
// reads the message alone, as the sender's own.
type OnBehalf struct {
	Behalf

	Message Message // one of those between submitters and sites
}

// Validate reports the first field that is out of its range.
func (m OnBehalf) Validate() error {
	if !betweenMachines(m.Message) {
		return invalidf("behalf: %T is not said on anybody's behalf", m.Message)
	}
	if ForBroker(m.Message) {
		if m.Term != 0 || len(m.Certificate) != 0 {
			return invalidf("behalf: a site has neither a term nor a certificate")
		}
	} else if m.Term == 0 {
		return invalidf("behalf: terms count from 1")
	} else if err := checkCertificateBytes(m.Certificate); err != nil {
		return err
	}
	return firstError(m.Owner.Validate(), m.Message.Validate())
}

// betweenMachines reports whether a message is one between a submitter's machine and a site's, or
// the controller's of a domain.
// Only these may be said on behalf of an owner.
func betweenMachines(m Message) bool {
	switch m.(type) {
	case Announce, Reannounce, Requirements, HoldOffer, Award, Clear, Lease, Held, Fence, Cancel,
		ExitAck, Move, Remapped:
		return true
	case OnBehalf: // no nesting, whatever ForBroker says of what is inside
		return false
	default:
		return ForBroker(m)
	}
}

// setBehalf sets the field that stands beside the body.
func setBehalf(w *wirepb.Wire, b Behalf) {
	w.Behalf = &wirepb.Behalf{Owner: string(b.Owner), Term: b.Term, Certificate: b.Certificate}
}

// onBehalf puts what was read of a body into what is said beside it.
func onBehalf(w *wirepb.Behalf, m Message) Message {
	if w == nil || m == nil {
		return m
	}
	return OnBehalf{
		Behalf: Behalf{
			Owner: grid.SiteID(w.GetOwner()), Term: w.GetTerm(), Certificate: w.GetCertificate(),
		},
		Message: m,
	}
}
