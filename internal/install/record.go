package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

// recordFile is the record's name in the state directory.
const recordFile = "made.json"

const (
	recordVersion = 1
	maxRecord     = 64 << 10 // bytes of the file
	maxEntries    = 64       // of each list
)

// Record lists what was made on this machine for a site. The zero value: nothing is known to be.
type Record struct {
	Version int `json:"version"`
	// Dirs were not there before, in the order in which they would be made.
	Dirs []string `json:"dirs,omitempty"`
	// Files were made: the configuration, the unit.
	Files []string `json:"files,omitempty"`
	// Service says that the service of the user was enabled.
	Service bool `json:"service,omitempty"`
	// Before are the settings that joining changed, as the file had them; null: it had none.
	Before map[string]*string `json:"before,omitempty"`
}

// Load reads the record in a state directory; without one it is empty.
func Load(state string) (Record, error) {
	file := filepath.Join(state, recordFile)
	r := Record{Version: recordVersion}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil && info.Size() > maxRecord {
		err = fmt.Errorf("larger than %d bytes", maxRecord)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(filepath.Clean(file))
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && (r.Version != recordVersion || len(r.Dirs) > maxEntries ||
		len(r.Files) > maxEntries || len(r.Before) > maxEntries) {
		err = errors.New("another version wrote it")
	}
	if err != nil {
		return Record{Version: recordVersion}, fmt.Errorf("read %s, which says what was made for "+
			"this site: %w; move it away, and remove by hand what is left", file, err)
	}
	return r, nil
}

// Save writes the record into a state directory, which must be there.
func (r *Record) Save(state string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = durable.Replace(filepath.Join(state, recordFile), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("record what was made: %w", err)
	}
	return nil
}

// NoteMissing records which of the directories, and of those above them, are not there, before they
// are made.
func (r *Record) NoteMissing(dirs ...string) {
	for _, dir := range dirs {
		var missing []string
		for ; filepath.IsAbs(dir); dir = filepath.Dir(dir) {
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			missing = append(missing, dir)
		}
		for _, one := range slices.Backward(missing) {
			r.Dirs = once(r.Dirs, one)
		}
	}
}

// UnitDir is the directory of the user's own units, be it there or not.
func (s Site) UnitDir() string { return filepath.Dir(s.ownUnit()) }

// AddFile records that a file was made.
func (r *Record) AddFile(file string) { r.Files = once(r.Files, file) }

// Made reports whether a file or directory is recorded as made.
func (r *Record) Made(path string) bool {
	return slices.Contains(r.Files, path) || slices.Contains(r.Dirs, path)
}

// forget takes a file out that is there no more.
func (r *Record) forget(file string) {
	r.Files = slices.DeleteFunc(r.Files, func(f string) bool { return f == file })
}

// Remember records what the configuration said about a setting before joining changed it, unless
// an earlier join did.
func (r *Record) Remember(name, text string, said bool) {
	if _, known := r.Before[name]; known {
		return
	}
	if r.Before == nil {
		r.Before = map[string]*string{}
	}
	r.Before[name] = nil
	if said {
		r.Before[name] = &text
	}
}

func once(list []string, entry string) []string {
	if slices.Contains(list, entry) || len(list) == maxEntries {
		return list
	}
	return append(list, entry)
}
