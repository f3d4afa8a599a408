package jobfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
)

// TestExecutableInputsSayIt looks at a file that is the module and an input: it is read as
// the one and run as the other.
func TestExecutableInputsSayIt(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"m.wasm": "\x00asm", "run.sh": "#!/bin/sh\n", "plain": "1"})
	for _, name := range []string{"m.wasm", "run.sh"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := jobfile.Load([]byte(`
wasm: m.wasm
runtime: 1s
inputs: [{path: /in/m, from: m.wasm}, {path: /in/run, from: run.sh}, {path: /in/plain, from: plain}]
`), dir, options())
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for _, source := range plan.Sources {
		got = append(got, source.Executable)
	}
	if want := []bool{false, true, true, false}; len(got) != 4 || [4]bool(got) != [4]bool(want) {
		t.Errorf("module and inputs are executable: %v, want %v", got, want)
	}
}
