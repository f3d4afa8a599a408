package durable

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/powercut"
)

// Each file is written so often.
const versions = 3

// text fills a file that is written for the n-th time: some kilobytes, so that parts of it may
// be missing.
func text(file string, version int) string {
	return strings.Repeat(fmt.Sprintf("%s %d\n", file, version), 1000)
}

// TestPowerFails: whenever the power fails, a file that was written is there and whole, and one
// that is being written is as it was before, or as it will be.
func TestPowerFails(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(powercut.Role); dir != "" {
		writeAll(t, dir, powercut.Ack)
		return
	}
	uncut := 0
	writeAll(t, t.TempDir(), func(string) error { uncut++; return nil })
	tape := powercut.Record(t, "TestPowerFails", t.TempDir())
	if got := len(tape.Acked(tape.Len())); got != uncut || got <= 2*versions {
		t.Fatalf("%d writes were acknowledged, and %d of another process", uncut, got)
	}
	for point := range tape.Len() + 1 {
		for seed := range uint64(4) {
			cutAndLook(t, tape, point, seed)
		}
	}
}

// writeAll writes one file again and again, another one that is open, too, and a third one once;
// each write is acknowledged.
func writeAll(t *testing.T, dir string, acknowledge func(string) error) {
	t.Helper()
	var open *os.File
	wrote := func(file string, version int, err error) {
		if err == nil {
			err = acknowledge(fmt.Sprint(file, " ", version))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for version := 1; version <= versions; version++ {
		content := text("replaced", version)
		wrote("replaced", version, Replace(filepath.Join(dir, "replaced"), []byte(content)))
		var err error
		content = text("rewritten", version)
		open, err = Rewrite(open, filepath.Join(dir, "rewritten"), []byte(content))
		wrote("rewritten", version, err)
	}
	wrote("created", 1, Create(filepath.Join(dir, "created"), []byte(text("created", 1))))
	if err := open.Close(); err != nil {
		t.Error(err)
	}
}

// cutAndLook looks at what the files hold after the power failed.
func cutAndLook(t *testing.T, tape *powercut.Tape, point int, seed uint64) {
	t.Helper()
	dir := t.TempDir()
	if err := tape.Cut(dir, point, seed); err != nil {
		t.Fatal(err)
	}
	acknowledged := make(map[string]int)
	for _, word := range tape.Acked(point) {
		var file string
		var version int
		if _, err := fmt.Sscan(word, &file, &version); err != nil {
			t.Fatal(err)
		}
		acknowledged[file] = version
	}
	for _, file := range []string{"replaced", "rewritten", "created"} {
		content, err := os.ReadFile(filepath.Join(dir, file))
		was, whole := acknowledged[file], false
		for version := max(was, 1); version <= was+1; version++ {
			whole = whole || string(content) == text(file, version)
		}
		if missing := was == 0 && os.IsNotExist(err); !whole && !missing {
			t.Errorf("at event %d, seed %d, %s was written %d times and has %.20q, %v",
				point, seed, file, was, content, err)
		}
	}
}
