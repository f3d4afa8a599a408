package standby

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// kindOffice is the kind of a Register's facts; the key is the owner.
const kindOffice = "office/1"

// errOffice is a fact that a Register has not written.
var errOffice = errors.New("no fact of a register")

// officeFact holds what of an office outlives a crash.
type officeFact struct {
	Certificate []byte      `json:"certificate"`
	Term        uint64      `json:"term,omitempty"`
	Acting      grid.SiteID `json:"acting,omitempty"`
}

func (o *office) fact() step.Fact {
	f := step.Fact{Kind: kindOffice, Key: string(o.certificate.Owner)}
	f.Value, _ = json.Marshal(officeFact{Certificate: o.raw, Term: o.term, Acting: o.acting})
	return f
}

// Restore takes the facts of earlier runs into an empty register. Signatures were verified when
// the facts were written, and are verified again: the disk may have been someone else's.
func (r *Register) Restore(facts []step.Fact) error {
	for _, f := range facts {
		if err := r.restore(f); err != nil {
			return fmt.Errorf("restore register: fact %s %s: %w", f.Kind, f.Key, err)
		}
	}
	return nil
}

func (r *Register) restore(f step.Fact) error {
	if f.Kind != kindOffice {
		return fmt.Errorf("%w: unknown kind; was it written by a later version?", errOffice)
	}
	var value officeFact
	if err := json.Unmarshal(f.Value, &value); err != nil {
		return fmt.Errorf("%w: %w", errOffice, err)
	}
	c, err := protocol.DecodeCertificate(value.Certificate)
	if err == nil {
		err = c.Verify(r.cfg.Verify)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errOffice, err)
	}
	if string(c.Owner) != f.Key || (value.Term == 0) != (value.Acting == "") {
		return fmt.Errorf("%w: its owner, or who acts, does not match", errOffice)
	}
	o := &office{
		raw: value.Certificate, certificate: c, term: value.Term, acting: value.Acting, saved: true,
	}
	r.owners[c.Owner] = o
	r.use(o)
	return nil
}
