package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// An envelope's limits, as in TestEachLimitIsExact.
func TestEachLimitOfEnvelopesIsExact(t *testing.T) {
	with := func(change func(*Envelope)) Envelope {
		e := testEnvelope()
		change(&e)
		return e
	}
	issued := func(ms int64) Envelope { return with(func(e *Envelope) { e.IssuedMS = ms }) }
	valid := func(d time.Duration) Envelope { return with(func(e *Envelope) { e.Validity = d }) }
	payload := func(n int) Envelope { return with(func(e *Envelope) { e.Payload = make([]byte, n) }) }
	version := func(v uint32) Envelope { return with(func(e *Envelope) { e.Version = v }) }
	number := func(n uint64) Envelope { return with(func(e *Envelope) { e.Sequence = n }) }
	const lastMS = math.MaxInt64 / int64(time.Millisecond)
	for name, c := range map[string]struct {
		last, first Envelope
		want        error
	}{
		"first issue":    {issued(0), issued(-1), grid.ErrInvalid},
		"last issue":     {issued(lastMS), issued(lastMS + 1), grid.ErrInvalid},
		"sequence":       {number(1), number(0), grid.ErrInvalid},
		"validity":       {valid(1), valid(0), grid.ErrInvalid},
		"long validity":  {valid(MaxValidity), valid(MaxValidity + 1), grid.ErrInvalid},
		"payload":        {payload(1), payload(0), grid.ErrInvalid},
		"longest":        {payload(maxAnnounceBytes), payload(maxAnnounceBytes + 1), ErrTooLarge},
		"last version":   {version(Version), version(Version + 1), ErrUnknownMessage},
		"lowest version": {version(MinVersion), version(MinVersion - 1), ErrUnknownMessage},
	} {
		if err := c.last.Validate(); err != nil || c.last.SignedBytes() == nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, c.want) || c.first.SignedBytes() != nil {
			t.Errorf("%s: the first that is not: %v", name, err)
		}
	}
}

