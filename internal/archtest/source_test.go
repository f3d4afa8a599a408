package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// repositoryRoot is seen from this package's directory, where its tests run.
const repositoryRoot = "../.."

// finding is one breach of a rule.
type finding struct {
	file string // slash-separated, from the repository's root
	line int
	text string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text) }

// source is one parsed Go file, whatever its build constraints.
type source struct {
	path      string // slash-separated, from the root
	dir       string // "." for the root
	test      bool
	generated bool
	syntax    *ast.File
}

// repository is the project's own source: no test data, no nested modules.
type repository struct {
	fset    *token.FileSet
	sources []source
}

func readRepository(root string) (*repository, error) {
	repo := &repository{fset: token.NewFileSet()}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipForeign(root, file, entry.Name())
		}
		if filepath.Ext(file) != ".go" {
			return nil
		}
		return repo.add(root, file)
	})
	return repo, err
}

// skipForeign leaves out what the go command leaves out, and nested modules.
func skipForeign(root, dir, name string) error {
	if dir == root {
		return nil
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" ||
		name == "node_modules" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func (r *repository) add(root, file string) error {
	syntax, err := parser.ParseFile(
		r.fset, file, nil, parser.ParseComments|parser.SkipObjectResolution,
	)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	r.sources = append(r.sources, source{
		path: rel, dir: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"),
		generated: ast.IsGenerated(syntax), syntax: syntax,
	})
	return nil
}

func (r *repository) line(pos token.Pos) int { return r.fset.Position(pos).Line }

// packages groups the files by directory.
func (r *repository) packages() map[string][]source {
	dirs := map[string][]source{}
	for _, s := range r.sources {
		dirs[s.dir] = append(dirs[s.dir], s)
	}
	return dirs
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // cannot happen: the parser has checked it
	}
	return p
}

func mustRead(t *testing.T, root string) *repository {
	t.Helper()
	repo, err := readRepository(root)
	if err != nil {
		t.Fatalf("reading the source below %s: %v", root, err)
	}
	if len(repo.sources) == 0 {
		t.Fatalf("no Go source below %s", root)
	}
	return repo
}

// refuse fails the test with every finding on a line of its own.
func refuse(t *testing.T, found []finding) {
	t.Helper()
	for _, f := range sorted(found) {
		t.Error(f)
	}
}

func sorted(found []finding) []finding {
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(
			cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text),
		)
	})
	return found
}
