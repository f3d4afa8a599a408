package death

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Limits of what is told.
const (
	MaxAttempts = 4096 // of one site, to one submitter at a time
	MaxAddrs    = 16   // of one submitter
)

const maxNoteBytes = 16 << 10

// Note says of one attempt whom to tell that it is dead.
type Note struct {
	Attempt grid.AttemptID `json:"attempt"`
	To      grid.SiteID    `json:"to"`    // its submitter
	Addrs   []string       `json:"addrs"` // multiaddrs of the submitter
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
		if len(notes[n.To]) < MaxAttempts {
			notes[n.To] = append(notes[n.To], n)
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
	}
	if err != nil {
		return n, fmt.Errorf("read death note %s: %w", path, err)
	}
	return n, nil
}
