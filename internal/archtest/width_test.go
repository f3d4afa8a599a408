package archtest

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the widest a line may be; a tab counts as tabColumns.
const (
	columns    = 100
	tabColumns = 4
)

// TestWidth refuses wide lines in Markdown. Of each directory's Go the ratchet
// allows as many as it had.
func TestWidth(t *testing.T) {
	var found []finding
	for _, file := range markdownFiles(t, repositoryRoot) {
		found = append(found, checkMarkdownWidth(file, readText(t, repositoryRoot, file))...)
	}
	refuse(t, found)
	hold(t, "widths", checkGoWidth(t, repositoryRoot, mustRead(t, repositoryRoot)))
}

func TestWidthRefuses(t *testing.T) {
	wide := strings.Repeat("wide ", 25)
	text := strings.Join([]string{
		"# A page", wide, "| " + wide + "|", "see https://example.org/" + wide,
		"```console", wide, "```", "```go", wide, "```", strings.Repeat("ä", columns),
	}, "\n")
	var lines []int
	for _, f := range checkMarkdownWidth("A.md", text) {
		lines = append(lines, f.line)
	}
	if want := []int{2, 9}; !slices.Equal(lines, want) {
		t.Errorf("wide lines %v, want %v", lines, want)
	}
	const root = "testdata/width"
	repo := mustRead(t, root)
	compareWithMarks(t, repo, checkGoWidth(t, root, repo))
}

// checkMarkdownWidth lets tables, addresses and printed output be as wide as they are.
func checkMarkdownWidth(file, text string) []finding {
	lines := strings.Split(text, "\n")
	output := outputLines(lines)
	var found []finding
	for i, line := range lines {
		if output[i] || strings.HasPrefix(strings.TrimSpace(line), "|") {
			continue
		}
		found = append(found, checkLine(file, i+1, line)...)
	}
	return found
}

func checkGoWidth(t *testing.T, root string, repo *repository) []finding {
	t.Helper()
	var found []finding
	for _, s := range repo.sources {
		if s.generated {
			continue
		}
		for i, line := range strings.Split(readText(t, root, s.path), "\n") {
			found = append(found, checkLine(s.path, i+1, line)...)
		}
	}
	return found
}

func checkLine(file string, n int, line string) []finding {
	width := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
	if width <= columns || strings.Contains(line, "://") {
		return nil
	}
	return []finding{{file, n, fmt.Sprintf("%d columns, want at most %d", width, columns)}}
}

// ratchetFile holds how many findings each directory still has: a number may only
// fall, and a directory that is not named has none.
const ratchetFile = "testdata/ratchet.txt"

// hold fails when a directory has more findings of a kind than the ratchet allows.
// With -update it writes the present numbers down instead.
func hold(t *testing.T, kind string, found []finding) {
	t.Helper()
	allowed := readRatchet(t)
	dirs := map[string][]finding{}
	for _, f := range found {
		dir := filepath.ToSlash(filepath.Dir(f.file))
		dirs[dir] = append(dirs[dir], f)
	}
	if *update {
		writeRatchet(t, kind, allowed, dirs)
		return
	}
	for dir, all := range dirs {
		if limit := allowed[kind+" "+dir]; len(all) > limit {
			t.Errorf("%s: %d %s, at most %d allowed:", dir, len(all), kind, limit)
			refuse(t, all)
		}
	}
}

// readRatchet returns numbers by kind and directory.
func readRatchet(t *testing.T) map[string]int {
	t.Helper()
	allowed := map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(readText(t, ".", ratchetFile)))
	for lines.Scan() {
		var kind, dir string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &kind, &dir, &n); err != nil {
			t.Fatalf("%s: %q: %v", ratchetFile, lines.Text(), err)
		}
		allowed[kind+" "+dir] = n
	}
	return allowed
}

func writeRatchet(t *testing.T, kind string, allowed map[string]int, dirs map[string][]finding) {
	t.Helper()
	for key := range allowed {
		if strings.HasPrefix(key, kind+" ") {
			delete(allowed, key)
		}
	}
	for dir, all := range dirs {
		allowed[kind+" "+dir] = len(all)
	}
	lines := make([]string, 0, len(allowed))
	for key, n := range allowed {
		lines = append(lines, fmt.Sprintf("%s %d\n", key, n))
	}
	slices.Sort(lines)
	if err := os.WriteFile(ratchetFile, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
