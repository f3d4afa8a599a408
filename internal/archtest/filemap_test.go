package archtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mapFrom is the number of files from which on a package needs a map of them.
const mapFrom = 8

// unmapped are packages whose map is still to be written, and why. The list only gets
// shorter.
func unmapped() map[string]string {
	return map[string]string{
		"pkg/broker": "it is being made anew",
	}
}

// TestFileMaps wants a line for each file in the doc of every package of more than
// eight, because a stranger looks there first.
func TestFileMaps(t *testing.T) {
	var missing []finding
	waits := unmapped()
	for dir, found := range checkFileMaps(mustRead(t, repositoryRoot)) {
		if _, later := waits[dir]; !later {
			missing = append(missing, found...)
		}
		delete(waits, dir)
	}
	refuse(t, missing)
	for dir := range waits {
		t.Logf("%s needs no exception any more", dir)
	}
}

func TestFileMapsRefuse(t *testing.T) {
	repo := mustRead(t, "testdata/filemap")
	var found []finding
	for _, f := range checkFileMaps(repo) {
		found = append(found, f...)
	}
	compareWithMarks(t, repo, found)
}

// checkFileMaps finds, by package, files that the map does not name and names of files
// that are not there.
func checkFileMaps(repo *repository) map[string][]finding {
	all := map[string][]finding{}
	for dir, files := range repo.packages() {
		if !within(dir, "pkg") && !within(dir, "internal") && !within(dir, "cmd") {
			continue
		}
		files = slices.DeleteFunc(slices.Clone(files), func(s source) bool { return s.test })
		if len(files) <= mapFrom {
			continue
		}
		if found := checkFileMap(repo, dir, files); len(found) > 0 {
			all[dir] = found
		}
	}
	return all
}

func checkFileMap(repo *repository, dir string, files []source) []finding {
	var found []finding
	listed, doc := listedFiles(files)
	line := repo.line(doc.syntax.Package)
	for _, s := range files {
		base := path.Base(s.path)
		if s.generated || base == "doc.go" {
			continue
		}
		if !slices.ContainsFunc(listed, func(name string) bool { return meant(name, base) }) {
			found = append(found, finding{doc.path, line, fmt.Sprintf(
				"package %s has %d files and its doc no line for %s", dir, len(files), base)})
		}
	}
	for _, name := range listed {
		if !slices.ContainsFunc(files, func(s source) bool { return meant(name, path.Base(s.path)) }) {
			found = append(found, finding{doc.path, line, fmt.Sprintf(
				"the doc of package %s has a line for %s, which is not there", dir, name)})
		}
	}
	return found
}

// listedFiles are the names with which indented lines of the package doc begin, and the
// file of that doc: "tree.go", or "tree_*.go" for one file for each system.
func listedFiles(files []source) (names []string, doc source) {
	doc = files[0]
	for _, s := range files {
		if s.syntax.Doc == nil || s.generated {
			continue
		}
		doc = s
		for _, match := range mapLine.FindAllStringSubmatch(s.syntax.Doc.Text(), -1) {
			for name := range strings.SplitSeq(match[1], ", ") {
				names = append(names, name)
			}
		}
	}
	return names, doc
}

var mapLine = regexp.MustCompile(`(?m)^\t([a-z0-9_*]+\.go(?:, [a-z0-9_*]+\.go)*)(?:\s|$)`)

func meant(pattern, base string) bool {
	matched, err := path.Match(pattern, base)
	return err == nil && matched
}
