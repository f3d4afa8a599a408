package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// documents are the pages whose tables list the attacks.
func documents() []string { return []string{"docs/threats.md", "docs/protocol.md"} }

// shortSections are those that depend most on the machine and on the user: the others are tried
// by the same tests wherever they run.
func shortSections() []string {
	return []string{"A job against the machine that runs it", "Others on the same machine"}
}

// attack is a row of a table.
type attack struct {
	section string // the heading above it
	text    string // what is tried
	tests   []string
}

var (
	testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	heading  = regexp.MustCompile(`^#+ (.*)`)
)

// readAttacks reads the tables with a last column of tests. A row that names none but "the same"
// has those of the row before.
func readAttacks(files ...string) ([]attack, error) {
	var all []attack
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the attacks: %w", err)
		}
		found := attacksIn(string(text))
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no table of attacks", file)
		}
		all = append(all, found...)
	}
	return all, nil
}

func attacksIn(text string) []attack {
	var all []attack
	section, inTable := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if h := heading.FindStringSubmatch(line); h != nil {
			section = h[1]
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.TrimSpace(cells[len(cells)-1]) == "test":
			inTable = true
		case inTable && !strings.HasPrefix(line, "|-"):
			a := attack{section: section, text: strings.TrimSpace(cells[0])}
			last := cells[len(cells)-1]
			for _, name := range testName.FindAllStringSubmatch(last, -1) {
				a.tests = append(a.tests, name[1])
			}
			if strings.Contains(last, "the same") && len(all) > 0 {
				a.tests = append(a.tests, all[len(all)-1].tests...)
			}
			all = append(all, a)
		}
	}
	return all
}
