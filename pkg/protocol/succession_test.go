package protocol

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// keyPair is the same for the same number.
func keyPair(n int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(n) + 1}, ed25519.SeedSize))
}

func numberedKey(n int) grid.DomainKey {
	return grid.NewDomainKey(keyPair(n)[ed25519.SeedSize:])
}

// successions are so many that follow one another, signed by the keys that they name.
func successions(n int) []Succession {
	var all []Succession
	for i := range n {
		s := Succession{
			Domain: "lab", Number: uint32(i) + 1,
			Former: numberedKey(i), Successor: numberedKey(i + 1),
			MadeMS: 1_900_000_000_000 + int64(i), Records: 3, HighestMS: 1_899_000_000_000,
		}
		text := Succession.SignedBytes(s)
		s.ByFormer = ed25519.Sign(keyPair(i), text)
		s.BySuccessor = ed25519.Sign(keyPair(i+1), text)
		all = append(all, s)
	}
	return all
}

func goldenSuccessions() []Succession { return successions(2) }

// Each limit of a succession has the last value that is taken and the first that is not.
func TestEachLimitOfSuccessionsIsExact(t *testing.T) {
	one := func(change func(*Succession)) Message {
		all := successions(1)
		change(&all[0])
		return Roster{Successions: all}
	}
	made := func(ms int64) Message { return one(func(s *Succession) { s.MadeMS = ms }) }
	records := func(n uint32) Message { return one(func(s *Succession) { s.Records = n }) }
	highest := func(ms int64) Message { return one(func(s *Succession) { s.HighestMS = ms }) }
	former := func(n int) Message {
		return one(func(s *Succession) { s.ByFormer = make([]byte, n) })
	}
	successor := func(n int) Message {
		return one(func(s *Succession) { s.BySuccessor = make([]byte, n) })
	}
	after := func(n uint32) Message {
		r := goldenRecord(t)
		r.Successions = n
		return Roster{Records: []MemberRecord{r}}
	}
	many := func(n int) Message { return Roster{Successions: successions(n)} }
	const lastMS = math.MaxInt64 / int64(time.Millisecond)
	for name, c := range map[string]struct{ last, first Message }{
		"first time":       {made(1), made(0)},
		"last time":        {made(lastMS), made(lastMS + 1)},
		"records":          {records(MaxRosterSites), records(MaxRosterSites + 1)},
		"least serial":     {highest(0), highest(-1)},
		"highest serial":   {highest(lastMS), highest(lastMS + 1)},
		"by the former":    {former(SignatureBytes), former(SignatureBytes - 1)},
		"by the successor": {successor(SignatureBytes), successor(SignatureBytes + 1)},
		"how many":         {many(MaxSuccessions), many(MaxSuccessions + 1)},
		"a record after":   {after(MaxSuccessions), after(MaxSuccessions + 1)},
	} {
		if err := c.last.Validate(); err != nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: the first that is not: %v", name, err)
		}
	}
}

// Successions that do not follow one another are none.
func TestSuccessionsFollowOneAnother(t *testing.T) {
	for name, change := range map[string]func(all []Succession){
		"a gap":              func(all []Succession) { all[1].Number = 3 },
		"no first one":       func(all []Succession) { all[0].Number = 2 },
		"another domain":     func(all []Succession) { all[1].Domain = "campus" },
		"of another key":     func(all []Succession) { all[1].Former = numberedKey(7) },
		"to itself":          func(all []Succession) { all[1].Successor = all[1].Former },
		"to a former key":    func(all []Succession) { all[1].Successor = all[0].Former },
		"no domain":          func(all []Succession) { all[0].Domain = "" },
		"no key":             func(all []Succession) { all[1].Successor = "ed25519:x" },
		"no number":          func(all []Succession) { all[0].Number = 0 },
		"too large a number": func(all []Succession) { all[0].Number = MaxSuccessions + 1 },
	} {
		all := successions(2)
		if err := ValidSuccessions(all); err != nil {
			t.Fatal(err)
		}
		change(all)
		if err := ValidSuccessions(all); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A succession is signed by both keys, over each of its fields.
func TestBothKeysSignASuccession(t *testing.T) {
	if !successions(1)[0].IsSigned() {
		t.Fatal("what both have signed is not")
	}
	for name, change := range map[string]func(*Succession){
		"domain":       func(s *Succession) { s.Domain = "campus" },
		"number":       func(s *Succession) { s.Number++ },
		"former":       func(s *Succession) { s.Former = numberedKey(7) },
		"successor":    func(s *Succession) { s.Successor = numberedKey(7) },
		"time":         func(s *Succession) { s.MadeMS++ },
		"records":      func(s *Succession) { s.Records++ },
		"serial":       func(s *Succession) { s.HighestMS++ },
		"by former":    func(s *Succession) { s.ByFormer = s.BySuccessor },
		"by successor": func(s *Succession) { s.BySuccessor = s.ByFormer },
		"no sense":     func(s *Succession) { s.MadeMS = 0 },
	} {
		s := successions(1)[0]
		if change(&s); s.IsSigned() {
			t.Errorf("%s: it counts as signed", name)
		}
	}
}

// A succession has one form on the wire, signed for this purpose.
func TestASuccessionHasOneForm(t *testing.T) {
	s := successions(1)[0]
	inner := func(change func(*wirepb.SignedSuccession)) []byte {
		var signed wirepb.SignedSuccession
		if err := proto.Unmarshal(s.SignedBytes(), &signed); err != nil {
			t.Fatal(err)
		}
		change(&signed)
		raw, err := marshalOptions().Marshal(&signed)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	good := s.SignedBytes()
	for name, c := range map[string]struct {
		signed []byte
		want   error
	}{
		"good":             {good, nil},
		"noise":            {[]byte("\xff"), ErrMalformed},
		"nothing":          {nil, ErrMalformed},
		"a field twice":    {bytes.Repeat(good, 2), ErrMalformed},
		"an unknown field": {append(bytes.Clone(good), 0x98, 0x06, 0x01), ErrMalformed},
		"for another use": {
			inner(func(m *wirepb.SignedSuccession) { m.Context = "mrs/1/x" }), ErrMalformed,
		},
		"of no sense": {
			inner(func(m *wirepb.SignedSuccession) { m.MadeMs = 0 }), ErrMalformed,
		},
	} {
		raw, err := marshalOptions().Marshal(&wirepb.Wire{
			Version: Version, Body: &wirepb.Wire_Roster{Roster: &wirepb.Roster{
				Successions: []*wirepb.Succession{{
					Signed: c.signed, ByFormer: s.ByFormer, BySuccessor: s.BySuccessor,
				}},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := Decode(raw); !errors.Is(err, c.want) || (m == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

// Builds of before any succession read a record that was made after one, and find that its
// signature is not what they trust: what they know stays, and nothing is malformed.
func TestARecordAfterASuccessionIsReadByEarlierBuilds(t *testing.T) {
	record := goldenRecord(t)
	plain := record.SignedBytes()
	record.Successions = 1
	if w := wireMember(record); !bytes.Equal(w.GetSigned(), plain) {
		t.Errorf("its content is %x, that of before %x", w.GetSigned(), plain)
	}
	if bytes.Equal(record.SignedBytes(), plain) {
		t.Error("the number of successions is not signed")
	}
}
