package death

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Limits of what is told.
const (
	MaxAttempts = 4096 // of one site, to one submitter at a time
	MaxAddrs    = 16   // of one submitter
)

const maxNoteBytes = 64 << 10

// Note says of one attempt whom to tell that it is dead.
type Note struct {
	Attempt grid.AttemptID `json:"attempt"`
	To      grid.SiteID    `json:"to"`    // who acts as its submitter
	Addrs   []string       `json:"addrs"` // multiaddrs of that
	// Also are the others that may act for its owner. What tells, if it is of an earlier version,
	// does not know them.
	Also []Listener `json:"also,omitempty"`
}

// Listener is another one to be told.
type Listener struct {
	To    grid.SiteID `json:"to"`
	Addrs []string    `json:"addrs"` // multiaddrs
}

// With is the note with one more that is to be told.
func (n Note) With(to grid.SiteID, addrs []string) Note {
	if n.To == "" {
		n.To, n.Addrs = to, addrs
		return n
	}
	n.Also = append(slices.Clip(n.Also), Listener{To: to, Addrs: addrs})
	return n
}

// Encode writes the note as a file has it.
func (n Note) Encode() ([]byte, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("encode death note: %w", err)
	}
	return text, nil
}

// take reads and removes the notes of a directory, by submitter. Files whose names begin
// with a dot are none. What cannot be read is removed too: nobody would tell it later.
func take(dir string) (map[grid.SiteID][]Note, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read death notes: %w", err)
	}
	notes := make(map[grid.SiteID][]Note)
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.Type().IsRegular() {
			continue
		}
		n, err := readNote(filepath.Join(dir, e.Name()))
		if err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name()))); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, l := range append([]Listener{{To: n.To, Addrs: n.Addrs}}, n.Also...) {
			if len(notes[l.To]) < MaxAttempts {
				one := Note{Attempt: n.Attempt, To: l.To, Addrs: l.Addrs}
				notes[l.To] = append(notes[l.To], one)
			}
		}
	}
	return notes, errors.Join(errs...)
}

func readNote(path string) (n Note, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return n, fmt.Errorf("read death note: %w", err)
	}
	if info.Size() > maxNoteBytes {
		return n, fmt.Errorf("read death note %s: %d bytes are too many", path, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return n, fmt.Errorf("read death note: %w", err)
	}
	if err = json.Unmarshal(text, &n); err == nil {
		err = errors.Join(n.Attempt.Validate(), n.To.Validate())
		for _, l := range n.Also {
			err = errors.Join(err, l.To.Validate())
		}
	}
	if err != nil {
		return n, fmt.Errorf("read death note %s: %w", path, err)
	}
	return n, nil
}
