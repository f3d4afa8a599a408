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
const maxRecords = protocol.MaxRosterSites

// errForged says that a record was not signed by the domain's key, or is of
// another domain.
var errForged = errors.New("not signed by this domain's key")

// Roster holds the records that a domain's key has signed, at most one for each site
// and at most maxRecords. It is a value that is never changed. The zero value trusts
// no key and stays empty.
type Roster struct {
	domain  grid.DomainID
	chain   []protocol.Succession // of the domain's key, all; the last one's successor is key
	name    grid.DomainKey        // the key as text
	key     ed25519.PublicKey
	records map[grid.SiteID]protocol.MemberRecord
	// former has what a former key has signed, of sites of which this one does not have yet what
	// the present key has taken over. They hold here and are told nobody.
	former map[grid.SiteID]protocol.MemberRecord
	digest protocol.Digest
}

// newRoster makes an empty roster of a domain that trusts the key.
func newRoster(domain grid.DomainID, key grid.DomainKey) (Roster, error) {
	public, err := key.Bytes()
	if err != nil {
		return Roster{}, fmt.Errorf("make roster: %w", err)
	}
	r := Roster{
		domain: domain, name: key, key: public, records: map[grid.SiteID]protocol.MemberRecord{},
		former: map[grid.SiteID]protocol.MemberRecord{},
	}
	r.digest = r.sum()
	return r, nil
}

// trusts reports whether the roster trusts a key at all.
func (r Roster) trusts() bool { return r.key != nil }

// Key is the key that is trusted, empty if there is none.
func (r Roster) Key() grid.DomainKey { return r.name }

// Successions lists those of the domain's key, all from the first one.
func (r Roster) Successions() []protocol.Succession { return slices.Clone(r.chain) }

// Len is the number of sites of which there is a record.
func (r Roster) Len() int { return len(r.records) + len(r.former) }

// Get returns the record of a site, if there is one.
func (r Roster) Get(site grid.SiteID) (protocol.MemberRecord, bool) {
	record, ok := r.records[site]
	if !ok {
		record, ok = r.former[site]
	}
	return record, ok
}

// Records lists those that the key has signed, ascending by site.
func (r Roster) Records() []protocol.MemberRecord { return bySite(r.records) }

// all lists the records of former keys as well that hold until the key's own are here.
func (r Roster) all() []protocol.MemberRecord {
	all := maps.Clone(r.former)
	maps.Copy(all, r.records)
	return bySite(all)
}

func bySite(records map[grid.SiteID]protocol.MemberRecord) []protocol.MemberRecord {
	list := make([]protocol.MemberRecord, 0, len(records))
	for _, site := range slices.Sorted(maps.Keys(records)) {
		list = append(list, records[site])
	}
	return list
}

// Digest is the same for equal rosters; zero when no key is trusted.
func (r Roster) Digest() protocol.Digest { return r.digest }

// Merge takes over the records that say something newer, and returns these. The
// error, errForged, ErrFormer or grid.ErrInvalid, is about the first record that is not valid;
// the ones after it are not looked at. Records that say nothing new cost no
// verification.
func (r Roster) Merge(records []protocol.MemberRecord) (Roster, []protocol.MemberRecord, error) {
	if !r.trusts() || !slices.ContainsFunc(records, r.isNews) {
		return r, nil, nil
	}
	merged := r
	merged.records, merged.former = maps.Clone(r.records), maps.Clone(r.former)
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
	merged.settle()
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
	if record.Domain == r.domain && ed25519.Verify(r.key, record.SignedBytes(), record.Signature) {
		return nil
	}
	if record.Domain == r.domain && r.formerSigner(record) >= 0 {
		return fmt.Errorf("record of %s: %w", record.Site, ErrFormer)
	}
	return fmt.Errorf("record of %s: %w", record.Site, errForged)
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
