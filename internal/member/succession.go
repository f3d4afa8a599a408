package member

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Why a succession is not followed.
var (
	// ErrContested says that two successors of one key of the domain are known.
	ErrContested = errors.New("another successor of the same key is known")
	// ErrFormer says that a record was signed by a key of the domain that has a successor.
	ErrFormer = errors.New("signed by a former key of this domain")
)

// follow is the roster after these successions of the domain's key, all from the first one, and
// those of them that are new. Of two successors of one key the first that was known stays. The
// error is errForged, or ErrContested with the number of the one that is not followed.
func (r Roster) follow(all []protocol.Succession) (Roster, []protocol.Succession, error) {
	if !r.trusts() || len(all) == 0 {
		return r, nil, nil
	}
	if err := protocol.ValidSuccessions(all); err != nil {
		return r, nil, err
	}
	same, problem := r.shared(all)
	if problem != nil {
		return r, nil, problem
	}
	fresh := all[same:]
	for _, s := range fresh {
		if s.Domain != r.domain || !s.IsSigned() {
			return r, nil, fmt.Errorf("succession %d: %w", s.Number, errForged)
		}
		if same < len(r.chain) {
			return r, nil, fmt.Errorf("succession %d to %s: %w (%s)", s.Number, s.Successor,
				ErrContested, r.chain[same].Successor)
		}
	}
	if len(fresh) == 0 {
		return r, nil, nil
	}
	next, err := newRoster(r.domain, all[len(all)-1].Successor)
	if err != nil {
		return r, nil, err
	}
	next.chain = slices.Clone(all)
	if next, err = next.restore(r.all()); err != nil {
		return r, nil, err
	}
	return next, slices.Clone(fresh), nil
}

// restore takes in what this site has held before, whichever key of the domain has signed it; what
// a former key may not have signed is left out. The error, errForged or grid.ErrInvalid, is about
// the first record that no key of the domain has signed; those after it are not looked at.
func (r Roster) restore(records []protocol.MemberRecord) (restored Roster, err error) {
	for _, record := range records {
		if err = r.put(record); err != nil {
			break
		}
	}
	r.trim()
	r.settle()
	r.digest = r.sum()
	return r, err
}

// shared is the number of successions, from the first one, that are known already.
func (r Roster) shared(all []protocol.Succession) (int, error) {
	if len(r.chain) == 0 {
		key := r.Key()
		if all[0].Former != key && !slices.ContainsFunc(all, func(s protocol.Succession) bool {
			return s.Successor == key
		}) {
			return 0, fmt.Errorf("successions of another key than %s: %w", key, errForged)
		}
		return 0, nil
	}
	if all[0].Former != r.chain[0].Former {
		return 0, fmt.Errorf("successions of another key than %s: %w", r.chain[0].Former, errForged)
	}
	same := 0
	for same < min(len(all), len(r.chain)) && all[same].Successor == r.chain[same].Successor {
		same++
	}
	return same, nil
}

// put takes in a record that this site has held before.
func (r Roster) put(record protocol.MemberRecord) error {
	err := r.verify(record)
	switch {
	case err == nil:
		r.records[record.Site] = record
	case errors.Is(err, ErrFormer):
		if record.SerialMS <= r.chain[r.formerSigner(record)].HighestMS {
			r.former[record.Site] = record
		}
	default:
		return err
	}
	return nil
}

// formerSigner is the place of the succession that ended the key which has signed the record; -1:
// no former key has.
func (r Roster) formerSigner(record protocol.MemberRecord) int {
	text := record.SignedBytes()
	for i, s := range slices.Backward(r.chain) {
		key, err := s.Former.Bytes()
		if err == nil && ed25519.Verify(key, text, record.Signature) {
			return i
		}
	}
	return -1
}

// settle drops records of former keys: those of which the present key says something, and all
// once this roster has every record that the present key took over.
func (r Roster) settle() {
	if len(r.former) == 0 {
		return
	}
	last := r.chain[len(r.chain)-1]
	taken := 0
	for site, record := range r.records {
		delete(r.former, site)
		if record.Successions < last.Number {
			taken++
		}
	}
	if taken >= int(last.Records) {
		clear(r.former)
	}
	old := bySite(r.former)
	slices.SortStableFunc(old, compare)
	for _, record := range old[:max(0, min(r.Len()-maxRecords, len(old)))] {
		delete(r.former, record.Site)
	}
}
