package protocol

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

const issuedMS = 1_900_000_000_000

func testEnvelope() Envelope {
	return Envelope{
		Version: Version, Domain: "lab", Signer: "12D3KooWsigner", Sequence: 5, IssuedMS: issuedMS,
		Validity: 3 * time.Second, Payload: []byte("payload"),
	}
}

func testKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

func TestEnvelopeComesBackAndItsSignatureHolds(t *testing.T) {
	key := testKey()
	rapid.Check(t, func(t *rapid.T) {
		want := Envelope{
			Version: Version, Domain: "lab", Signer: drawSite(t),
			Sequence: rapid.Uint64Min(1).Draw(t, "sequence"),
			IssuedMS: rapid.Int64Range(0, 4e12).Draw(t, "issued"), Validity: drawDur(t, 1, MaxValidity),
			Payload: rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "payload"),
		}
		raw := EncodeEnvelope(want, ed25519.Sign(key, want.SignedBytes()))
		got, signed, signature, err := DecodeEnvelope(raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("envelope differs (-want +got):\n%s", diff)
		}
		if !ed25519.Verify(key.Public().(ed25519.PublicKey), signed, signature) {
			t.Fatal("the signature does not hold over the signed bytes")
		}
	})
}

func TestTheEnvelopeFormatDoesNotChange(t *testing.T) {
	e := testEnvelope()
	raw := EncodeEnvelope(e, ed25519.Sign(testKey(), e.SignedBytes()))
	path := filepath.Join("testdata", "golden", "envelope.hex")
	if *update {
		writeHex(t, path, raw)
	}
	if want := readHex(t, path); !bytes.Equal(raw, want) {
		t.Errorf("encoding changed\n got %x\nwant %x", raw, want)
	}
}

func TestAFullEnvelopeFits(t *testing.T) {
	e := testEnvelope()
	e.Domain = grid.DomainID(bytes.Repeat([]byte("d"), 63))
	e.Signer = grid.SiteID(bytes.Repeat([]byte("s"), 128))
	e.Sequence, e.Payload = math.MaxUint64, make([]byte, maxAnnounceBytes)
	if _, _, _, err := DecodeEnvelope(EncodeEnvelope(e, make([]byte, SignatureBytes))); err != nil {
		t.Error(err)
	}
}

func TestDecodeEnvelopeTellsWhatIsWrong(t *testing.T) {
	encode := func(change func(*wirepb.Signed), signature int) []byte {
		e := testEnvelope()
		inner := &wirepb.Signed{
			Context: signedContext, Version: e.Version, Domain: string(e.Domain), Signer: string(e.Signer),
			Sequence: e.Sequence, IssuedMs: e.IssuedMS, ValidityNs: int64(e.Validity), Payload: e.Payload,
		}
		change(inner)
		signed, err := proto.Marshal(inner)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := proto.Marshal(&wirepb.Envelope{Signed: signed, Signature: make([]byte, signature)})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	none := func(*wirepb.Signed) {}
	tests := []struct {
		name string
		raw  []byte
		want error
	}{
		{"good", encode(none, SignatureBytes), nil},
		{"empty", nil, ErrMalformed},
		{"noise", []byte("noise"), ErrMalformed},
		{"short signature", encode(none, SignatureBytes-1), ErrMalformed},
		{"other purpose", encode(func(s *wirepb.Signed) {
			s.Context = "mrs/1/join"
		}, SignatureBytes), ErrMalformed},
		{"next version", encode(func(s *wirepb.Signed) {
			s.Version = 2
		}, SignatureBytes), ErrUnknownMessage},
		{"bad domain", encode(func(s *wirepb.Signed) {
			s.Domain = "A"
		}, SignatureBytes), grid.ErrInvalid},
		{"no signer", encode(func(s *wirepb.Signed) { s.Signer = "" }, SignatureBytes), grid.ErrInvalid},
		{"no sequence", encode(func(s *wirepb.Signed) {
			s.Sequence = 0
		}, SignatureBytes), grid.ErrInvalid},
		{"before 1970", encode(func(s *wirepb.Signed) {
			s.IssuedMs = -1
		}, SignatureBytes), grid.ErrInvalid},
		{"valid forever", encode(func(s *wirepb.Signed) {
			s.ValidityNs = math.MaxInt64
		}, SignatureBytes), grid.ErrInvalid},
		{"no payload", encode(func(s *wirepb.Signed) {
			s.Payload = nil
		}, SignatureBytes), grid.ErrInvalid},
		{"long payload", encode(func(s *wirepb.Signed) {
			s.Payload = make([]byte, maxAnnounceBytes+1)
		}, SignatureBytes), ErrTooLarge},
		{"long", make([]byte, MaxEnvelopeBytes+1), ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, _, err := DecodeEnvelope(tt.raw); !errors.Is(err, tt.want) {
				t.Errorf("DecodeEnvelope = %v, want %v", err, tt.want)
			}
		})
	}
	if signed := (Envelope{}).SignedBytes(); signed != nil {
		t.Errorf("an invalid envelope has signed bytes %x", signed)
	}
}

