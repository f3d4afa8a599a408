package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// BufferBytes is the size of a read or a write.
const BufferBytes = 32 << 10

// Stream is a stream as far as reading and writing frames needs it.
type Stream interface {
	io.ReadWriter
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// DeadlineWriter gives every write to the stream its own deadline.
type DeadlineWriter struct {
	Stream Stream
	Limit  time.Duration
}

// Write writes all of b before the deadline.
func (w DeadlineWriter) Write(b []byte) (int, error) {
	if err := w.Stream.SetWriteDeadline(time.Now().Add(w.Limit)); err != nil {
		return 0, err
	}
	return w.Stream.Write(b)
}

// Reader reads messages off a stream. Between two messages it waits without
// limit; once the first byte of one has come, the rest must come within limit.
type Reader struct {
	stream Stream
	in     *bufio.Reader
	limit  time.Duration
	Size   int // of the last message, encoded
}

// NewReader reads a stream on which messages may be far apart.
func NewReader(stream Stream, limit time.Duration) *Reader {
	return &Reader{stream: stream, in: bufio.NewReaderSize(stream, BufferBytes), limit: limit}
}

// NewTimedReader reads a stream whose caller has set a deadline for the whole of it,
// which the reader leaves alone.
func NewTimedReader(stream Stream) *Reader { return NewReader(fixedDeadline{stream}, time.Hour) }

// fixedDeadline keeps a Reader from moving the deadline of the whole.
type fixedDeadline struct{ Stream }

// SetReadDeadline does nothing.
func (fixedDeadline) SetReadDeadline(time.Time) error { return nil }

// Next reads one message of at most maxBytes. io.EOF means that the peer ended
// the stream between two messages.
func (r *Reader) Next(maxBytes int) (protocol.Message, error) {
	if _, err := r.in.Peek(1); err != nil {
		return nil, err
	}
	timed := r.in.Buffered() < protocol.FrameHeaderBytes
	if timed {
		if err := r.stream.SetReadDeadline(time.Now().Add(r.limit)); err != nil {
			return nil, err
		}
	}
	var header [protocol.FrameHeaderBytes]byte
	if _, err := io.ReadFull(r.in, header[:]); err != nil {
		return nil, fmt.Errorf("read frame: %w", unexpected(err))
	}
	size := int(binary.BigEndian.Uint32(header[:]))
	if size == 0 || size > maxBytes {
		return nil, fmt.Errorf("%w: frame of %d bytes, want 1 to %d",
			protocol.ErrTooLarge, size, maxBytes)
	}
	if !timed && r.in.Buffered() < size {
		timed = true
		if err := r.stream.SetReadDeadline(time.Now().Add(r.limit)); err != nil {
			return nil, err
		}
	}
	r.Size = size
	body := make([]byte, size)
	if _, err := io.ReadFull(r.in, body); err != nil {
		return nil, fmt.Errorf("read frame: %w", unexpected(err))
	}
	if timed {
		if err := r.stream.SetReadDeadline(time.Time{}); err != nil {
			return nil, err
		}
	}
	return protocol.Decode(body)
}

// unexpected tells an end inside a frame from one between two.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// CauseOf is the label under which unusable bytes are counted.
func CauseOf(err error) string {
	switch {
	case errors.Is(err, protocol.ErrTooLarge):
		return causeSize
	case errors.Is(err, protocol.ErrUnknownMessage):
		return causeVersion
	case errors.Is(err, protocol.ErrMalformed), errors.Is(err, grid.ErrInvalid):
		return CauseFormat
	default:
		return causeFrame
	}
}

// Skippable reports whether a message that is not usable was read to its end, so that
// the next one can be read.
func Skippable(err error) bool {
	cause := CauseOf(err)
	return cause == CauseFormat || cause == causeVersion
}
