package member

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// testKey is the same key for the same letter.
func testKey(letter byte) Key {
	return Key{private: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{letter}, ed25519.SeedSize))}
}

func signed(k Key, site grid.SiteID, kind protocol.MemberKind, serial int64) protocol.MemberRecord {
	return k.sign(protocol.MemberRecord{Domain: "lab", Site: site, Kind: kind, SerialMS: serial})
}

func emptyRoster(t interface{ Fatal(...any) }, k Key) Roster {
	r, err := newRoster("lab", k.Public())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// twin says what holds of all records ever seen, the slow way.
func twin(seen []protocol.MemberRecord) []protocol.MemberRecord {
	var holds []protocol.MemberRecord
	for _, r := range seen {
		beaten := slices.ContainsFunc(seen, func(other protocol.MemberRecord) bool {
			return other.Site == r.Site && (other.SerialMS > r.SerialMS ||
				other.SerialMS == r.SerialMS && other.Kind == protocol.MemberBan &&
					r.Kind == protocol.MemberAdmit)
		})
		if !beaten && !slices.ContainsFunc(holds, func(h protocol.MemberRecord) bool {
			return h.Site == r.Site
		}) {
			holds = append(holds, r)
		}
	}
	slices.SortFunc(holds, func(a, b protocol.MemberRecord) int {
		return bytes.Compare([]byte(a.Site), []byte(b.Site))
	})
	return holds
}

// Rosters that were given the same records, in any order, any grouping and more
// than once, by themselves or by each other, are equal, and say what the twin says.
func TestRostersConverge(t *testing.T) {
	key := testKey('k')
	rapid.Check(t, func(t *rapid.T) {
		var seen []protocol.MemberRecord
		for range rapid.IntRange(0, 12).Draw(t, "records") {
			site := grid.SiteID(fmt.Sprintf("s%d", rapid.IntRange(0, 3).Draw(t, "site")))
			kind := protocol.MemberKind(rapid.IntRange(1, 2).Draw(t, "kind"))
			seen = append(seen, signed(key, site, kind, rapid.Int64Range(1, 4).Draw(t, "serial")))
		}
		rosters := []Roster{emptyRoster(t, key), emptyRoster(t, key)}
		for i := range rosters {
			for _, record := range rapid.Permutation(seen).Draw(t, "order") {
				if rapid.Bool().Draw(t, "elsewhere first") {
					other, _, err := rosters[1-i].Merge([]protocol.MemberRecord{record})
					if err != nil {
						t.Fatal(err)
					}
					rosters[1-i] = other
				}
				merged, fresh, err := rosters[i].Merge([]protocol.MemberRecord{record, record})
				if err != nil || (len(fresh) > 0) != (merged.Digest() != rosters[i].Digest()) {
					t.Fatalf(
						"%v; %d fresh records, digest changed: %t", err, len(fresh),
						merged.Digest() != rosters[i].Digest(),
					)
				}
				rosters[i] = merged
			}
		}
		for i, r := range rosters {
			both, fresh, err := r.Merge(rosters[1-i].Records())
			if err != nil || len(fresh) != 0 || both.Digest() != r.Digest() {
				t.Fatalf("the other roster says something new: %v %v", fresh, err)
			}
			if diff := cmp.Diff(twin(seen), r.Records()); diff != "" && len(seen) > 0 {
				t.Fatalf("roster %d (-twin +got):\n%s", i, diff)
			}
		}
		if rosters[0].Digest() != rosters[1].Digest() {
			t.Fatal("equal rosters have different digests")
		}
	})
}

func TestForgeriesAreNotBelieved(t *testing.T) {
	key, thief := testKey('k'), testKey('t')
	good := signed(key, "s1", protocol.MemberAdmit, 5)
	changed := good
	changed.Kind = protocol.MemberBan
	moved := key.sign(protocol.MemberRecord{
		Domain: "other", Site: "s1", Kind: protocol.MemberBan, SerialMS: 9,
	})
	for name, record := range map[string]protocol.MemberRecord{
		"other key": signed(thief, "s1", protocol.MemberBan, 9), "changed": changed,
		"other domain": moved,
	} {
		r, fresh, err := emptyRoster(t, key).Merge([]protocol.MemberRecord{good, record})
		if name == "changed" {
			record.SerialMS++ // one that says nothing new is not even looked at
			r, fresh, err = emptyRoster(t, key).Merge([]protocol.MemberRecord{good, record})
		}
		if !errors.Is(err, errForged) || len(fresh) != 1 || r.Len() != 1 {
			t.Errorf("%s: %v with %d records; want ErrForged and the good one", name, err, r.Len())
		}
	}
	if r, fresh, err := (Roster{}).Merge([]protocol.MemberRecord{good}); r.Len() != 0 ||
		len(fresh) != 0 || err != nil {
		t.Error("a roster without a key believes something")
	}
}

// However many records come, and in whatever order, the newest stay.
func TestRostersAreBounded(t *testing.T) {
	key := testKey('k')
	var all []protocol.MemberRecord
	for i := range maxRecords + 20 {
		all = append(
			all, signed(key, grid.SiteID(fmt.Sprintf("s%05d", i)), protocol.MemberAdmit, int64(i+1)),
		)
	}
	forth, _, err := emptyRoster(t, key).Merge(all)
	if err != nil {
		t.Fatal(err)
	}
	back := emptyRoster(t, key)
	slices.Reverse(all)
	for chunk := range slices.Chunk(all, 1000) {
		if back, _, err = back.Merge(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if forth.Len() != maxRecords || forth.Digest() != back.Digest() {
		t.Errorf("%d records, want %d, and the same both ways", forth.Len(), maxRecords)
	}
	if _, old := forth.Get("s00000"); old {
		t.Error("the oldest record stayed")
	}
}

func FuzzRosterFile(f *testing.F) {
	key := testKey('k')
	f.Add([]byte(`{"version":1,"records":[]}`))
	f.Add([]byte(`{"version":1,"records":[` +
		`{"domain":"lab","site":"s","kind":"ban","serial_ms":1,"signature":""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		records, err := decodeRoster(text)
		if err != nil {
			return
		}
		r, _, _ := emptyRoster(t, key).Merge(records)
		if r.Len() > len(records) {
			t.Fatal("more records than there are")
		}
		for _, record := range r.Records() {
			if r.verify(record) != nil {
				t.Fatal("a record that was not signed is believed")
			}
		}
	})
}

func FuzzLocalFiles(f *testing.F) {
	f.Add([]byte(`{"version":1,"sites":[{"site":"s","banned":true}],"invites":[]}`))
	f.Add([]byte(`{"version":1,"invites":[{"hash":"` + hashOf(nil) +
		`","name":"n","revoked":2,"by":["a"]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if local, err := decodeLocal(text); err == nil && len(local) > maxRecords {
			t.Fatal("too many decisions")
		}
		invites, err := decodeInvites(text)
		if err == nil && len(invites) > maxInvitKept {
			t.Fatal("too many invitations")
		}
		for _, i := range invites {
			p := i.public(time.UnixMilli(1))
			if p.Left < 0 || p.Uses > 2*MaxUses || p.Name != i.Name {
				t.Fatalf("read as %+v", p)
			}
		}
	})
}
