package scenario

import (
	"embed"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"strings"
)

// documents are the files whose comments say what the words mean.
//
//go:embed doc.go trouble.go expect.go
var documents embed.FS

// Words explains the format to people who have no source at hand: its statements, what else can
// go wrong with a site, the ways of a liar, and what can be expected. It is the text of this
// package's own comments.
func Words() (string, error) {
	var parts []string
	for _, from := range []struct{ heading, file, function string }{
		{"Lines", "doc.go", ""},
		{"Troubles", "trouble.go", "Troubles"},
		{"Lies", "trouble.go", "Lies"},
		{"Measures", "expect.go", "Measures"},
	} {
		text, err := commentOf(from.file, from.function)
		if err != nil {
			return "", err
		}
		parts = append(parts, from.heading+"\n\n"+strings.TrimSpace(text))
	}
	return strings.Join(parts, "\n\n") + "\n", nil
}

// commentOf is the comment of a function, or of the package without its first paragraph, which is
// about the package, and its list of files.
func commentOf(file, function string) (string, error) {
	text, err := documents.ReadFile(file)
	if err != nil {
		return "", err
	}
	tree, err := goparser.ParseFile(token.NewFileSet(), file, text, goparser.ParseComments)
	if err != nil {
		return "", err
	}
	if function == "" {
		_, rest, _ := strings.Cut(tree.Doc.Text(), "\n\n")
		lines, _, _ := strings.Cut(rest, "\n\tscenario.go ")
		return lines, nil
	}
	for _, d := range tree.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Name.Name == function {
			return f.Doc.Text(), nil
		}
	}
	return "", fmt.Errorf("%s has no function %s", file, function)
}
