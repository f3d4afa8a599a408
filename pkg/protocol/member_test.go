package protocol

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// goldenRecord is the record of a golden roster.
func goldenRecord(t *testing.T) MemberRecord {
	t.Helper()
	roster, is := goldenMessages()["roster"].(Roster)
	if !is || len(roster.Records) == 0 {
		t.Fatal("there is no golden roster with a record")
	}
	return roster.Records[0]
}

// Each limit of what is said about members has the last value that is taken and the first that
// is not, as in TestEachLimitIsExact.
func TestEachLimitOfMembersIsExact(t *testing.T) {
	record := func(change func(*MemberRecord)) Message {
		r := goldenRecord(t)
		change(&r)
		return Roster{Records: []MemberRecord{r}}
	}
	named := func(name string) Message { return record(func(r *MemberRecord) { r.Name = name }) }
	noted := func(note string) Message { return record(func(r *MemberRecord) { r.Note = note }) }
	kind := func(k MemberKind) Message { return record(func(r *MemberRecord) { r.Kind = k }) }
	serial := func(ms int64) Message { return record(func(r *MemberRecord) { r.SerialMS = ms }) }
	signature := func(n int) Message {
		return record(func(r *MemberRecord) { r.Signature = make([]byte, n) })
	}
	roster := func(n int) Message { return Roster{Records: repeated(goldenRecord(t), n)} }
	refused := func(change func(*JoinAnswer)) Message {
		m := JoinAnswer{Refusal: JoinUsed}
		change(&m)
		return m
	}
	text := func(n int) string { return strings.Repeat("t", n) }
	why := func(n int) Message { return refused(func(m *JoinAnswer) { m.Text = text(n) }) }
	listed := func(n int) Message {
		return refused(func(m *JoinAnswer) { m.Listed = repeated(grid.SiteID("s"), n) })
	}
	addrs := func(n int, addr string) Message {
		return refused(func(m *JoinAnswer) { m.Addrs = repeated(addr, n) })
	}
	admit := func(refusal JoinRefusal, admits bool) Message {
		m := JoinAnswer{Refusal: refusal}
		if r := goldenRecord(t); admits {
			m.Admit = &r
		}
		return m
	}
	checked := func(distance float64, took time.Duration, n int) Message {
		return Checked{Distance: distance, Took: took, Text: text(n)}
	}
	const lastMS = math.MaxInt64 / int64(time.Millisecond)
	long, latin := strings.Repeat("a", maxAddrBytes), "caf\xe9"
	for name, c := range map[string]struct{ last, first Message }{
		"name":           {named(text(maxHelloName)), named(text(maxHelloName + 1))},
		"name's text":    {named("café"), named(latin)},
		"note":           {noted(text(MaxNoteBytes)), noted(text(MaxNoteBytes + 1))},
		"note's text":    {noted("café"), noted(latin)},
		"kinds":          {kind(MemberBan), kind(MemberBan + 1)},
		"kind":           {kind(MemberAdmit), kind(MemberAdmit - 1)},
		"first serial":   {serial(1), serial(0)},
		"last serial":    {serial(lastMS), serial(lastMS + 1)},
		"signature":      {signature(SignatureBytes), signature(SignatureBytes + 1)},
		"no signature":   {signature(SignatureBytes), signature(SignatureBytes - 1)},
		"records":        {roster(MaxRosterRecords), roster(MaxRosterRecords + 1)},
		"refusals":       {admit(JoinRefusals, false), admit(JoinRefusals+1, false)},
		"admission":      {admit(JoinAdmitted, true), admit(JoinAdmitted, false)},
		"one of both":    {admit(JoinUsed, false), admit(JoinUsed, true)},
		"text":           {why(maxJoinText), why(maxJoinText + 1)},
		"sites":          {listed(MaxListed), listed(MaxListed + 1)},
		"addresses":      {addrs(MaxJoinAddrs, "a"), addrs(MaxJoinAddrs+1, "a")},
		"address":        {addrs(1, long), addrs(1, long+"a")},
		"empty address":  {addrs(1, "a"), addrs(1, "")},
		"distance":       {checked(0, 0, 0), checked(-math.SmallestNonzeroFloat64, 0, 0)},
		"no distance":    {checked(math.MaxFloat64, 0, 0), checked(math.Inf(1), 0, 0)},
		"time":           {checked(1, 0, 0), checked(1, -1, 0)},
		"text of checks": {checked(1, 1, maxJoinText), checked(1, 1, maxJoinText+1)},
	} {
		if err := c.last.Validate(); err != nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: the first that is not: %v", name, err)
		}
	}
	wrong := goldenRecord(t)
	wrong.Site = ""
	for name, m := range map[string]Message{
		"a listed site":     refused(func(m *JoinAnswer) { m.Listed = []grid.SiteID{"s", ""} }),
		"the admitted site": JoinAnswer{Admit: &wrong},
		"a record's site":   Roster{Records: []MemberRecord{goldenRecord(t), wrong}},
	} {
		if err := m.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is out of its range has no signed bytes: nobody can be led to sign it.
func TestNothingWrongIsSigned(t *testing.T) {
	for name, change := range map[string]func(*MemberRecord){
		"kind": func(r *MemberRecord) { r.Kind = 0 }, "serial": func(r *MemberRecord) { r.SerialMS = 0 },
		"site": func(r *MemberRecord) { r.Site = "" }, "domain": func(r *MemberRecord) { r.Domain = "A" },
		"name": func(r *MemberRecord) { r.Name = "\xff" },
	} {
		r := goldenRecord(t)
		if r.SignedBytes() == nil {
			t.Fatal("nothing to sign")
		}
		if change(&r); r.SignedBytes() != nil {
			t.Errorf("%s: %x", name, r.SignedBytes())
		}
	}
}

// A record has one form: what was signed, in the encoding that SignedBytes gives, for this
// purpose. A roster's digest is whole or missing.
func TestARosterHasOneForm(t *testing.T) {
	record := goldenRecord(t)
	inner := func(change func(*wirepb.SignedMember)) []byte {
		var signed wirepb.SignedMember
		if err := proto.Unmarshal(record.SignedBytes(), &signed); err != nil {
			t.Fatal(err)
		}
		change(&signed)
		raw, err := marshalOptions().Marshal(&signed)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	good, useless := record.SignedBytes(), inner(func(m *wirepb.SignedMember) { m.Kind = 3 })
	other := inner(func(m *wirepb.SignedMember) { m.Context = "mrs/1/x" })
	for name, c := range map[string]struct {
		signed []byte
		digest int
		want   error
	}{
		"good":               {good, len(Digest{}), nil},
		"no digest":          {good, 0, nil},
		"short digest":       {good, len(Digest{}) - 1, ErrMalformed},
		"long digest":        {good, len(Digest{}) + 1, ErrMalformed},
		"noise":              {[]byte("\xff"), 0, ErrMalformed},
		"nothing":            {nil, 0, ErrMalformed},
		"a field twice":      {bytes.Repeat(good, 2), 0, ErrMalformed},
		"an unknown field":   {append(bytes.Clone(good), 0x98, 0x06, 0x01), 0, ErrMalformed},
		"for another use":    {other, 0, ErrMalformed},
		"a kind of no sense": {useless, 0, ErrMalformed},
		"a kind that wraps":  {inner(func(m *wirepb.SignedMember) { m.Kind = 257 }), 0, ErrMalformed},
	} {
		raw, err := marshalOptions().Marshal(&wirepb.Wire{
			Version: Version, Body: &wirepb.Wire_Roster{Roster: &wirepb.Roster{
				Records: []*wirepb.MemberRecord{{Signed: c.signed, Signature: record.Signature}},
				Digest:  bytes.Repeat([]byte{7}, c.digest),
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(raw)
		if !errors.Is(err, c.want) || (m == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
		if r, is := m.(Roster); is && (r.Digest != Digest{}) != (c.digest > 0) {
			t.Errorf("%s: digest %x", name, r.Digest)
		}
	}
}
