package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

// fileVersion is the form of the files that this build writes.
const fileVersion = 1

// maxFileBytes bounds what is read: maxRecords at their longest fit.
const maxFileBytes = 8 << 20

// save writes a value as JSON; without a directory it does nothing.
func save(dir, name string, value any) error {
	if dir == "" {
		return nil
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		err = durable.Replace(filepath.Join(dir, name), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// errBans refuses to go on without a file that says who is kept out.
var errBans = errors.New("it says who is banned, and without it they would come back")

// need reads a file with decode. One that cannot be used is an error that names it, why that is
// one, and what can be done. A missing file is fine.
func need(dir, name string, why error, remedy string, decode func([]byte) error) error {
	if dir == "" {
		return nil
	}
	file := filepath.Join(dir, name)
	if err := read(file, decode); err != nil {
		return fmt.Errorf("%s is damaged (%w): %w; %s", file, err, why, remedy)
	}
	return nil
}

// read reads a file with decode. A missing file is fine.
func read(file string, decode func([]byte) error) error {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Size() > maxFileBytes {
		err = fmt.Errorf("larger than %d bytes", maxFileBytes)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	if err == nil {
		err = decode(text)
	}
	return err
}

// load reads a file with decode. One that cannot be used is moved away; the text
// says so, for the owner. A missing file is fine.
func load(dir, name string, decode func([]byte) error) (problem string) {
	if dir == "" {
		return ""
	}
	file := filepath.Join(dir, name)
	err := read(file, decode)
	if err == nil {
		return ""
	}
	aside := file + ".unusable"
	if moved := os.Rename(file, aside); moved != nil {
		return fmt.Sprintf("%s is not usable (%v) and cannot be moved away: %v", file, err, moved)
	}
	return fmt.Sprintf(
		"%s was not usable (%v): moved to %s, and the site continues without it", file, err, aside,
	)
}