// Around what is signed there is one encoding only: otherwise any peer could make new envelopes
// without end from one that it received, with a signature that holds.
func TestAnEnvelopeHasOneForm(t *testing.T) {
	e := testEnvelope()
	raw := EncodeEnvelope(e, make([]byte, SignatureBytes))
	again := EncodeEnvelope(e, bytes.Repeat([]byte{1}, SignatureBytes))
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"the one":           {raw, nil},
		"an unknown field":  {append(bytes.Clone(raw), 0x98, 0x06, 0x01), ErrMalformed},
		"before it":         {append([]byte{0x98, 0x06, 0x01}, raw...), ErrMalformed},
		"fields twice":      {append(bytes.Clone(again), raw...), ErrMalformed},
		"in another order":  {append(bytes.Clone(raw[len(raw)-2-SignatureBytes:]), raw...), ErrMalformed},
		"an empty repeat":   {append(bytes.Clone(raw), raw[0], 0), ErrMalformed},
		"half of the field": {raw[:len(raw)-1], ErrMalformed},
	} {
		if _, _, _, err := DecodeEnvelope(c.raw); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who is named in a message is looked at wherever it stands.
func TestEachNameInAMessageIsLookedAt(t *testing.T) {
	job := grid.JobID("mfrggzdfmztwq2lk")
	bad := manyAttempts(2)
	bad[1].Token = 0
	for name, m := range map[string]Message{
		"a vacancy's last job": Vacancy{Jobs: []grid.JobID{job, "x"}},
		"the last attempt":     Accepted{Attempts: bad},
		"an announcement's job": changed(t, "announce", func(m *Announce) {
			m.Job = "x"
		}),
		"its submitter": changed(t, "announce", func(m *Announce) { m.Submitter = "" }),
		"a clear's job": changed(t, "clear", func(m *Clear) { m.Job = "x" }),
		"its submitter, too": changed(t, "clear", func(m *Clear) {
			m.Submitter = ""
		}),
		"a domain":       changed(t, "hello", func(m *Hello) { m.Domain = "A" }),
		"an award's job": changed(t, "award", func(m *Award) { m.Job = "x" }),
		"an attempt that goes on": changed(t, "progress", func(m *Progress) {
			m.Attempt.Token = 0
		}),
		"a new quote":    changed(t, "declined", func(m *Declined) { m.Quote = &grid.Offer{} }),
		"one that ended": changed(t, "exited", func(m *Exited) { m.Attempt.Token = 0 }),
	} {
		if err := m.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Hello of any version is read, but one without a version is none; all others only of a
// version that is spoken here.
func TestVersions(t *testing.T) {
	hello := &wirepb.Wire_Hello{Hello: &wirepb.Hello{}}
	other := &wirepb.Wire_Check{Check: &wirepb.Check{}}
	for _, c := range []struct {
		wire *wirepb.Wire
		want error
	}{
		{&wirepb.Wire{Body: hello, Version: 1}, nil},
		{&wirepb.Wire{Body: hello, Version: 99}, nil},
		{&wirepb.Wire{Body: hello}, ErrMalformed},
		{&wirepb.Wire{Body: other, Version: MinVersion}, nil},
		{&wirepb.Wire{Body: other, Version: Version}, nil},
		{&wirepb.Wire{Body: other, Version: Version + 1}, ErrUnknownMessage},
		{&wirepb.Wire{Body: other}, ErrMalformed},
	} {
		if err := checkVersion(c.wire); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.wire, err)
		}
	}
}

// The limit on a message's size is about the message, whatever stands before it on the stream.
func TestAFullMessageFitsBehindOthers(t *testing.T) {
	long := Vacancy{Jobs: repeated(grid.JobID("mfrggzdfmztwq2lk"), MaxVacancies)}
	stream := make([]byte, MaxMessageBytes)
	after, err := AppendFrame(stream, long)
	if err != nil || len(after) <= len(stream) {
		t.Errorf("%d bytes, %v", len(after), err)
	}
	m := changed(t, "announce", func(m *Announce) {
		m.Req.Sources = nil
		m.Req.OS = strings.Repeat("o", 3)
	})
	if again, err := AppendFrame(after, m); err != nil || len(again) <= len(after) {
		t.Errorf("%d bytes, %v", len(again), err)
	}
}

// Moments of the years 1 to 9999 have a text form, others are refused.
func TestMomentsHaveATextForm(t *testing.T) {
	year := func(y int) int64 { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() }
	for ms, want := range map[int64]bool{
		year(1): true, year(1) - 1: false, year(10_000) - 1: true, year(10_000): false, 0: true,
		math.MaxInt64: false, math.MinInt64: false,
	} {
		var r reader
		got := r.time(&ms)
		if (r.err == nil) != want || want && got.UnixMilli() != ms {
			t.Errorf("%d ms: %v, %v", ms, got, r.err)
		}
	}
	var r reader
	if got := r.time(nil); !got.IsZero() || r.err != nil {
		t.Errorf("none: %v, %v", got, r.err)
	}
}

// What a run's signature is over tells its runs apart in each number, and from other texts.
func TestEachNumberOfARunIsSigned(t *testing.T) {
	seen := map[string]Run{}
	for _, r := range []Run{
		{}, {Number: 1}, {Nonce: 1}, {Line: 1}, {SinceMS: 1}, {Number: 256}, {Nonce: 256}, {Line: 256},
	} {
		text := string(r.Signed())
		if other, twice := seen[text]; twice || !strings.HasPrefix(text, runContext) {
			t.Errorf("%+v is signed as %q, as %+v", r, text, other)
		}
		seen[text] = r
	}
	signed := Run{Number: 7, Signature: []byte("x")}
	if !bytes.Equal(signed.Signed(), Run{Number: 7}.Signed()) {
		t.Error("the signature is over itself")
	}
}

// A submitter's machine gets the answers of sites, a site's machine what submitters say.
func TestWhoseMachineAMessageIsFor(t *testing.T) {
	broker := []string{
		"needRequirements", "bid", "refuse", "vacancy", "accepted", "declined", "renew", "mayStart",
		"progress", "exited", "checkpointed", "movable", "testimony", "remap",
	}
	for name, m := range goldenMessages() {
		if on, is := m.(OnBehalf); is {
			if got, want := ForBroker(m), ForBroker(on.Message); got != want {
				t.Errorf("%s: %t, what is said: %t", name, got, want)
			}
			continue
		}
		kind := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", m), "protocol."))
		want := slices.ContainsFunc(broker, func(b string) bool { return strings.ToLower(b) == kind })
		if got := ForBroker(m); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The digest of a re-announcement is whole.
func TestAReannouncementHasAWholeDigest(t *testing.T) {
	for n, want := range map[int]error{
		len(Digest{}): nil, 0: ErrMalformed,
		len(Digest{}) - 1: ErrMalformed, len(Digest{}) + 1: ErrMalformed,
	} {
		var r reader
		r.reannounce(&wirepb.Reannounce{Digest: make([]byte, n)})
		if !errors.Is(r.err, want) {
			t.Errorf("%d bytes: %v", n, r.err)
		}
	}
}

// A message with anything behind it that is no field is none, however good the rest is.
func TestAMessageEndsWhereItEnds(t *testing.T) {
	for name, m := range goldenMessages() {
		raw, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(append(raw, 0xff)); got != nil || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// The limits on encoded messages are exact, what a later version adds included.
func TestTheLargestMessageIsRead(t *testing.T) {
	for name, limit := range map[string]int{"announce": maxAnnounceBytes, "cancel": MaxMessageBytes} {
		raw, err := Encode(goldenMessages()[name])
		if err != nil {
			t.Fatal(err)
		}
		for size, want := range map[int]error{limit: nil, limit + 1: ErrTooLarge} {
			const head = 5 // of an unknown field: two bytes of its number, three of its length
			long := append(bytes.Clone(raw), 0x9a, 0x06)
			rest := size - len(raw) - head
			long = append(long, byte(rest)|0x80, byte(rest>>7)|0x80, byte(rest>>14))
			long = append(long, make([]byte, rest)...)
			if _, err := Decode(long); len(long) != size || !errors.Is(err, want) {
				t.Errorf("%s of %d bytes: %v", name, len(long), err)
			}
		}
	}
}
