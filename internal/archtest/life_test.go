package archtest

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLifeOfAJob keeps the files true that ARCHITECTURE.md names for each step of a job.
func TestLifeOfAJob(t *testing.T) {
	const file = "ARCHITECTURE.md"
	found := checkLife(file, readText(t, repositoryRoot, file), func(name string) bool {
		for _, dir := range []string{"pkg/broker", "pkg/site"} {
			matches, err := filepath.Glob(filepath.Join(repositoryRoot, dir, name))
			if err == nil && len(matches) > 0 {
				return true
			}
		}
		return false
	})
	refuse(t, found)
}

func TestLifeOfAJobRefuses(t *testing.T) {
	text := "# A\nghost.go\n## Life of a job\n1. it is born (`born.go`)\n" +
		"2. Note: place_*.go, ghost.go\n## Then\nghost.go\n"
	found := checkLife("A.md", text, func(name string) bool { return name != "ghost.go" })
	var got []string
	for _, f := range found {
		got = append(got, f.String())
	}
	if want := []string{"A.md:5: neither machine has a file ghost.go"}; !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
	if len(checkLife("A.md", "# No life\n", nil)) != 1 {
		t.Error("a page without the section passed")
	}
}

var goFilePattern = regexp.MustCompile(`[a-z_*]+\.go\b`)

// checkLife finds the files that the section names and no machine has.
func checkLife(file, text string, exists func(name string) bool) []finding {
	var found []finding
	inside, named := false, 0
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "## ") {
			inside = line == "## Life of a job"
		}
		if !inside {
			continue
		}
		for _, name := range goFilePattern.FindAllString(line, -1) {
			if named++; !exists(name) {
				found = append(found, finding{file, i + 1, "neither machine has a file " + name})
			}
		}
	}
	if named == 0 {
		found = append(found, finding{file, 1, "no section tells the life of a job with its files"})
	}
	return found
}
