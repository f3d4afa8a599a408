package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestArrows is the rule of the house, first half: who may import whom.
func TestArrows(t *testing.T) {
	found, err := checkArrows(mustRead(t, repositoryRoot), declaredRooms())
	if err != nil {
		t.Fatal(err)
	}
	refuse(t, found)
}

// TestTableOfRooms checks the table itself: its words are rooms, pkg/ never
// looks into the shell, and every arrow in pkg/ points to a lower level.
func TestTableOfRooms(t *testing.T) {
	table := declaredRooms()
	for dir, r := range table {
		dirs, err := allowed(table, r.imports+" "+r.tests)
		if err != nil {
			t.Errorf("room %s: %v", dir, err)
		}
		if !within(dir, "pkg") {
			continue
		}
		for _, target := range dirs {
			if !within(target, "pkg") || table[target].level >= r.level {
				t.Errorf("room %s (level %d) may import %s, which does not stand lower", dir, r.level, target)
			}
		}
	}
}

// TestArrowsRefuse runs the same check on a repository where each marked import
// is wrong.
func TestArrowsRefuse(t *testing.T) {
	repo := mustRead(t, "testdata/arrows")
	found, err := checkArrows(repo, declaredRooms())
	if err != nil {
		t.Fatal(err)
	}
	compareWithMarks(t, repo, found)
}

func checkArrows(repo *repository, table map[string]room) ([]finding, error) {
	var found []finding
	undeclared := map[string]bool{}
	for _, s := range repo.sources {
		r, ok := findRoom(table, s.dir)
		if !ok {
			if !undeclared[s.dir] {
				undeclared[s.dir] = true
				found = append(found, finding{s.path, repo.line(s.syntax.Package), "package " + s.dir +
					" is not in the table of rooms (internal/archtest/rooms_test.go); a new room needs an ADR"})
			}
			continue
		}
		rooms, err := openRooms(table, r, s)
		if err != nil {
			return nil, err
		}
		for _, spec := range s.syntax.Imports {
			if text := judgeImport(s, rooms, importPath(spec)); text != "" {
				found = append(found, finding{s.path, repo.line(spec.Pos()), text})
			}
		}
	}
	return found, nil
}

// openRooms lists what a file may import. Tests of the shell may use every room
// of pkg/; tests in pkg/ keep to the arrows of what they test.
func openRooms(table map[string]room, r room, s source) ([]string, error) {
	words := r.imports
	if s.test {
		words += " " + r.tests
		if !within(s.dir, "pkg") {
			words += " " + allPkg(table)
		}
	}
	rooms, err := allowed(table, words)
	if err != nil {
		return nil, fmt.Errorf("room %s: %w", s.dir, err)
	}
	// No other package may take the private door to the wire format.
	if s.dir != "pkg/protocol" {
		rooms = slices.DeleteFunc(rooms, func(dir string) bool { return dir == "pkg/protocol/wirepb" })
	}
	return rooms, nil
}

// judgeImport is empty if the import is fine, else what is wrong with it.
func judgeImport(s source, rooms []string, imported string) string {
	switch {
	case within(imported, modulePath):
		target := strings.TrimPrefix(strings.TrimPrefix(imported, modulePath), "/")
		return judgeProject(s, rooms, path.Clean(target))
	case isStandard(imported):
		return ""
	default:
		return judgeThirdParty(s, imported)
	}
}

func judgeProject(s source, rooms []string, target string) string {
	ownTest := s.test && target == s.dir
	ownExample := exampleOf(target) != "" && exampleOf(target) == exampleOf(s.dir)
	if ownTest || ownExample || slices.Contains(rooms, target) {
		return ""
	}
	return s.dir + " may not import " + target
}

func judgeThirdParty(s source, imported string) string {
	for _, lib := range testLibraries() {
		if within(imported, lib) && !s.test && !slices.Contains(testRooms(), s.dir) {
			return imported + " is for tests only"
		}
		if within(imported, lib) {
			return ""
		}
	}
	for _, c := range confinements() {
		if !within(imported, c.prefix) {
			continue
		}
		if c.tests && s.test && !within(s.dir, "pkg") {
			return ""
		}
		for dir := range strings.FieldsSeq(c.rooms) {
			if within(s.dir, dir) {
				return ""
			}
		}
		return imported + " is confined to " + strings.Join(strings.Fields(c.rooms), " and ")
	}
	if within(s.dir, "pkg") {
		return "pkg/ takes no third-party code but what the table of confinements names: " + imported
	}
	return ""
}

// isStandard reports whether the path is the standard library's: its first
// element has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}
