package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// checker tells whether a mutant compiles, without compiling it.
type checker struct {
	path   string // of the package
	fset   *token.FileSet
	files  map[string]*ast.File
	export map[string]string // files that tell what other packages export
	conf   types.Config
}

func newChecker(ctx context.Context, pkg string, files []string) (*checker, error) {
	out, err := exec.CommandContext( //nolint:gosec // G204: a package that the user names
		ctx, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", pkg,
	).Output()
	if err != nil {
		return nil, fmt.Errorf("list what it imports: %w", err)
	}
	c := &checker{
		fset: token.NewFileSet(), files: make(map[string]*ast.File), export: make(map[string]string),
	}
	for line := range strings.Lines(string(out)) { // the package itself comes last
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		c.path, c.export[path] = path, file
	}
	c.conf.Importer = importer.ForCompiler(c.fset, "gc", c.open)
	for _, name := range files {
		if c.files[name], err = parser.ParseFile(
			c.fset, name, nil, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	_, err = c.conf.Check(c.path, c.fset, slices.Collect(maps.Values(c.files)), nil)
	return c, err
}

// compiles tells whether the package does with another text of one of its files.
func (c *checker) compiles(name string, text []byte) bool {
	tree, err := parser.ParseFile(c.fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := []*ast.File{tree}
	for other, same := range c.files {
		if other != name {
			files = append(files, same)
		}
	}
	_, err = c.conf.Check(c.path, c.fset, files, nil)
	return err == nil
}

// open gives what a package exports.
func (c *checker) open(path string) (io.ReadCloser, error) {
	file := c.export[path]
	if file == "" {
		return nil, fmt.Errorf("nothing is known of %s", path)
	}
	return os.Open(filepath.Clean(file))
}
