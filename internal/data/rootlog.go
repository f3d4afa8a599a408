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

// ref describes the content of the root's graph.
func (r *root) ref() Ref { return Ref{CID: r.CID, Bytes: r.Bytes, Dir: r.Dir, Executable: r.Exec} }

// pinned reports whether the root may not be collected now.
func (r *root) pinned(now time.Time) bool {
	return r.Pinned && (r.Until.IsZero() || now.Before(r.Until))
}

const (
	rootLogName  = "roots.log"
	maxRootLine  = 4 << 10
	rootLogSlack = 256 // lines beyond twice the roots before the log is rewritten
)

// rootLog keeps the roots on disk: a line for each change, rewritten when it has
// grown. A line that a crash tore is skipped: at worst its root is fetched again.
type rootLog struct {
	path  string
	sync  bool
	file  *os.File
	lines int
}

// openRootLog reads the roots, the last line of each CID counting, and rewrites
// the file without what is gone.
func openRootLog(dir string, sync bool) (*rootLog, map[grid.CID]*root, error) {
	l := &rootLog{path: filepath.Join(dir, rootLogName), sync: sync}
	roots, err := readRoots(l.path)
	if err != nil {
		return nil, nil, err
	}
	if err := l.rewrite(roots); err != nil {
		return nil, nil, err
	}
	return l, roots, nil
}

func readRoots(path string) (map[grid.CID]*root, error) {
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
		r := new(root)
		if json.Unmarshal(lines.Bytes(), r) != nil {
			continue
		}
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
func (l *rootLog) append(r *root) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write root index: %w", err)
	}
	_, err = l.file.Write(append(line, '\n'))
	if err == nil && l.sync {
		err = l.file.Sync()
	}
	l.lines++
	if err != nil {
		return writeError(err)
	}
	return nil
}

// grown reports whether most of the log is history.
func (l *rootLog) grown(roots int) bool { return l.lines > 2*roots+rootLogSlack }

// rewrite replaces the log by one line for each root, atomically.
func (l *rootLog) rewrite(roots map[grid.CID]*root) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	for _, id := range slices.Sorted(maps.Keys(roots)) {
		if err := enc.Encode(roots[id]); err != nil {
			return writeError(err)
		}
	}
	file, err := durable.Rewrite(l.file, l.path, text.Bytes())
	l.file = file // with what was there before, if there is an error
	if err != nil {
		return writeError(err)
	}
	l.lines = len(roots)
	return nil
}

func (l *rootLog) close() error { return l.file.Close() }
