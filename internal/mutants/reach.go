package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// block is a run of lines of a file that a test came through.
type block struct {
	file     string // without its directory
	from, to int
}

// reached finds for each test of a package which lines it comes through in its own process,
// by a run of each one.
func (l laboratory) reached(ctx context.Context, t *tests) (map[string][]block, error) {
	program, err := l.build(ctx, t.pkg, "covered.test", nil, "-cover")
	if err != nil {
		return nil, err
	}
	profile := filepath.Join(l.dir, "cover.out")
	by := make(map[string][]block)
	for _, test := range t.names {
		out, _, err := t.run(ctx, program, "-test.run="+anyOf([]string{test}),
			"-test.coverprofile="+profile)
		if err != nil {
			return nil, fmt.Errorf("%s fails without any change, alone: %w\n%s", test, err, out)
		}
		text, err := os.ReadFile(filepath.Clean(profile))
		if err != nil {
			return nil, err
		}
		by[test] = blocksOf(string(text))
	}
	return by, nil
}

// blocksOf reads what a run came through from its profile, as the go command writes them.
func blocksOf(profile string) []block {
	var all []block
	for line := range strings.Lines(profile) {
		name, rest, found := strings.Cut(line, ".go:")
		var b block
		var fromColumn, toColumn, statements, times int
		_, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d",
			&b.from, &fromColumn, &b.to, &toColumn, &statements, &times)
		if found && err == nil && times > 0 {
			b.file = path.Base(name) + ".go"
			all = append(all, b)
		}
	}
	return all
}

// reaching are the tests that come through a mutant's line; all of them where none is known
// to, as of code in a process that a test starts.
func (t *tests) reaching(m mutant) []string {
	var names []string
	for _, test := range t.names {
		if slices.ContainsFunc(t.reach[test], func(b block) bool {
			return b.file == filepath.Base(m.file) && b.from <= m.head && m.head <= b.to
		}) {
			names = append(names, test)
		}
	}
	if len(names) == 0 {
		return t.names
	}
	return names
}

// anyOf is a pattern of these tests' names, as -test.run wants it.
func anyOf(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }
