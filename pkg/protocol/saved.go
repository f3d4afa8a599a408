package protocol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Checkpointed tells the submitter of a checkpoint that the site has taken of a running attempt.
// It counts when the submitter holds it, too. The site repeats it until Held, and takes no other
// before: an older submitter, which does not know the message, is told of one only.
type Checkpointed struct {
	Attempt    grid.AttemptID
	Checkpoint grid.Checkpoint
}

// Held answers Checkpointed: the submitter holds the checkpoint, which counts from now on, or
// Reason says why it does not.
type Held struct {
	Attempt grid.AttemptID
	Number  uint64      // of the checkpoint
	Reason  grid.Reason // ReasonNone: it counts
}

// Validate reports the first field that is out of its range.
func (m Checkpointed) Validate() error {
	return firstError(m.Attempt.Validate(), m.Checkpoint.Validate())
}

// Validate reports the first field that is out of its range.
func (m Held) Validate() error {
	if m.Number == 0 {
		return invalidf("held: checkpoints count from 1")
	}
	if m.Reason != grid.ReasonNone {
		return firstError(m.Attempt.Validate(), grid.Refusal{Reason: m.Reason}.Validate())
	}
	return m.Attempt.Validate()
}

// Seal says whose state a checkpoint holds. It stands behind the state, so that the blocks of a
// state that changes a little stay where they are, and one that is cut short has none.
type Seal struct {
	Task   grid.TaskID `json:"task"`
	Token  grid.Token  `json:"token"`  // of the attempt that it was taken of
	Number uint64      `json:"number"` // as in grid.Checkpoint
	Work   string      `json:"work"`   // as grid.Task.WorkDigest writes it
	Bytes  int64       `json:"bytes"`  // of the state alone
}

// The form of a seal: its JSON, the length of that in four bytes, big-endian, and the mark.
const (
	sealMark = "mrs-saved-1"
	sealTail = 4 + len(sealMark)
	// MaxSealBytes bounds what AppendSeal appends.
	MaxSealBytes = 512
)

// ErrNoSeal says that what should end with a seal does not.
var ErrNoSeal = errors.New("no seal")

// AppendSeal appends the seal to a state.
func AppendSeal(state []byte, s Seal) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return state, fmt.Errorf("write seal: %w", err)
	}
	if len(text)+sealTail > MaxSealBytes {
		return state, fmt.Errorf("write seal: %w: %d bytes", ErrTooLarge, len(text))
	}
	state = append(state, text...)
	state = binary.BigEndian.AppendUint32(state, uint32(len(text)))
	return append(state, sealMark...), nil
}

// ReadSeal reads the seal at the end of a checkpoint of so many bytes, whose last ones,
// MaxSealBytes of them or all, are tail. The error is ErrNoSeal: it is no checkpoint, or it is cut
// short.
func ReadSeal(tail []byte, total int64) (Seal, error) {
	n := len(tail) - sealTail
	if n < 0 || string(tail[n+4:]) != sealMark {
		return Seal{}, fmt.Errorf("%w: its end is missing", ErrNoSeal)
	}
	length := int64(binary.BigEndian.Uint32(tail[n:]))
	if length > int64(n) {
		return Seal{}, fmt.Errorf("%w: its length is wrong", ErrNoSeal)
	}
	var s Seal
	if err := json.Unmarshal(tail[int64(n)-length:n], &s); err != nil {
		return Seal{}, fmt.Errorf("%w: %w", ErrNoSeal, err)
	}
	if s.Bytes != total-length-int64(sealTail) {
		return Seal{}, fmt.Errorf("%w: %d bytes of state, the seal says %d",
			ErrNoSeal, total-length-int64(sealTail), s.Bytes)
	}
	return s, nil
}

// Against says why a checkpoint with this seal is not the one that is wanted: of another task or
// program, or an older one. ReasonNone: it is. Of want the token and the size do not count.
func (s Seal) Against(want Seal) grid.Reason {
	switch {
	case s.Task != want.Task || s.Work != want.Work:
		return grid.ReasonSavedForeign
	case s.Number != want.Number:
		return grid.ReasonSavedOld
	default:
		return grid.ReasonNone
	}
}
