package jobfile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
)

// Looking at files and folders, and reading them, leaves none of them open.
func TestNothingStaysOpen(t *testing.T) {
	dir := folder(t, map[string]string{"w": "\x00asm", "s/1": "1", "text": "no module"})
	for text, works := range map[string]bool{
		"wasm: w\ninputs: [{path: /a, from: s}, {path: /b, from: " + dir + "/text}]\n": true,
		"wasm: text\ninputs: [{path: /a, from: none}]\n":                               false,
	} {
		plan, err := jobfile.Load([]byte(text), dir, options())
		if (err == nil) != works {
			t.Errorf("%s: %v", text, err)
		}
		for _, file := range openBelow(t, dir) {
			t.Errorf("%s: %s is open, of the plan %+v", text, file, plan)
		}
	}
}

// openBelow lists what this process has open in a folder.
func openBelow(t *testing.T, dir string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.HasPrefix(to, dir) {
			files = append(files, to)
		}
	}
	return files
}
