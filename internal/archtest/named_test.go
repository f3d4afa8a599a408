package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist wants every test that a document names to exist: a bound counts when a test
// tries it.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	tests := make(map[string]bool)
	for _, s := range mustRead(t, repositoryRoot).sources {
		for _, decl := range s.syntax.Decls {
			if f, is := decl.(*ast.FuncDecl); is && s.test && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
	}
	documents, err := filepath.Glob(filepath.Join(repositoryRoot, "docs", "*.md"))
	if err != nil || len(documents) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	name := regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)")
	named := 0
	for _, file := range append(documents, filepath.Join(repositoryRoot, "SECURITY.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, match := range name.FindAllStringSubmatch(line, -1) {
				named++
				if !tests[match[1]] {
					t.Errorf("%s:%d: there is no test %s", file, i+1, match[1])
				}
			}
		}
	}
	if named == 0 {
		t.Error("no document names a test")
	}
}
