package archtest

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rootEntry stands in the tree for the package at the repository's root.
const rootEntry = "mesh.go"

// TestTree keeps the tree in ARCHITECTURE.md true.
func TestTree(t *testing.T) {
	const file = "ARCHITECTURE.md"
	text, err := os.ReadFile(filepath.Join(repositoryRoot, file))
	if err != nil {
		t.Fatal(err)
	}
	existing := slices.Sorted(maps.Keys(mustRead(t, repositoryRoot).packages()))
	refuse(t, checkTree(file, string(text), existing, declaredRooms()))
}

func TestTreeRefuses(t *testing.T) {
	text := strings.Join([]string{
		"# The house", "## Tree", "```",
		"pkg/            thinks",
		"  grid/         nouns",
		"  ghost/        a room of no table",
		"internal/",
		"  lrm/",
		"    wasm/ fake/   two in a line",
		"docs/           papers.md, adr/",
		"```", "  later/",
	}, "\n")
	existing := []string{".", "internal/lrm/fake", "internal/store", "pkg/grid", "pkg/index"}
	var got []string
	for _, f := range sorted(checkTree("A.md", text, existing, declaredRooms())) {
		got = append(got, f.String())
	}
	want := []string{
		"A.md:2: the tree does not show package .",
		"A.md:2: the tree does not show package internal/store",
		"A.md:2: the tree does not show package pkg/index",
		"A.md:6: the tree shows pkg/ghost, which is not in the table of rooms",
	}
	if !slices.Equal(got, want) {
		t.Errorf("findings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// treeEntry is one directory that the tree shows.
type treeEntry struct {
	dir  string
	line int
}

func checkTree(file, text string, existing []string, table map[string]room) []finding {
	entries, heading := parseTree(text)
	shown := map[string]bool{}
	var found []finding
	for _, e := range entries {
		shown[e.dir] = true
		inHouse := within(e.dir, "pkg") || within(e.dir, "internal") || within(e.dir, "cmd")
		_, declared := table[e.dir]
		if inHouse && !declared && len(roomsBelow(table, e.dir)) == 0 {
			found = append(found, finding{
				file, e.line, "the tree shows " + e.dir + ", which is not in the table of rooms",
			})
		}
	}
	for _, dir := range existing {
		if !shown[dir] && !shown[exampleOf(dir)] { // an example is shown as one
			found = append(found, finding{file, heading, "the tree does not show package " + dir})
		}
	}
	return found
}

// parseTree reads the fenced block under the heading "## Tree": two spaces for
// each level, names of directories end with a slash, several may stand in front
// of the description.
func parseTree(text string) (entries []treeEntry, heading int) {
	var parents []string
	inside := false
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case line == "## Tree":
			heading = n
		case heading == 0:
		case strings.HasPrefix(line, "```") && inside:
			return entries, heading
		case strings.HasPrefix(line, "```"):
			inside = true
		case inside:
			var found []treeEntry
			found, parents = parseTreeLine(line, n, parents)
			entries = append(entries, found...)
		}
	}
	return entries, heading
}

func parseTreeLine(line string, n int, parents []string) (entries []treeEntry, above []string) {
	rest := strings.TrimLeft(line, " ")
	depth := min((len(line)-len(rest))/2, len(parents))
	above = parents[:depth:depth]
	for word := range strings.FieldsSeq(rest) {
		if word == rootEntry {
			entries = append(entries, treeEntry{".", n})
		}
		name, isDir := strings.CutSuffix(word, "/")
		if !isDir {
			break
		}
		entries = append(entries, treeEntry{path.Join(append(slices.Clone(above), name)...), n})
	}
	if len(entries) > 0 {
		above = append(above, path.Base(entries[0].dir))
	}
	return entries, above
}

// TestPapers keeps docs/papers.md true: each symbol and test it names exists,
// unless its whole package is still to come.
func TestPapers(t *testing.T) {
	const file = "docs/papers.md"
	text, err := os.ReadFile(filepath.Join(repositoryRoot, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	refuse(t, checkSymbols(file, string(text), mustRead(t, repositoryRoot)))
}

func TestPapersRefuse(t *testing.T) {
	text := "| eq. 1 | `pkg/grid.Documented`, `pkg/grid.Site.Grow` |\n" +
		"| eq. 2 | `pkg/grid.Vanished` and `pkg/grid.Site.Vanish` |\n" +
		"| eq. 3 | `pkg/later.Anything`, `pkg/index.Helper`, `pkg/grid.Small`, `pkg/grid.ErrBare` |\n"
	found := sorted(checkSymbols("P.md", text, mustRead(t, "testdata/docs")))
	var got []string
	for _, f := range found {
		got = append(got, f.String())
	}
	want := []string{
		"P.md:2: pkg/grid has no Site.Vanish",
		"P.md:2: pkg/grid has no Vanished",
	}
	if !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
}

func checkSymbols(file, text string, repo *repository) []finding {
	packages := repo.packages()
	var found []finding
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		for _, match := range symbolPattern().FindAllStringSubmatch(lines.Text(), -1) {
			dir, symbol := match[1], match[2]
			files := packages[dir]
			if len(files) > 0 && !declares(files, symbol) {
				found = append(found, finding{file, n, fmt.Sprintf("%s has no %s", dir, symbol)})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	return found
}
