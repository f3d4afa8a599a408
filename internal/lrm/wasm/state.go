package wasm

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
)

// A state is a file of pages, of the size of WebAssembly's: memory, the files of the sandbox, what
// was printed to stdout and to stderr, each filled up to whole pages; and behind these the
// description as JSON, its length, and stateMagic. Pages are not compressed: so the blocks of what
// did not change stay the same ones (ADR 0058). Pages of zeros are holes.
const (
	pageBytes      = 64 << 10
	stateMagic     = "mrsstep1" // and the format's version
	tailBytes      = 4 + len(stateMagic)
	maxDescription = 4 << 20 // about 40,000 files
	runBytes       = 1 << 20 // written or read together
)

// description says what a state holds. Sizes are in bytes, times in nanoseconds.
type description struct {
	Module  string   // sha256 of the module as it was submitted, in hex
	Steps   uint64   // that were done
	Pages   uint32   // of memory
	Globals []uint64 // the mutable ones, in their order
	Clock   int64    // of the guest
	Random  []byte   // where the source of random numbers stands
	Stdout  int64
	Stderr  int64
	Entries int         // files and directories that count
	Files   []savedFile `json:",omitempty"` // in the order of their paths
}

// savedFile is a file or directory of the sandbox.
type savedFile struct {
	Path    []byte // below the sandbox's root; it need not be UTF-8
	Dir     bool   `json:",omitempty"`
	Bytes   int64  `json:",omitempty"`
	Written int64  `json:",omitempty"` // when; 0 = the guest has not written it
}

// padded is a size in whole pages.
func padded(n int64) int64 { return (n + pageBytes - 1) / pageBytes * pageBytes }

// zeros is an empty page.
//
//nolint:gochecknoglobals // a constant table
var zeros [pageBytes]byte

// occupied counts the bytes of data that are not in empty pages.
func occupied(data []byte) (n int64) {
	for len(data) > 0 {
		page := data[:min(len(data), pageBytes)]
		if !isEmpty(page) {
			n += int64(len(page))
		}
		data = data[len(page):]
	}
	return n
}

// stateWriter writes the parts of a state one after the other.
type stateWriter struct {
	file *os.File
	at   int64
}

// isEmpty reports whether a page, or the rest of one, has nothing but zeros.
func isEmpty(page []byte) bool { return bytes.Equal(page, zeros[:len(page)]) }

// put writes a part, and leaves out its empty pages.
func (w *stateWriter) put(data []byte) error {
	page := func(at int) []byte { return data[at:min(len(data), at+pageBytes)] }
	for at := 0; at < len(data); {
		end := at
		for end < len(data) && end-at < runBytes && !isEmpty(page(end)) {
			end += len(page(end))
		}
		if end == at {
			at += len(page(at))
			continue
		}
		if _, err := w.file.WriteAt(data[at:end], w.at+int64(at)); err != nil {
			return err
		}
		at = end
	}
	w.at += padded(int64(len(data)))
	return nil
}

// copy writes a part of n bytes that is a file's.
func (w *stateWriter) copy(from io.Reader, n int64) error {
	out := io.NewOffsetWriter(w.file, w.at)
	if _, err := io.CopyN(out, from, n); err != nil {
		return err
	}
	w.at += padded(n)
	return nil
}

// end writes the description.
func (w *stateWriter) end(text []byte) error {
	tail := binary.BigEndian.AppendUint32(text, uint32(len(text)))
	_, err := w.file.WriteAt(append(tail, stateMagic...), w.at)
	return err
}

// errState is the cause of a refused state.
var errState = errors.New("the state cannot be used")

func badState(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errState, fmt.Sprintf(format, args...))
}

// readDescription reads what stands at the end of a state, of which it takes no more memory than
// maxDescription.
func readDescription(file io.ReaderAt, size int64) (d description, err error) {
	tail := make([]byte, tailBytes)
	if size < int64(tailBytes) {
		return d, badState("it is too short")
	}
	if _, err = file.ReadAt(tail, size-int64(tailBytes)); err != nil {
		return d, fmt.Errorf("read state: %w", err)
	}
	n := int64(binary.BigEndian.Uint32(tail))
	switch {
	case string(tail[4:]) != stateMagic:
		return d, badState("it is of no module of steps")
	case n > maxDescription || n > size-int64(tailBytes):
		return d, badState("its description has %d bytes", n)
	}
	text := make([]byte, n)
	if _, err = file.ReadAt(text, size-int64(tailBytes)-n); err != nil {
		return d, fmt.Errorf("read state: %w", err)
	}
	from := json.NewDecoder(bytes.NewReader(text))
	from.DisallowUnknownFields() // they would be left out of what goes on
	if err = from.Decode(&d); err != nil {
		return d, badState("its description: %v", err)
	}
	if from.InputOffset() != n {
		return d, badState("there is more behind its description")
	}
	if d.size() != size-int64(tailBytes)-n {
		return d, badState("it has not the size that it says")
	}
	return d, nil
}

// size is that of all parts, -1 if it is none. No sum can overflow: a part is at most maxClaim, and
// there are at most maxEntries.
func (d *description) size() int64 {
	const maxClaim = 1 << 45
	if len(d.Files) > maxEntries {
		return -1
	}
	total := int64(d.Pages) * pageBytes
	for _, n := range []int64{d.Stdout, d.Stderr} {
		if n < 0 || n > maxClaim {
			return -1
		}
		total += padded(n)
	}
	for _, f := range d.Files {
		if f.Bytes < 0 || f.Bytes > maxClaim || f.Dir && f.Bytes > 0 {
			return -1
		}
		total += padded(f.Bytes)
	}
	return total
}

// bounds are what a state has to keep to.
type bounds struct {
	module  string
	globals []exposed
	memory  uint64 // bytes
	disk    int64
	output  int64
	hidden  string // a name that no file may have
}

// check says why a state is not one of this module within its bounds.
func (d *description) check(b bounds) error {
	switch {
	case d.Module != b.module:
		return badState("it is of another module")
	case uint64(d.Pages)*pageBytes > b.memory:
		return badState("it has %d pages of memory, more than the task may have", d.Pages)
	case d.Stdout > b.output || d.Stderr > b.output:
		return badState("it has printed more than a task may")
	case d.Clock < 0 || d.Clock > math.MaxInt64-clockStart:
		return badState("its clock says %d", d.Clock)
	case d.Entries < 0 || d.Entries > maxEntries:
		return badState("it counts %d files", d.Entries)
	case len(d.Globals) != len(b.globals):
		return badState("it has %d global variables, the module %d", len(d.Globals), len(b.globals))
	}
	for i, g := range b.globals {
		if !g.wide() && d.Globals[i] > math.MaxUint32 {
			return badState("global variable %d is too large", i)
		}
	}
	return d.checkFiles(b)
}

// checkFiles looks at what is to be laid out: each path once, below a directory that is there.
func (d *description) checkFiles(b bounds) error {
	dirs := map[string]bool{".": true}
	last, total := "", int64(0)
	for _, f := range d.Files {
		name := string(f.Path)
		switch {
		case name == "." || path.Clean(name) != name || strings.Contains(name, "\x00") ||
			!fs.ValidPath(strings.ToValidUTF8(name, "_")):
			return badState("a file has the path %q", name)
		case name <= last:
			return badState("the file %q is not in its place", name)
		case !dirs[path.Dir(name)] || name == b.hidden:
			return badState("the file %q cannot be there", name)
		}
		last, dirs[name] = name, f.Dir
		if total += f.Bytes; total > b.disk {
			return badState("its files take more than the task's disk")
		}
	}
	return nil
}
