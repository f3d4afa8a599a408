package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
)

// place is a package with tests.
type place struct {
	dir string
	tag string // a build tag without which its tests are not there; empty: none
}

var (
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)
	ownTag   = regexp.MustCompile(`(?m)^//go:build (e2e)$`)
)

// findTests maps the names of tests to the packages that have them. Several may have one of a
// name: all of them try the attack.
func findTests(root string) (map[string][]place, error) {
	found := make(map[string][]place)
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || len(name) > 1 && name[0] == '.') {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		at := place{dir: path.Dir(file)}
		if tag := ownTag.FindSubmatch(text); tag != nil {
			at.tag = string(tag[1])
		}
		for _, name := range testFunc.FindAllSubmatch(text, -1) {
			found[string(name[1])] = append(found[string(name[1])], at)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the tests: %w", err)
	}
	return found, nil
}
