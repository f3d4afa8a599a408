package member

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxRecords limits the sites of a roster.
const maxRecords = 4096

// errForged says that a record was not signed by the domain's key, or is of
// another domain.
var errForged = errors.New("not signed by this domain's key")

// Roster holds the records that a domain's key has signed, at most one for each site
// and at most maxRecords. It is a value that is never changed. The zero value trusts
// no key and stays empty.
type Roster struct {
	domain  grid.DomainID
	key     ed25519.PublicKey
	records map[grid.SiteID]protocol.MemberRecord
	digest  protocol.Digest
}

// newRoster makes an empty roster of a domain that trusts the key.
func newRoster(domain grid.DomainID, key grid.DomainKey) (Roster, error) {
	public, err := key.Bytes()
	if err != nil {
		return Roster{}, fmt.Errorf("make roster: %w", err)
	}
	r := Roster{domain: domain, key: public, records: map[grid.SiteID]protocol.MemberRecord{}}
	r.digest = r.sum()
	return r, nil
}

// trusts reports whether the roster trusts a key at all.
func (r Roster) trusts() bool { return r.key != nil }

// Len is the number of records.
func (r Roster) Len() int { return len(r.records) }

// Get returns the record of a site, if there is one.
func (r Roster) Get(site grid.SiteID) (protocol.MemberRecord, bool) {
	record, ok := r.records[site]
	return record, ok
}

// Records lists all, ascending by site.
func (r Roster) Records() []protocol.MemberRecord {
	list := make([]protocol.MemberRecord, 0, len(r.records))
	for _, site := range slices.Sorted(maps.Keys(r.records)) {
		list = append(list, r.records[site])
	}
	return list
}

// Digest is the same for equal rosters; zero when no key is trusted.
func (r Roster) Digest() protocol.Digest { return r.digest }

// Merge takes over the records that say something newer, and returns these. The
// error, errForged or grid.ErrInvalid, is about the first record that is not valid;
// the ones after it are not looked at. Records that say nothing new cost no
// verification.
func (r Roster) Merge(records []protocol.MemberRecord) (Roster, []protocol.MemberRecord, error) {
	if !r.trusts() || !slices.ContainsFunc(records, r.isNews) {
		return r, nil, nil
	}
	merged := r
	merged.records = maps.Clone(r.records)
	var problem error
	for _, record := range records {
		if !merged.isNews(record) {
			continue
		}
		if problem = r.verify(record); problem != nil {
			break
		}
		merged.records[record.Site] = record
	}
	merged.trim()
	var fresh []protocol.MemberRecord
	for _, site := range slices.Sorted(maps.Keys(merged.records)) {
		if record := merged.records[site]; r.isNews(record) {
			fresh = append(fresh, record)
		}
	}
	if len(fresh) == 0 {
		return r, nil, problem
	}
	merged.digest = merged.sum()
	return merged, fresh, problem
}

// isNews reports whether a record would override what is known.
func (r Roster) isNews(record protocol.MemberRecord) bool {
	old, known := r.records[record.Site]
	return !known || prevails(record, old)
}

func (r Roster) verify(record protocol.MemberRecord) error {
	if err := record.Validate(); err != nil {
		return err
	}
	if record.Domain != r.domain || !ed25519.Verify(r.key, record.SignedBytes(), record.Signature) {
		return fmt.Errorf("record of %s: %w", record.Site, errForged)
	}
	return nil
}

// trim keeps the newest maxRecords. The order is the one in which a site's own
// records prevail, so that trimming early and trimming late give the same result.
func (r Roster) trim() {
	if len(r.records) <= maxRecords {
		return
	}
	list := r.Records()
	slices.SortStableFunc(list, func(a, b protocol.MemberRecord) int { return compare(b, a) })
	for _, record := range list[maxRecords:] {
		delete(r.records, record.Site)
	}
}

func (r Roster) sum() protocol.Digest {
	hash := sha256.New()
	hash.Write([]byte("mrs/1/roster"))
	hash.Write(r.key)
	for _, record := range r.Records() {
		signed := record.SignedBytes()
		hash.Write(binary.BigEndian.AppendUint32(nil, uint32(len(signed))))
		hash.Write(signed)
	}
	return protocol.Digest(hash.Sum(nil))
}

// prevails reports whether a record overrides another one of the same site.
func prevails(a, b protocol.MemberRecord) bool { return compare(a, b) > 0 }

// compare orders records: by serial, a ban above an admission of the same
// moment, and then by content, which an honest issuer never needs.
func compare(a, b protocol.MemberRecord) int {
	c := cmp.Or(
		cmp.Compare(a.SerialMS, b.SerialMS), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Site, b.Site),
	)
	if c != 0 {
		return c
	}
	return bytes.Compare(a.SignedBytes(), b.SignedBytes())
}
