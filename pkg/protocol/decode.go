package protocol

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Decode reads what Encode wrote, and validates it. Fields that this version
// does not know are ignored. The errors are ErrTooLarge, ErrMalformed,
// ErrUnknownMessage (also for a version that is not spoken here) and
// grid.ErrInvalid. Nothing of the result refers to raw.
func Decode(raw []byte) (Message, error) {
	if len(raw) > MaxMessageBytes {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d",
			ErrTooLarge, len(raw), MaxMessageBytes)
	}
	var wire wirepb.Wire
	if err := proto.Unmarshal(raw, &wire); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if limit := sizeLimit(&wire); len(raw) > limit {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(raw), limit)
	}
	if err := checkVersion(&wire); err != nil {
		return nil, err
	}
	var r reader
	m := byGateway(wire.GetNeighbour(), onBehalf(wire.GetBehalf(), r.message(&wire)))
	switch {
	case r.err != nil:
		return nil, r.err
	case m == nil && len(wire.ProtoReflect().GetUnknown()) > 0:
		return nil, fmt.Errorf("%w: sent by a newer version", ErrUnknownMessage)
	case m == nil:
		return nil, fmt.Errorf("%w: no body", ErrMalformed)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// checkVersion lets a Hello of any version pass: from it two sites find out which
// versions they share.
func checkVersion(w *wirepb.Wire) error {
	if _, hello := w.GetBody().(*wirepb.Wire_Hello); hello && w.GetVersion() > 0 {
		return nil
	}
	switch v := w.GetVersion(); {
	case v == 0:
		return fmt.Errorf("%w: no version", ErrMalformed)
	case v < MinVersion || v > Version:
		return fmt.Errorf("%w: version %d is not spoken here", ErrUnknownMessage, v)
	default:
		return nil
	}
}
