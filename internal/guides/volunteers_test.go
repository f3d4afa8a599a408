package guides

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatVolunteersExpectIsTested wants each test that the table of docs/share.md names, and a
// word where there is none.
func TestWhatVolunteersExpectIsTested(t *testing.T) {
	t.Parallel()
	_, text, found := strings.Cut(read(t, "docs/share.md"), "\n## What volunteers expect\n")
	if !found {
		t.Fatal("docs/share.md has no such table any more")
	}
	rows := 0
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| |") {
			continue
		}
		rows++
		shown := strings.TrimSuffix(cells[2], " |")
		if shown == "-" && strings.HasPrefix(cells[1], "**missing:**") {
			continue
		}
		room, test, _ := strings.Cut(strings.Trim(shown, "`"), " ")
		if !isTest(t, room, test) {
			t.Errorf("%s: there is no test %s", strings.TrimPrefix(cells[0], "| "), shown)
		}
	}
	if rows != 22 {
		t.Errorf("the table has %d rows, want 22", rows)
	}
	for _, wrong := range []string{"TestNo", "TestScripts/no", "TestConformance/no"} {
		if isTest(t, "cmd/siteagent", wrong) || isTest(t, "internal/lrm/wasm", wrong) {
			t.Errorf("%s is found", wrong)
		}
	}
}

// isTest reports whether a room has a test. A part of TestScripts is a script, one of
// TestConformance a case of the suite.
func isTest(t *testing.T, room, test string) bool {
	t.Helper()
	name, part, _ := strings.Cut(test, "/")
	dir := filepath.Join(repositoryRoot, filepath.FromSlash(room))
	declared := `(?m)^func ` + regexp.QuoteMeta(name) + `\(t \*testing\.T\)`
	if !contains(t, dir, "*_test.go", declared) {
		return false
	}
	switch {
	case part == "":
		return true
	case name == "TestScripts":
		_, err := os.Stat(filepath.Join(dir, "testdata", "script", part+".txtar"))
		return err == nil
	case name == "TestConformance":
		suite := filepath.Join(repositoryRoot, "internal", "lrm", "lrmtest")
		return contains(t, suite, "*.go", `name: "`+regexp.QuoteMeta(part)+`"`)
	default:
		return false
	}
}

// contains reports whether a file of a directory matches.
func contains(t *testing.T, dir, files, pattern string) bool {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, files))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(pattern).Match(text) {
			return true
		}
	}
	return false
}
