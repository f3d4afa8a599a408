package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// TestPackageDocs wants exactly one package doc for each package.
func TestPackageDocs(t *testing.T) {
	refuse(t, checkPackageDocs(mustRead(t, repositoryRoot)))
}

// TestExportedDocs wants a doc comment on every exported name in pkg/.
func TestExportedDocs(t *testing.T) {
	refuse(t, checkExportedDocs(mustRead(t, repositoryRoot)))
}

func TestDocsRefuse(t *testing.T) {
	repo := mustRead(t, "testdata/docs")
	compareWithMarks(t, repo, append(checkPackageDocs(repo), checkExportedDocs(repo)...))
}

func checkPackageDocs(repo *repository) []finding {
	var found []finding
	for dir, files := range repo.packages() {
		first := files[0]
		documented := 0
		for _, s := range documentingFiles(files) {
			if s.syntax.Doc.Text() == "" {
				continue
			}
			documented++
			if documented > 1 {
				found = append(found, finding{
					s.path, repo.line(s.syntax.Package),
					"package " + dir + " has a second package doc; keep one, in doc.go or the main file",
				})
			}
		}
		if documented == 0 {
			found = append(found, finding{
				first.path, repo.line(first.syntax.Package), "package " + dir + " has no package doc",
			})
		}
	}
	return found
}

// documentingFiles are those whose comment counts: what people wrote and no
// tests, unless there is nothing else. Generators write comments of their own.
func documentingFiles(files []source) []source {
	for _, counts := range []func(source) bool{
		func(s source) bool { return !s.test && !s.generated },
		func(s source) bool { return !s.test },
	} {
		chosen := slices.DeleteFunc(slices.Clone(files), func(s source) bool { return !counts(s) })
		if len(chosen) > 0 {
			return chosen
		}
	}
	return files
}

func checkExportedDocs(repo *repository) []finding {
	var found []finding
	for _, s := range repo.sources {
		if s.test || s.generated || !within(s.dir, "pkg") {
			continue
		}
		for _, name := range undocumented(s.syntax) {
			found = append(found, finding{
				s.path, repo.line(name.Pos()),
				fmt.Sprintf("exported %s has no doc comment", name.Name),
			})
		}
	}
	return found
}

func undocumented(file *ast.File) []*ast.Ident {
	var names []*ast.Ident
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) && d.Doc.Text() == "" {
				names = append(names, d.Name)
			}
		case *ast.GenDecl:
			names = append(names, undocumentedSpecs(d)...)
		}
	}
	return names
}

// undocumentedSpecs accepts a group's comment for constants and variables, and
// for a type that stands alone.
func undocumentedSpecs(d *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	group := d.Doc.Text() != ""
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			alone := d.Lparen == token.NoPos
			if s.Name.IsExported() && s.Doc.Text() == "" && (!group || !alone) {
				names = append(names, s.Name)
			}
		case *ast.ValueSpec:
			if group || s.Doc.Text() != "" || s.Comment.Text() != "" {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// receiverExported is true for functions, and for methods of exported types.
func receiverExported(d *ast.FuncDecl) bool {
	return d.Recv == nil || ast.IsExported(receiverName(d))
}
