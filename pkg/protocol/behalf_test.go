package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

func drawMemberID(t *rapid.T) uint64 {
	return rapid.Uint64Range(1, math.MaxUint64-2).Draw(t, "member")
}

func drawOnBehalf(t *rapid.T) Message {
	generators := messages()
	names := []string{
		"announce", "reannounce", "require", "hold", "award", "clear", "lease", "held", "fence",
		"cancel", "exitack", "need", "bid", "refuse", "vacancy", "accepted", "declined", "renew",
		"maystart", "progress", "exited", "checkpointed",
	}
	m := OnBehalf{
		Behalf:  Behalf{Owner: drawSite(t)},
		Message: generators[rapid.SampledFrom(names).Draw(t, "said")](t),
	}
	if !ForBroker(m.Message) {
		m.Term = rapid.Uint64Min(1).Draw(t, "term")
		m.Certificate = drawBytes(t, rapid.IntRange(1, 300).Draw(t, "bytes"))
	}
	return m
}

func drawGroup(t *rapid.T) Message {
	m := Group{
		Owner: drawSite(t), From: drawMemberID(t), Message: rapid.Uint64().Draw(t, "message"),
		Parts: rapid.Uint32Range(1, maxGroupParts).Draw(t, "parts"),
	}
	m.To = m.From%(math.MaxUint64-2) + 1
	m.Part = m.Parts - 1
	m.Data = drawBytes(t, rapid.IntRange(1, 200).Draw(t, "bytes"))
	if m.Parts > 1 && rapid.Bool().Draw(t, "is full") {
		m.Part, m.Data = m.Parts-2, bytes.Repeat([]byte{m.Data[0]}, GroupPartBytes)
	}
	return m
}

func drawKeep(t *rapid.T) Message {
	m := Keep{
		Owner: drawSite(t), Job: drawJob(t), Release: rapid.Bool().Draw(t, "release"),
		Number: rapid.Uint64Min(1).Draw(t, "number"),
	}
	m.CIDs, m.Dropped = drawList(t, 3, drawCID), drawList(t, 3, drawCID)
	m.Awarded = drawList(t, 3, drawSite)
	if !m.Release {
		m.CIDs = append(m.CIDs, drawCID(t))
	}
	return m
}

// An agent that knows no standbys reads what is said on an owner's behalf as the sender's own
// word: the body stands in its old place, and what stands beside it is an unknown field.
func TestAnOlderAgentReadsWhatIsSaidAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawOnBehalf(t).(OnBehalf)
		raw, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		older := withoutField(t, raw, 100)
		got, err := Decode(older)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := Encode(m.Message)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Encode(got); err != nil || !bytes.Equal(again, alone) {
			t.Fatalf("read as %x, %v, alone it is %x", again, err, alone)
		}
	})
}

// withoutField is a message as one reads it who ignores a field.
func withoutField(t *rapid.T, raw []byte, number protowire.Number) []byte {
	var left []byte
	for len(raw) > 0 {
		got, _, n := protowire.ConsumeField(raw)
		if n < 0 {
			t.Fatalf("no field: %v", protowire.ParseError(n))
		}
		if got != number {
			left = append(left, raw[:n]...)
		}
		raw = raw[n:]
	}
	return left
}

