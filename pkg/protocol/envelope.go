package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Envelope is the unit that gossip carries: an encoded message, who says it, to which
// domain, and when. It is signed as a whole by the signer's ed25519 key; making and
// verifying the signature is left to the caller.
type Envelope struct {
	Version  uint32        // the protocol version, MinVersion to Version
	Domain   grid.DomainID // the domain it is meant for
	Signer   grid.SiteID   // who signed it
	Sequence uint64        // grows with every envelope of the signer, over restarts too; from 1
	IssuedMS int64         // signer's wall clock, ms since 1970 UTC
	Validity time.Duration // how long it matters, counted from IssuedMS; above 0, at most MaxValidity
	Payload  []byte        // an encoded message, 1 to maxAnnounceBytes bytes
}

// Limits on envelopes.
const (
	MaxEnvelopeBytes = maxAnnounceBytes + 1<<10 // size of an encoded envelope
	MaxValidity      = 10 * time.Minute         // of an envelope
	MaxSkew          = 10 * time.Minute         // between two sites' wall clocks
	SignatureBytes   = 64                       // size of an ed25519 signature
	signedContext    = "mrs/1/envelope"
)

// Why an envelope is not fresh.
var (
	errExpired  = errors.New("envelope expired")
	errFuture   = errors.New("envelope issued in the future: the signer's clock is too far ahead")
	errReplayed = errors.New("envelope seen before, or too old to tell")
	errCrowded  = errors.New("too many signers at the same time")
)

// Validate reports the first field that is out of its range. It does not look
// into the payload.
func (e Envelope) Validate() error {
	switch {
	case e.Version < MinVersion || e.Version > Version:
		return fmt.Errorf("%w: envelope of version %d", ErrUnknownMessage, e.Version)
	case e.Sequence == 0 || e.IssuedMS < 0 || e.IssuedMS > math.MaxInt64/int64(time.Millisecond):
		return invalidf("envelope: sequence 0 or time of issue out of range")
	case e.Validity <= 0 || e.Validity > MaxValidity:
		return invalidf("envelope: want a validity above 0 and at most %s, have %s",
			MaxValidity, e.Validity)
	case len(e.Payload) == 0:
		return invalidf("envelope: no payload")
	case len(e.Payload) > maxAnnounceBytes:
		return fmt.Errorf("%w: envelope with a payload of %d bytes, the limit is %d",
			ErrTooLarge, len(e.Payload), maxAnnounceBytes)
	}
	return firstError(e.Domain.Validate(), e.Signer.Validate())
}

// SignedBytes returns the bytes that the signature covers. Equal envelopes give equal
// bytes. The envelope must be valid; the bytes of one that is not are nil.
func (e Envelope) SignedBytes() []byte {
	if e.Validate() != nil {
		return nil
	}
	signed, err := marshalOptions().Marshal(&wirepb.Signed{
		Context: signedContext, Version: e.Version, Domain: string(e.Domain), Signer: string(e.Signer),
		Sequence: e.Sequence, IssuedMs: e.IssuedMS, ValidityNs: int64(e.Validity), Payload: e.Payload,
	})
	if err != nil { // Validate lets only ASCII names pass
		return nil
	}
	return signed
}

// EncodeEnvelope writes a valid envelope and the signature over e.SignedBytes().
func EncodeEnvelope(e Envelope, signature []byte) []byte {
	raw, err := marshalOptions().
		Marshal(&wirepb.Envelope{Signed: e.SignedBytes(), Signature: signature})
	if err != nil { // there is no text in it that could be wrong
		return nil
	}
	return raw
}

// DecodeEnvelope reads an envelope and validates everything but its payload.
// The signature must then be verified over signed with the key of e.Signer, and
// e be tested by a ReplayWindow, before Decode looks at the payload. Sizes are
// checked before anything is allocated. The errors are those of Decode.
//
// Around what is signed only the one encoding that EncodeEnvelope writes is accepted.
// Otherwise any peer could make new envelopes without end from one that it received, each
// with a name of its own and a signature that holds. What a later version adds has its
// place in what is signed, where unknown fields are ignored.
func DecodeEnvelope(raw []byte) (e Envelope, signed, signature []byte, err error) {
	if len(raw) > MaxEnvelopeBytes {
		return Envelope{}, nil, nil, fmt.Errorf("%w: envelope of %d bytes, the limit is %d",
			ErrTooLarge, len(raw), MaxEnvelopeBytes)
	}
	var outer wirepb.Envelope
	var inner wirepb.Signed
	if err = proto.Unmarshal(raw, &outer); err == nil {
		err = proto.Unmarshal(outer.GetSigned(), &inner)
	}
	switch {
	case err != nil:
		return Envelope{}, nil, nil, fmt.Errorf("%w: envelope: %w", ErrMalformed, err)
	case len(outer.GetSignature()) != SignatureBytes:
		return Envelope{}, nil, nil, fmt.Errorf("%w: signature of %d bytes, want %d",
			ErrMalformed, len(outer.GetSignature()), SignatureBytes)
	case !canonical(&outer, raw):
		return Envelope{}, nil, nil, fmt.Errorf("%w: envelope: not in the one form it has", ErrMalformed)
	case inner.GetContext() != signedContext:
		return Envelope{}, nil, nil, fmt.Errorf("%w: signed for another purpose", ErrMalformed)
	}
	e = Envelope{
		Version: inner.GetVersion(),
		Domain:  grid.DomainID(inner.GetDomain()), Signer: grid.SiteID(inner.GetSigner()),
		Sequence: inner.GetSequence(), IssuedMS: inner.GetIssuedMs(),
		Validity: time.Duration(inner.GetValidityNs()), Payload: inner.GetPayload(),
	}
	if err := e.Validate(); err != nil {
		return Envelope{}, nil, nil, err
	}
	return e, outer.GetSigned(), outer.GetSignature(), nil
}

// canonical reports whether the bytes are those EncodeEnvelope would write.
func canonical(outer *wirepb.Envelope, raw []byte) bool {
	if len(outer.ProtoReflect().GetUnknown()) > 0 {
		return false
	}
	again, err := marshalOptions().Marshal(outer)
	return err == nil && bytes.Equal(again, raw)
}

// CheckTime reports errExpired or errFuture for an envelope that no clock
// within MaxSkew of its signer's would accept at now.
func (e Envelope) CheckTime(now time.Time) error {
	issued := time.UnixMilli(e.IssuedMS)
	switch {
	case now.After(e.forgetAt()):
		return errExpired
	case issued.After(now.Add(MaxSkew)):
		return errFuture
	default:
		return nil
	}
}

// forgetAt is the moment after which CheckTime refuses the envelope permanently.
func (e Envelope) forgetAt() time.Time {
	return time.UnixMilli(e.IssuedMS).Add(e.Validity + MaxSkew)
}
