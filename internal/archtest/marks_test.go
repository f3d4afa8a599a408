package archtest

import (
	"regexp"
	"strings"
	"testing"
)

var markPattern = regexp.MustCompile(`want "([^"]*)"`)

// mark is a promise in test data that a line is refused with these words.
type mark struct {
	file string
	line int
	text string
}

// compareWithMarks wants a finding for every mark and a mark for every finding.
func compareWithMarks(t *testing.T, repo *repository, found []finding) {
	t.Helper()
	marks := readMarks(repo)
	if len(marks) == 0 {
		t.Fatal("the test data marks nothing")
	}
	used := make([]bool, len(found))
	for _, m := range marks {
		if !takeMatch(m, found, used) {
			t.Errorf("%s:%d: not refused, want %q", m.file, m.line, m.text)
		}
	}
	for i, f := range found {
		if !used[i] {
			t.Errorf("refused without reason: %s", f)
		}
	}
}

func takeMatch(m mark, found []finding, used []bool) bool {
	for i, f := range found {
		if !used[i] && f.file == m.file && f.line == m.line && strings.Contains(f.text, m.text) {
			used[i] = true
			return true
		}
	}
	return false
}

// readMarks finds the comments `want "words"`; several may stand in a line.
func readMarks(repo *repository) []mark {
	var marks []mark
	for _, s := range repo.sources {
		for _, group := range s.syntax.Comments {
			for _, comment := range group.List {
				for _, match := range markPattern.FindAllStringSubmatch(comment.Text, -1) {
					marks = append(marks, mark{s.path, repo.line(comment.Pos()), match[1]})
				}
			}
		}
	}
	return marks
}
