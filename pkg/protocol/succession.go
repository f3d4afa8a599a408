package protocol

import (
	"crypto/ed25519"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Limits on successions.
const (
	// MaxSuccessions is the largest number of successions of a domain's key.
	MaxSuccessions = 64
	// MaxRosterSites is the largest number of sites that a domain's roster speaks of.
	MaxRosterSites = 4096
)

const successionContext = "mrs/1/succession"

// Succession says that a new key of a domain takes the place of the one before. Both have signed
// it: the former one gives, the successor takes.
type Succession struct {
	Domain    grid.DomainID
	Number    uint32         // 1 for that of the domain's first key, at most MaxSuccessions
	Former    grid.DomainKey // that signs nothing any more
	Successor grid.DomainKey // that signs from now on
	MadeMS    int64          // on the wall clock of the site that made it, ms since 1970 UTC
	// Records counts the sites of which the roster spoke then, at most MaxRosterSites. The
	// successor has signed these records again.
	Records uint32
	// HighestMS is the highest serial among the records that the former key had signed and that
	// were in the roster then; one above that it has not signed for this domain.
	HighestMS   int64
	ByFormer    []byte // the former key's signature over SignedBytes, SignatureBytes long
	BySuccessor []byte // the successor's
}

// Validate reports the first field that is out of its range. It does not verify signatures.
func (s Succession) Validate() error {
	if len(s.ByFormer) != SignatureBytes || len(s.BySuccessor) != SignatureBytes {
		return invalidf("succession: signatures of %d and %d bytes, want %d",
			len(s.ByFormer), len(s.BySuccessor), SignatureBytes)
	}
	return s.validateContent()
}

func (s Succession) validateContent() error {
	const lastMS = math.MaxInt64 / int64(time.Millisecond)
	switch {
	case s.Number < 1 || s.Number > MaxSuccessions:
		return invalidf("succession: number %d, want 1 to %d", s.Number, MaxSuccessions)
	case s.Former == s.Successor:
		return invalidf("succession %d: a key cannot succeed itself", s.Number)
	case s.MadeMS <= 0 || s.MadeMS > lastMS:
		return invalidf("succession %d: made at %d ms is no time", s.Number, s.MadeMS)
	case s.Records > MaxRosterSites:
		return invalidf("succession %d: %d records, want at most %d",
			s.Number, s.Records, MaxRosterSites)
	case s.HighestMS < 0 || s.HighestMS > lastMS:
		return invalidf("succession %d: highest serial %d is no time of issue",
			s.Number, s.HighestMS)
	}
	return firstError(s.Domain.Validate(), s.Former.Validate(), s.Successor.Validate())
}

// ValidSuccessions reports the first of a domain's successions, all from the first one, that is
// out of its range or does not follow the one before. It does not verify signatures.
func ValidSuccessions(all []Succession) error {
	if len(all) > MaxSuccessions {
		return invalidf("more than %d successions", MaxSuccessions)
	}
	seen := make(map[grid.DomainKey]bool, len(all))
	for i, s := range all {
		if err := s.Validate(); err != nil {
			return err
		}
		first := all[0]
		seen[s.Former] = true
		switch {
		case s.Number != uint32(i)+1 || s.Domain != first.Domain:
			return invalidf("succession %d of %s stands at place %d of those of %s",
				s.Number, s.Domain, i+1, first.Domain)
		case i > 0 && s.Former != all[i-1].Successor:
			return invalidf("succession %d is not of the key before", s.Number)
		case seen[s.Successor]:
			return invalidf("succession %d is to a key of before", s.Number)
		}
	}
	return nil
}

// SignedBytes returns the bytes that both signatures cover. Equal successions give equal bytes.
// The bytes of one whose fields are out of range are nil.
func (s Succession) SignedBytes() []byte {
	if s.validateContent() != nil {
		return nil
	}
	signed, err := marshalOptions().Marshal(&wirepb.SignedSuccession{
		Context: successionContext, Domain: string(s.Domain), Number: s.Number,
		Former: string(s.Former), Successor: string(s.Successor), MadeMs: s.MadeMS,
		Records: s.Records, HighestMs: s.HighestMS,
	})
	if err != nil { // the texts were found to be UTF-8
		return nil
	}
	return signed
}

// IsSigned reports whether both keys have signed it.
func (s Succession) IsSigned() bool {
	former, errFormer := s.Former.Bytes()
	successor, errSuccessor := s.Successor.Bytes()
	text := s.SignedBytes()
	return errFormer == nil && errSuccessor == nil && text != nil &&
		ed25519.Verify(former, text, s.ByFormer) &&
		ed25519.Verify(successor, text, s.BySuccessor)
}

func wireSuccession(s Succession) *wirepb.Succession {
	return &wirepb.Succession{
		Signed: s.SignedBytes(), ByFormer: s.ByFormer, BySuccessor: s.BySuccessor,
	}
}

// succession reads one. What was signed must be exactly what SignedBytes gives again, so that one
// statement has one form.
func (r *reader) succession(w *wirepb.Succession) Succession {
	var signed wirepb.SignedSuccession
	if err := proto.Unmarshal(w.GetSigned(), &signed); err != nil {
		r.fail(fmt.Errorf("%w: succession: %w", ErrMalformed, err))
		return Succession{}
	}
	s := Succession{
		Domain: grid.DomainID(signed.GetDomain()), Number: signed.GetNumber(),
		Former:    grid.DomainKey(signed.GetFormer()),
		Successor: grid.DomainKey(signed.GetSuccessor()),
		MadeMS:    signed.GetMadeMs(), Records: signed.GetRecords(),
		HighestMS: signed.GetHighestMs(),
		ByFormer:  w.GetByFormer(), BySuccessor: w.GetBySuccessor(),
	}
	if signed.GetContext() != successionContext ||
		string(s.SignedBytes()) != string(w.GetSigned()) {
		r.fail(fmt.Errorf("%w: succession: not in its one form", ErrMalformed))
	}
	return s
}