// Only what submitters and sites say to each other is said on somebody's behalf, by each only
// what is its own to say, and never twice over.
func TestWhatCanBeSaidOnBehalf(t *testing.T) {
	golden := goldenMessages()
	certificate := goldenCertificate().Encode()
	acts := Behalf{Owner: "12D3KooWowner", Term: 4, Certificate: certificate}
	asks := Behalf{Owner: "12D3KooWowner"}
	site := strings.Fields(
		"need bid refuse vacancy accepted declined renew maystart progress exited checkpointed",
	)
	submitter := strings.Fields(
		"announce reannounce require hold award clear lease held fence cancel exitack",
	)
	nobody := strings.Fields("hello roster join joinanswer check checked group standbyask " +
		"standbyaccept standbyrefuse standbynews rejoin keep kept behalflease behalfrenew")
	want := func(by Behalf, names []string, want error) {
		t.Helper()
		for _, name := range names {
			m := OnBehalf{Behalf: by, Message: golden[name]}
			if golden[name] == nil {
				t.Fatalf("there is no %s", name)
			}
			if err := m.Validate(); !errors.Is(err, want) {
				t.Errorf("%s by %+v: %v", name, by, err)
			}
			if raw, err := Encode(m); (err == nil) != (want == nil) || want != nil && raw != nil {
				t.Errorf("%s by %+v is encoded: %v", name, by, err)
			}
		}
	}
	want(acts, submitter, nil)
	want(asks, site, nil)
	want(asks, submitter, grid.ErrInvalid)
	want(acts, site, grid.ErrInvalid)
	want(acts, nobody, grid.ErrInvalid)
	want(asks, nobody, grid.ErrInvalid)
	for name, b := range map[string]Behalf{
		"no owner": {Term: 4, Certificate: certificate},
		"no term":  {Owner: acts.Owner, Certificate: certificate},
		"no proof": {Owner: acts.Owner, Term: 4},
		"too long": {
			Owner: acts.Owner, Term: 4, Certificate: make([]byte, maxCertificateBytes+1),
		},
		"a bad owner":   {Owner: "a/b", Term: 4, Certificate: certificate},
		"a site's term": asks, // of a submitter's message
	} {
		if err := (OnBehalf{b, golden["cancel"]}).Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	last := Behalf{Owner: acts.Owner, Term: 1, Certificate: make([]byte, maxCertificateBytes)}
	if err := (OnBehalf{last, golden["cancel"]}).Validate(); err != nil {
		t.Error(err)
	}
	bad := OnBehalf{acts, Cancel{Job: "x"}}
	for _, m := range []OnBehalf{bad, {}, {Behalf: acts}} {
		if err := m.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if err := (OnBehalf{Behalf{Owner: "o", Term: 1}, golden["renew"]}).Validate(); err == nil {
		t.Error("a site has a term")
	}
	proven := Behalf{Owner: "o", Certificate: certificate}
	if err := (OnBehalf{proven, golden["renew"]}).Validate(); err == nil {
		t.Error("a site has a certificate")
	}
}

// A stranger's bytes may have what stands beside a body at any body, or at none.
func TestBehalfBesideAnyBody(t *testing.T) {
	beside := func(w *wirepb.Wire) []byte {
		w.Version = Version
		w.Behalf = &wirepb.Behalf{Owner: "o", Term: 1, Certificate: []byte("c")}
		raw, err := proto.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	check := &wirepb.Wire{Body: &wirepb.Wire_Check{Check: &wirepb.Check{}}}
	for raw, want := range map[string]error{
		string(beside(&wirepb.Wire{})): ErrMalformed, string(beside(check)): grid.ErrInvalid,
	} {
		if m, err := Decode([]byte(raw)); m != nil || !errors.Is(err, want) {
			t.Errorf("%x: %v, %v", raw, m, err)
		}
	}
}

// The limits on what group members say, as in TestEachLimitIsExact.
func TestEachLimitOfStandbysIsExact(t *testing.T) {
	group := func(c func(*Group)) Message { return changed(t, "group", c) }
	sized := func(part, parts uint32, size int) Message {
		return group(func(m *Group) { m.Part, m.Parts, m.Data = part, parts, make([]byte, size) })
	}
	members := func(from, to uint64) Message {
		return group(func(m *Group) { m.From, m.To = from, to })
	}
	accept := func(c func(*StandbyAnswer)) Message { return changed(t, "standbyaccept", c) }
	refuse := func(n int) Message { return StandbyAnswer{Reason: strings.Repeat("r", n)} }
	news := func(c func(*StandbyNews)) Message { return changed(t, "standbynews", c) }
	rejoin := func(n int) Message { return Rejoin{Certificate: make([]byte, n)} }
	keep := func(c func(*Keep)) Message { return changed(t, "keep", c) }
	release := func(c func(*Keep)) Message { return changed(t, "keeprelease", c) }
	drop := func(c func(*Keep)) Message { return changed(t, "keepdropped", c) }
	kept := func(c func(*Kept)) Message { return changed(t, "kept", c) }
	manyCIDs := func(n int) func(*Keep) {
		return func(m *Keep) { m.CIDs = repeated(grid.CID("bafk"), n) }
	}
	manyDropped := func(n int) func(*Keep) {
		return func(m *Keep) { m.Dropped = repeated(grid.CID("bafk"), n) }
	}
	for name, c := range map[string]struct{ last, first Message }{
		"parts": {
			sized(maxGroupParts-1, maxGroupParts, 1), sized(maxGroupParts, maxGroupParts+1, 1),
		},
		"part":        {sized(1, 2, 1), sized(2, 2, 1)},
		"no parts":    {sized(0, 1, 1), sized(0, 0, 1)},
		"last part":   {sized(1, 2, GroupPartBytes), sized(1, 2, GroupPartBytes+1)},
		"empty part":  {sized(1, 2, 1), sized(1, 2, 0)},
		"first part":  {sized(0, 2, GroupPartBytes), sized(0, 2, GroupPartBytes-1)},
		"from nobody": {members(1, 8), members(0, 8)},
		"to nobody":   {members(8, 1), members(8, 0)},
		"to itself":   {members(7, 8), members(8, 8)},
		"last member": {members(math.MaxUint64-2, 8), members(math.MaxUint64-1, 8)},
		"to the last": {members(8, math.MaxUint64-2), members(8, math.MaxUint64-1)},
		"group owner": {members(7, 8), group(func(m *Group) { m.Owner = "" })},
		"ask epoch":   {StandbyAsk{Epoch: 1}, StandbyAsk{}},
		"group ask": {
			GroupAsk{"d", StandbyAsk{Epoch: 1}}, GroupAsk{StandbyAsk: StandbyAsk{Epoch: 1}},
		},
		"group ask epoch": {GroupAsk{"d", StandbyAsk{Epoch: 1}}, GroupAsk{Owner: "d"}},
		"group answer": {
			GroupAnswer{"d", StandbyAnswer{Reason: "r"}},
			GroupAnswer{StandbyAnswer: StandbyAnswer{Reason: "r"}},
		},
		"group answer text": {
			GroupAnswer{"d", StandbyAnswer{Reason: "r"}}, GroupAnswer{Owner: "d"},
		},
		"ask facts": {StandbyAsk{Epoch: 1}, StandbyAsk{Epoch: 1, Facts: -1}},
		"accept": {
			accept(func(*StandbyAnswer) {}), accept(func(m *StandbyAnswer) { m.Member = 0 }),
		},
		"accept, why": {
			accept(func(*StandbyAnswer) {}), accept(func(m *StandbyAnswer) { m.Reason = "r" }),
		},
		"refuse":      {refuse(maxStandbyText), refuse(maxStandbyText + 1)},
		"refuse, why": {refuse(1), refuse(0)},
		"refuse as":   {refuse(1), StandbyAnswer{Reason: "r", Member: 8}},
		"news": {
			news(func(m *StandbyNews) { m.Term = 1 }), news(func(m *StandbyNews) { m.Term = 0 }),
		},
		"news of none": {StandbyNews{Certificate: []byte{1}}, StandbyNews{}},
		"news of who": {
			news(func(*StandbyNews) {}), news(func(m *StandbyNews) { m.Acting = "a/b" }),
		},
		"news' proof": {
			news(func(*StandbyNews) {}), news(func(m *StandbyNews) { m.Certificate = nil }),
		},
		"rejoin":       {rejoin(maxCertificateBytes), rejoin(maxCertificateBytes + 1)},
		"rejoin as":    {rejoin(1), rejoin(0)},
		"keep":         {keep(manyCIDs(MaxKeepCIDs)), keep(manyCIDs(MaxKeepCIDs + 1))},
		"keep nothing": {keep(manyCIDs(1)), keep(manyCIDs(0))},
		"keep what":    {keep(manyCIDs(1)), keep(func(m *Keep) { m.CIDs[1] = "-" })},
		"keep owner":   {keep(func(*Keep) {}), keep(func(m *Keep) { m.Owner = "" })},
		"keep job":     {keep(func(*Keep) {}), keep(func(m *Keep) { m.Job = "x" })},
		"keep number": {
			keep(func(m *Keep) { m.Number = 1 }), keep(func(m *Keep) { m.Number = 0 }),
		},
		"drop":         {drop(manyDropped(MaxKeepCIDs)), drop(manyDropped(MaxKeepCIDs + 1))},
		"drop nothing": {drop(manyDropped(1)), drop(func(m *Keep) { m.Awarded, m.Dropped = nil, nil })},
		"drop what":    {drop(manyDropped(1)), drop(func(m *Keep) { m.Dropped[1] = "-" })},
		"release":      {release(manyCIDs(MaxKeepCIDs)), release(manyCIDs(MaxKeepCIDs + 1))},
		"kept number": {
			kept(func(m *Kept) { m.Number = 1 }), kept(func(m *Kept) { m.Number = 0 }),
		},
		"kept owner": {kept(func(*Kept) {}), kept(func(m *Kept) { m.Owner = "" })},
		"kept why": {
			kept(func(m *Kept) { m.Problem = strings.Repeat("p", maxStandbyText) }),
			kept(func(m *Kept) { m.Problem = strings.Repeat("p", maxStandbyText+1) }),
		},
	} {
		if err := c.last.Validate(); err != nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: the first that is not: %v", name, err)
		}
	}
}

// A full part fits into a message, and the parts of one message hold 96 MiB.
func TestAMessageOfRaftFits(t *testing.T) {
	m := Group{
		Owner: grid.SiteID(strings.Repeat("o", 128)), From: math.MaxUint64 - 3,
		To:      math.MaxUint64 - 2,
		Message: math.MaxUint64, Part: maxGroupParts - 1, Parts: maxGroupParts,
		Data: make([]byte, GroupPartBytes),
	}
	if raw, err := Encode(m); err != nil {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if got, want := int64(maxGroupParts)*GroupPartBytes, int64(96<<20); got != want {
		t.Errorf("%d bytes in all, want %d", got, want)
	}
	most := Keep{
		Owner: m.Owner, Job: "mfrggzdfmztwq2lk", Number: math.MaxUint64,
		CIDs: repeated(grid.CID(strings.Repeat("b", 128)), MaxKeepCIDs),
	}
	if _, err := Encode(most); err != nil {
		t.Error(fmt.Errorf("the longest question to keep data: %w", err))
	}
}

// What a program's error says may be in any encoding; it is said nevertheless.
func TestAProblemInAnyEncodingIsSaid(t *testing.T) {
	for _, m := range []Message{
		Kept{Owner: "o", Number: 1, Problem: "caf\xe9"}, StandbyAnswer{Reason: "caf\xe9"},
	} {
		if _, err := Encode(m); err != nil {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
