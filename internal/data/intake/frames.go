package intake

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Bounds on what either side reads from the other.
const (
	maxLine = 64 << 10 // bytes of an order or an event
	maxText = 8 << 10  // bytes of a failure's text
	window  = 16       // blocks that the agent has not taken yet
)

// order tells the process what to do: one line of JSON.
type order struct {
	Shelf      string      // the directory for the files of blocks
	Dir        string      `json:",omitempty"` // that is read; empty: the file
	Executable bool        `json:",omitempty"` // the file
	Key        grid.JobKey `json:",omitempty"` // it is encrypted for; empty: not
	Limits     data.Limits // of what is read
}

// event is said by the process: one line of JSON with one of the three fields.
type event struct {
	Block   *block   `json:",omitempty"`
	Root    grid.CID `json:",omitempty"` // the last event: all blocks were told before
	Failure *failure `json:",omitempty"` // the last event
}

// block is one block whose file is whole.
type block struct {
	Digest []byte
	Bytes  int64
}

// failure is an error on its way through the pipe.
type failure struct {
	Kind kind
	Text string
}

// kind says what callers tell errors apart by.
type kind string

const (
	kindOther       kind = "other"
	kindDiskFull    kind = "disk full"
	kindTooLarge    kind = "too large"
	kindUnsupported kind = "unsupported"
	kindGone        kind = "gone"
)

// failureOf makes an error fit for the pipe.
func failureOf(err error) *failure {
	f := &failure{Kind: kindOther, Text: err.Error()}
	if len(f.Text) > maxText {
		f.Text = f.Text[:maxText/2] + " ... " + f.Text[len(f.Text)-maxText/2:]
	}
	f.Text = strings.ToValidUTF8(f.Text, "?")
	switch {
	case durable.NoRoom(err):
		f.Kind = kindDiskFull
	case errors.Is(err, data.ErrTooLarge):
		f.Kind = kindTooLarge
	case errors.Is(err, data.ErrUnsupported):
		f.Kind = kindUnsupported
	case errors.Is(err, fs.ErrNotExist):
		f.Kind = kindGone
	}
	return f
}

// told is an error of the process with the meaning that it had there.
type told struct {
	text   string
	causes []error
}

// Error implements error.
func (t told) Error() string { return t.text }

// Unwrap gives what errors.Is finds.
func (t told) Unwrap() []error { return t.causes }

// err is the error again.
func (f *failure) err() error {
	t := told{text: f.Text}
	switch f.Kind {
	case kindDiskFull:
		t.causes = []error{data.ErrDiskFull, syscall.ENOSPC}
		t.text = fmt.Sprintf("%s: free some space or lower the data quota: %s",
			data.ErrDiskFull, f.Text)
	case kindTooLarge:
		t.causes = []error{data.ErrTooLarge}
	case kindUnsupported:
		t.causes = []error{data.ErrUnsupported}
	case kindGone:
		t.causes = []error{fs.ErrNotExist}
	case kindOther:
	}
	return t
}

// writeLine writes a value as one line.
func writeLine(to io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if len(line) >= maxLine {
		return fmt.Errorf("encode: a line of %d bytes, want less than %d", len(line), maxLine)
	}
	_, err = to.Write(append(line, '\n'))
	return err
}

// lines reads lines of at most maxLine bytes.
func lines(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, maxLine) }

// errLine means that a line is none that the other side writes.
var errLine = errors.New("the processes do not understand each other")

// readLine reads one line into v; io.EOF where none begins.
func readLine(from *bufio.Reader, v any) error {
	line, err := from.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("%w: a line of more than %d bytes", errLine, maxLine)
	case errors.Is(err, io.EOF) && len(line) > 0:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	}
	in := json.NewDecoder(bytes.NewReader(line))
	in.DisallowUnknownFields()
	if err := in.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", errLine, err)
	}
	return nil
}

// block gives the block of an event, checked.
func (b *block) block() (data.Block, error) {
	var d data.Digest
	if len(b.Digest) != len(d) || b.Bytes <= 0 {
		return data.Block{}, fmt.Errorf("%w: a block with a digest of %d bytes and %d of content",
			errLine, len(b.Digest), b.Bytes)
	}
	copy(d[:], b.Digest)
	return data.Block{Digest: d, Bytes: b.Bytes}, nil
}

// receive hears a process to its last event and returns the root. Each block is taken; then
// ack is told how many were since it was told last. Errors of take are returned as they are, what
// the process failed for as told, and all else as ErrProcess.
func receive(
	from io.Reader, take func(data.Block) error, ack func(n int),
) (grid.CID, error) {
	in := lines(from)
	for taken := 0; ; {
		var e event
		if err := readLine(in, &e); err != nil {
			return "", fmt.Errorf("%w: %w", ErrProcess, err)
		}
		switch {
		case e.Failure != nil:
			return "", e.Failure.err()
		case e.Root != "":
			return e.Root, nil
		case e.Block == nil:
			return "", fmt.Errorf("%w: %w: an empty event", ErrProcess, errLine)
		}
		b, err := e.Block.block()
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrProcess, err)
		}
		if err := take(b); err != nil {
			return "", err
		}
		if taken++; in.Buffered() == 0 || taken >= window/2 {
			ack(taken)
			taken = 0
		}
	}
}
