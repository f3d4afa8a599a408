package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Why bytes are no message, or a message cannot become bytes. A value that is
// out of its range is a grid.ErrInvalid.
var (
	ErrMalformed      = errors.New("malformed message")
	ErrTooLarge       = errors.New("message too large")
	ErrUnknownMessage = errors.New("unknown message")
)

// FrameHeaderBytes is the size of the length that stands before a message on a
// stream: an unsigned big-endian number, the header itself not counted.
const FrameHeaderBytes = 4

// Encode writes a valid message. Equal messages give equal bytes. The errors
// are ErrTooLarge (the limits are maxAnnounceBytes and MaxMessageBytes),
// ErrUnknownMessage (a type that is not of this package, or a pointer to one
// that is) and grid.ErrInvalid (a value out of its range, or text that is not
// UTF-8). Times are cut to milliseconds, and in Exit.Text and Hello.Name a "?"
// stands for what is not UTF-8.
func Encode(m Message) ([]byte, error) {
	return appendMessage(nil, m)
}

// AppendFrame appends the message to buf as a stream carries it: the length of
// its encoding in FrameHeaderBytes bytes, big-endian, then the encoding. The errors are those
// of Encode; buf is then returned as it was.
func AppendFrame(buf []byte, m Message) ([]byte, error) {
	start := len(buf)
	grown, err := appendMessage(append(buf, make([]byte, FrameHeaderBytes)...), m)
	if err != nil {
		return buf[:start], err
	}
	binary.BigEndian.PutUint32(grown[start:], uint32(len(grown)-start-FrameHeaderBytes))
	return grown, nil
}

// DigestOf is the SHA-256 of the requirement's encoding. A requirement that
// cannot be encoded (text that is not UTF-8, which no announcement can carry)
// has the zero digest.
func DigestOf(r grid.Requirement) Digest {
	text, err := marshalOptions().Marshal(wireRequirement(r))
	if err != nil {
		return Digest{}
	}
	return sha256.Sum256(text)
}

func marshalOptions() proto.MarshalOptions { return proto.MarshalOptions{Deterministic: true} }

func appendMessage(buf []byte, m Message) ([]byte, error) {
	wire := &wirepb.Wire{Version: Version}
	body := m
	if by, is := m.(ByGateway); is {
		wire.Neighbour = string(by.Domain)
		body = by.Message
	}
	if on, is := body.(OnBehalf); is {
		setBehalf(wire, on.Behalf)
		body = on.Message
	}
	if !setCall(wire, body) && !setAttempt(wire, body) && !setMember(wire, body) &&
		!setStandby(wire, body) && !setDomain(wire, body) && !setNeighbours(wire, body) &&
		!setBorder(wire, body) {
		return nil, fmt.Errorf("%w: %T", ErrUnknownMessage, m)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	out, err := marshalOptions().MarshalAppend(buf, wire)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", grid.ErrInvalid, err)
	}
	if size, limit := len(out)-len(buf), sizeLimit(wire); size > limit {
		return nil, fmt.Errorf("%w: %T has %d bytes, the limit is %d; "+
			"use fewer or shorter inputs, arguments or tasks", ErrTooLarge, m, size, limit)
	}
	return out, nil
}

// sizeLimit is the most bytes that a message of this kind may have. What goes
// by gossip is kept small.
func sizeLimit(w *wirepb.Wire) int {
	switch w.GetBody().(type) {
	case *wirepb.Wire_Announce, *wirepb.Wire_Reannounce, *wirepb.Wire_Requirements, *wirepb.Wire_Clear:
		return maxAnnounceBytes
	default:
		return MaxMessageBytes
	}
}