// What is signed must be whole: an envelope is refused of which the signed part is cut off after
// all that counts, whatever its signature.
func TestAnEnvelopeThatIsCutOffInsideIsRefused(t *testing.T) {
	e := testEnvelope()
	for _, tail := range [][]byte{{0xff}, {0x7a, 0x05, 'x'}, {0x80, 0x80}} {
		raw, err := proto.Marshal(&wirepb.Envelope{
			Signed: append(e.SignedBytes(), tail...), Signature: make([]byte, SignatureBytes),
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _, err := DecodeEnvelope(raw); !errors.Is(err, ErrMalformed) {
			t.Errorf("behind it %x: %+v, %v", tail, got, err)
		}
	}
}

func TestEnvelopesAreFreshWithinTheSkew(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.UnixMilli(issuedMS).Add(d) }
	for _, tt := range []struct {
		now  time.Time
		want error
	}{
		{at(0), nil},
		{at(-MaxSkew), nil},
		{at(-MaxSkew - time.Millisecond), errFuture},
		{at(3*time.Second + MaxSkew), nil},
		{at(3*time.Second + MaxSkew + 1), errExpired},
	} {
		if err := NewReplayWindow(1).Admit(testEnvelope(), tt.now); !errors.Is(err, tt.want) {
			t.Errorf("Admit at %s = %v, want %v", tt.now.Sub(at(0)), err, tt.want)
		}
	}
}

// The twin remembers every pair forever and refuses what is too far behind.
func TestReplayWindowAgreesWithATwinThatForgetsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window, highest, seen := NewReplayWindow(4), map[grid.SiteID]uint64{}, map[string]bool{}
		now := time.UnixMilli(issuedMS)
		for range rapid.IntRange(1, 60).Draw(t, "envelopes") {
			e := testEnvelope()
			e.Signer = rapid.SampledFrom([]grid.SiteID{"a", "b", "c"}).Draw(t, "signer")
			base := rapid.SampledFrom(
				[]uint64{1, 64, replayBits, 2 * replayBits, 1 << 40, math.MaxUint64 - 70},
			).Draw(t, "base")
			e.Sequence = base + rapid.Uint64Range(0, 70).Draw(t, "offset")
			key := fmt.Sprint(e.Signer, e.Sequence)
			want := !seen[key] && (e.Sequence > highest[e.Signer] ||
				highest[e.Signer]-e.Sequence < replayBits)
			if got := window.Admit(e, now) == nil; got != want {
				t.Fatalf("Admit(%s, %d) = %t, want %t (highest %d)",
					e.Signer, e.Sequence, got, want, highest[e.Signer])
			}
			if want {
				seen[key], highest[e.Signer] = true, max(highest[e.Signer], e.Sequence)
			}
		}
	})
}

func TestReplayWindowStaysBounded(t *testing.T) {
	window, now := NewReplayWindow(10), time.UnixMilli(issuedMS)
	for i := range 25 {
		e := testEnvelope()
		e.Signer = grid.SiteID(fmt.Sprintf("s%d", i))
		var want error
		if i >= 10 {
			want = errCrowded
		}
		if err := window.Admit(e, now); !errors.Is(err, want) {
			t.Errorf("signer %d: %v, want %v", i, err, want)
		}
	}
	later := testEnvelope()
	later.Signer, now = "later", now.Add(3*time.Second+MaxSkew+time.Millisecond)
	later.IssuedMS = now.UnixMilli()
	if err := window.Admit(later, now); err != nil || len(window.signers) != 1 {
		t.Errorf("after all have expired: %v, %d signers are remembered", err, len(window.signers))
	}
	if err := window.Admit(testEnvelope(), now); !errors.Is(err, errExpired) {
		t.Errorf("an envelope of a forgotten signer = %v, want %v", err, errExpired)
	}
}

func FuzzDecodeEnvelope(f *testing.F) {
	e := testEnvelope()
	f.Add(EncodeEnvelope(e, ed25519.Sign(testKey(), e.SignedBytes())))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, _, signature, err := DecodeEnvelope(raw)
		if err != nil {
			return
		}
		back, signed, again, err := DecodeEnvelope(EncodeEnvelope(e, signature))
		if err != nil || !cmp.Equal(e, back) || !bytes.Equal(signature, again) ||
			!bytes.Equal(signed, e.SignedBytes()) {
			t.Errorf("re-encoded: %v\n%s", err, cmp.Diff(e, back))
		}
	})
}
