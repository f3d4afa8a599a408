package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// reached finds for each test which lines of a package it comes through in its own process,
// by a run of each one. A test that does not pass while its lines are counted, as one whose
// processes must not say a word more than they do, is left out: it meets all mutants.
func (l laboratory) reached(
	ctx context.Context, t *tests, pkg string,
) (map[string][]block, error) {
	program, err := l.build(ctx, t.pkg, "covered.test", nil, "-cover", "-coverpkg="+pkg)
	if err != nil {
		return nil, err
	}
	profile := filepath.Join(l.dir, "cover.out")
	by := make(map[string][]block)
	for _, test := range t.names {
		_, _, err := t.run(ctx, program, t.limit.wall, "-test.run="+anyOf([]string{test}),
			"-test.coverprofile="+profile)
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &exit):
			fmt.Printf("%s does not pass while its lines are counted: it meets all mutants\n", test)
			continue
		case err != nil:
			return nil, err
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
	some := false
	for _, test := range t.names {
		blocks, counted := t.reach[test]
		comes := slices.ContainsFunc(blocks, func(b block) bool {
			return b.file == filepath.Base(m.file) && b.from <= m.head && m.head <= b.to
		})
		if comes || !counted {
			names = append(names, test)
		}
		some = some || comes
	}
	if !some {
		return t.names
	}
	return names
}

// anyOf is a pattern of these tests' names, as -test.run wants it.
func anyOf(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }
