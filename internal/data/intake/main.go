package intake

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// lowered is the argument behind Arg of a process that has the lowest priority already.
const lowered = "lowered"

// fileDescriptor is that of the file, if one is taken in.
const fileDescriptor = 3

// maxKnown bounds the blocks of which a process remembers that it wrote them.
const maxKnown = 1 << 16

// Main is the process; args are the arguments behind Arg. It returns the exit code.
func Main(args []string) int {
	if len(args) == 0 || args[0] != lowered {
		if err := lower(); err != nil { // it works without
			fmt.Fprintln(os.Stderr, "lower the priority:", err)
		}
	}
	in := lines(os.Stdin)
	var o order
	if err := readLine(in, &o); err != nil {
		fmt.Fprintln(os.Stderr, "read the order:", err)
		return 1
	}
	w := newWriter(o.Shelf, os.Stdout)
	go func() {
		err := w.heed(in)
		fmt.Fprintln(os.Stderr, "the agent is gone:", err)
		os.Exit(1)
	}()
	var last event
	root, err := takeIn(context.Background(), o, w)
	if err == nil {
		last.Root = root
	} else {
		last.Failure = failureOf(err)
	}
	if err := writeLine(os.Stdout, last); err != nil {
		fmt.Fprintln(os.Stderr, "say the end:", err)
		return 1
	}
	return 0
}

// takeIn builds the graph of what an order names.
func takeIn(ctx context.Context, o order, to data.Sink) (grid.CID, error) {
	c := Content{Executable: o.Executable, Dir: o.Dir, Key: o.Key}
	if o.Dir == "" {
		c.File = os.NewFile(fileDescriptor, "content")
	}
	from, end, err := c.open()
	if err != nil {
		return "", err
	}
	defer end()
	return data.Build(ctx, from, o.Limits, to)
}

// writer is the sink of the process: it writes blocks to files and tells of them.
type writer struct {
	shelf  string
	to     io.Writer
	known  map[data.Digest]struct{}
	credit chan struct{} // one for each block that may be told; window at most
}

func newWriter(shelf string, to io.Writer) *writer {
	w := &writer{
		shelf: shelf, to: to, known: make(map[data.Digest]struct{}),
		credit: make(chan struct{}, window),
	}
	for range window {
		w.credit <- struct{}{}
	}
	return w
}

// heed hears that blocks were taken, until the agent ends or says what it should not.
func (w *writer) heed(from *bufio.Reader) error {
	for {
		n, err := from.ReadByte()
		if err != nil {
			return err
		}
		for range n {
			select {
			case w.credit <- struct{}{}:
			default:
				return fmt.Errorf("%w: more blocks were taken than told", errLine)
			}
		}
	}
}

// Put implements data.Sink.
func (w *writer) Put(ctx context.Context, d data.Digest, content []byte) error {
	if _, twice := w.known[d]; twice || len(content) == 0 {
		return nil
	}
	select {
	case <-w.credit:
	case <-ctx.Done():
		return ctx.Err()
	}
	b := data.Block{Digest: d, Bytes: int64(len(content))}
	if err := writeBlock(filepath.Join(w.shelf, b.File()), content); err != nil {
		return fmt.Errorf("write data: %w", err)
	}
	if len(w.known) >= maxKnown {
		clear(w.known)
	}
	w.known[d] = struct{}{}
	return writeLine(w.to, event{Block: &block{Digest: d[:], Bytes: b.Bytes}})
}

// writeBlock writes a file that is not there yet. One that is there was told, and not taken yet.
func writeBlock(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		beginSync(f)
	}
	return errors.Join(err, f.Close())
}
