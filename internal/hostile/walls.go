package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// wallsFile lists the walls that can be removed.
const wallsFile = "internal/hostile/testdata/walls.txt"

// wall is a safeguard, and the edit that removes it.
type wall struct {
	name     string
	file     string
	from, to string // a text that is in the file once, and the one in its place
	test     string // that tries the attack which the wall holds
}

// readWalls reads paragraphs of five lines: the name, the file, the text, the one in its place,
// and the test. Lines that begin with # are for people.
func readWalls(text string) ([]wall, error) {
	var walls []wall
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		var lines []string
		for line := range strings.Lines(paragraph) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		const fields = 5
		switch len(lines) {
		case 0:
		case fields:
			walls = append(walls, wall{lines[0], lines[1], lines[2], lines[3], lines[4]})
		default:
			return nil, fmt.Errorf("%s: want paragraphs of %d lines, have %q",
				wallsFile, fields, lines)
		}
	}
	return walls, nil
}

// withoutWalls removes a wall, or each in turn, and wants its attack to break through.
func (l lab) withoutWalls(ctx context.Context, name string) error {
	text, err := os.ReadFile(wallsFile)
	if err != nil {
		return fmt.Errorf("read the walls: %w", err)
	}
	walls, err := readWalls(string(text))
	if err != nil {
		return err
	}
	var names []string
	removed, c := 0, count{}
	for _, w := range walls {
		names = append(names, w.name)
		if name != "all" && name != w.name {
			continue
		}
		removed++
		one, err := l.without(ctx, w)
		if err != nil {
			return err
		}
		c.held, c.broke, c.untried = c.held+one.held, c.broke+one.broke, c.untried+one.untried
	}
	if removed == 0 {
		return fmt.Errorf("no wall is called %s; there are %s", name, strings.Join(names, ", "))
	}
	fmt.Fprintf(l.out, "without their walls: %s\n", c)
	if c.held > 0 {
		return errHeld
	}
	return nil
}

// without tries the attack that a wall holds, without it.
func (l lab) without(ctx context.Context, w wall) (count, error) {
	dir, err := os.MkdirTemp("", "hostile-wall-")
	if err != nil {
		return count{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // made a line above
	overlay, err := w.removed(dir)
	if err != nil {
		return count{}, err
	}
	return l.try(ctx, []attack{{
		section: "without " + w.name, text: w.file + ": " + w.from, tests: []string{w.test},
	}}, []string{"-overlay", overlay})
}

// removed writes the file without the wall into the directory, and what tells the go command to
// take it in the place of the real one, which is left alone.
func (w wall) removed(dir string) (overlay string, err error) {
	text, err := os.ReadFile(w.file)
	if err != nil {
		return "", fmt.Errorf("remove the wall %s: %w", w.name, err)
	}
	if n := strings.Count(string(text), w.from); n != 1 {
		return "", fmt.Errorf("remove the wall %s: %q is %d times in %s, want once; "+
			"change %s with it", w.name, w.from, n, w.file, wallsFile)
	}
	whole, err := filepath.Abs(w.file)
	if err != nil {
		return "", err
	}
	edited := filepath.Join(dir, "edited.go")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{whole: edited}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	//nolint:gosec // in a directory that the caller has made
	return overlay, errors.Join(
		os.WriteFile(edited, []byte(strings.Replace(string(text), w.from, w.to, 1)), 0o600),
		os.WriteFile(overlay, replaced, 0o600),
	)
}
