package data

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// root is the store's record of one graph. The store's mu guards it.
type root struct {
	CID     grid.CID  `json:"cid"`
	Bytes   int64     `json:"bytes"`             // content
	Stored  int64     `json:"stored"`            // distinct blocks; of a partial root: none
	Dir     bool      `json:"dir,omitempty"`     // a directory
	Exec    bool      `json:"exec,omitempty"`    // an executable file
	Partial bool      `json:"partial,omitempty"` // a fetch did not end
	Pinned  bool      `json:"pinned,omitempty"`  // not to be collected before Until
	Until   time.Time `json:"until,omitzero"`    // zero: until it is unpinned
	Used    time.Time `json:"used"`              // last read, fetched or added
	Gone    bool      `json:"gone,omitempty"`    // in the log: forget it

	busy int // operations that need it, which keeps it from collection
}

// logLine is a line of the log: a root, or the content of a small block.
type logLine struct {
	root
	Block []byte `json:"block"`
}

// ref describes the content of the root's graph.
func (r *root) ref() Ref { return Ref{CID: r.CID, Bytes: r.Bytes, Dir: r.Dir, Executable: r.Exec} }

// pinned reports whether the root may not be collected now.
func (r *root) pinned(now time.Time) bool {
	return r.Pinned && (r.Until.IsZero() || now.Before(r.Until))
}

const (
	rootLogName  = "roots.log"
	maxRootLine  = 64 << 10
	rootLogSlack = 256     // lines beyond twice the roots before the log is rewritten
	rootLogFull  = 4 << 20 // bytes of blocks in the log before it is rewritten
)

// rootLog keeps the roots on disk: a line for each change, rewritten when it has
// grown. A line that a crash tore is skipped: at worst its root is fetched again.
// Small blocks stand in it, too, until their files are on disk: one sync for many.
// The store's mu guards all but turn.
type rootLog struct {
	path    string
	disk    *disk
	file    *os.File
	lines   int
	bytes   int64 // of blocks in the lines
	written int   // lines in the life of the log
	synced  int   // of these, how many are known to be on disk
	broken  bool  // a sync failed: what is in the file is not known

	turn sync.Mutex // held by who syncs the file; taken before the store's mu
}

// openRootLog reads the roots, the last line of each CID counting. What the log has of
// blocks goes to restore. The log can be used after the first rewrite.
func openRootLog(
	dir string, d *disk, restore func(block []byte) error,
) (*rootLog, map[grid.CID]*root, error) {
	l := &rootLog{path: filepath.Join(dir, rootLogName), disk: d}
	roots, err := readRoots(l.path, restore)
	return l, roots, err
}

func readRoots(path string, restore func(block []byte) error) (map[grid.CID]*root, error) {
	roots := make(map[grid.CID]*root)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return roots, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read root index: %w", err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, maxRootLine), maxRootLine)
	for lines.Scan() {
		line := new(logLine)
		if json.Unmarshal(lines.Bytes(), line) != nil {
			continue
		}
		if len(line.Block) > 0 {
			if err := restore(line.Block); err != nil {
				return nil, err
			}
			continue
		}
		r := &line.root
		if _, err := parseCID(r.CID); err != nil {
			continue
		}
		if r.Gone {
			delete(roots, r.CID)
			continue
		}
		roots[r.CID] = r
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("read root index: %w", err)
	}
	return roots, nil
}

// append writes the root's present state.
func (l *rootLog) append(r *root) error { return l.line(r) }

// appendBlock writes the content of a small block.
func (l *rootLog) appendBlock(content []byte) error {
	l.bytes += int64(len(content))
	return l.line(blockLine{content})
}

// blockLine is a logLine without a root.
type blockLine struct {
	Block []byte `json:"block"`
}

func (l *rootLog) line(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write root index: %w", err)
	}
	l.lines++
	l.written++
	if n, err := l.file.Write(append(line, '\n')); err != nil {
		l.broken = l.broken || n > 0 // the next line would continue this one
		return writeError(err)
	}
	return nil
}

// grown reports whether most of the log is history.
func (l *rootLog) grown(roots int) bool {
	return l.broken || l.lines > 2*roots+rootLogSlack || l.bytes > rootLogFull
}

// rewrite replaces the log by one line for each root and each block, atomically. It is
// on disk then.
func (l *rootLog) rewrite(roots map[grid.CID]*root, blocks [][]byte) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	var size int64
	for _, id := range slices.Sorted(maps.Keys(roots)) {
		if err := enc.Encode(roots[id]); err != nil {
			return writeError(err)
		}
	}
	for _, b := range blocks {
		if err := enc.Encode(blockLine{b}); err != nil {
			return writeError(err)
		}
		size += int64(len(b))
	}
	file, err := durable.Rewrite(l.file, l.path, text.Bytes())
	l.file = file // with what was there before, if there is an error
	if err != nil {
		return writeError(err)
	}
	l.lines, l.bytes, l.synced, l.broken = len(roots)+len(blocks), size, l.written, false
	return nil
}

func (l *rootLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
