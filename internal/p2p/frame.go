package p2p

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

// maxHelloBytes bounds a Hello: 64 addresses and the capability fit well.
const maxHelloBytes = 32 << 10

// streamBuffer is what is read or written at once.
const streamBuffer = 32 << 10

// deadlined is a stream as far as reading and writing frames needs it.
type deadlined interface {
	io.ReadWriter
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// deadlineWriter gives every write to the stream its own deadline.
type deadlineWriter struct {
	stream deadlined
	limit  time.Duration
}

func (w deadlineWriter) Write(b []byte) (int, error) {
	if err := w.stream.SetWriteDeadline(time.Now().Add(w.limit)); err != nil {
		return 0, err
	}
	return w.stream.Write(b)
}

// frameReader reads messages off a stream. Between two messages it waits for
// ever; once the first byte of one has come, the rest must come within limit.
type frameReader struct {
	stream deadlined
	in     *bufio.Reader
	limit  time.Duration
	size   int // of the last message, encoded
}

func newFrameReader(stream deadlined, limit time.Duration) *frameReader {
	return &frameReader{stream: stream, in: bufio.NewReaderSize(stream, streamBuffer), limit: limit}
}

// next reads one message of at most maxBytes. io.EOF means that the peer ended
// the stream between two messages.
func (r *frameReader) next(maxBytes int) (protocol.Message, error) {
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
		return nil, fmt.Errorf("%w: frame of %d bytes, want 1 to %d", protocol.ErrTooLarge, size, maxBytes)
	}
	if !timed && r.in.Buffered() < size {
		timed = true
		if err := r.stream.SetReadDeadline(time.Now().Add(r.limit)); err != nil {
			return nil, err
		}
	}
	r.size = size
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

// readHello reads the Hello that must come first.
func (r *frameReader) readHello() (protocol.Hello, error) {
	m, err := r.next(maxHelloBytes)
	if err != nil {
		return protocol.Hello{}, fmt.Errorf("read hello: %w", err)
	}
	hello, ok := m.(protocol.Hello)
	if !ok {
		return protocol.Hello{}, fmt.Errorf("read hello: %w: the stream begins with %s", protocol.ErrMalformed, nameOf(m))
	}
	return hello, nil
}

// writeHello writes one frame at once.
func writeHello(stream deadlined, limit time.Duration, hello protocol.Hello) error {
	frame, err := protocol.AppendFrame(nil, hello)
	if err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	if _, err := (deadlineWriter{stream, limit}).Write(frame); err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	return nil
}

// causeOf is the label under which unusable bytes are counted.
func causeOf(err error) string {
	switch {
	case errors.Is(err, protocol.ErrTooLarge):
		return causeSize
	case errors.Is(err, protocol.ErrUnknownMessage):
		return causeVersion
	case errors.Is(err, protocol.ErrMalformed), errors.Is(err, grid.ErrInvalid):
		return causeFormat
	default:
		return causeFrame
	}
}
