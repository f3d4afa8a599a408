// Package count takes the census of one Go package directory: how many files,
// lines and functions it has and which function is the longest. The guest program
// of the quickstart and its local run use the same code, so that their results
// can be compared byte for byte.
package count

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
)

// Census holds the counts of one directory, or of many together.
type Census struct {
	Package   string   `json:"package"`   // import path
	Files     int      `json:"files"`     // .go files directly in the directory, tests included
	Lines     int      `json:"lines"`     // of all files
	Functions int      `json:"functions"` // declared with a name: functions and methods
	Longest   Function `json:"longest"`   // the first of them in order of file and place
}

// Function is a declared function.
type Function struct {
	Name  string `json:"name"`  // "Copy", or with its receiver's type, "Reader.Read"
	File  string `json:"file"`  // base name
	Lines int    `json:"lines"` // from the word func to the closing brace, both included
}

// Directory takes the census of the .go files directly in dir. It does so as many
// times as rounds says (at least once) and fails if two rounds disagree.
func Directory(dir fs.FS, name string, rounds int) (Census, error) {
	first, err := once(dir, name)
	for range rounds - 1 {
		if err != nil {
			break
		}
		var again Census
		if again, err = once(dir, name); err == nil && again != first {
			err = fmt.Errorf("count %s: two rounds disagree: %+v and %+v", name, first, again)
		}
	}
	return first, err
}

func once(dir fs.FS, name string) (Census, error) {
	files, err := fs.Glob(dir, "*.go") // sorted by name
	if err != nil {
		return Census{}, fmt.Errorf("count %s: %w", name, err)
	}
	census := Census{Package: name}
	for _, file := range files {
		source, err := fs.ReadFile(dir, file)
		if err != nil {
			return Census{}, fmt.Errorf("count %s: %w", name, err)
		}
		if census, err = census.withFile(file, source); err != nil {
			return Census{}, fmt.Errorf("count %s: %w", name, err)
		}
	}
	return census, nil
}

func (c Census) withFile(file string, source []byte) (Census, error) {
	positions := token.NewFileSet()
	tree, err := parser.ParseFile(
		positions, file, source, parser.ParseComments|parser.SkipObjectResolution,
	)
	if err != nil {
		return c, fmt.Errorf("parse: %w", err)
	}
	c.Files++
	c.Lines += lines(source)
	for _, declaration := range tree.Decls {
		fn, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		c.Functions++
		// PositionFor ignores //line comments: what counts is this file.
		from := positions.PositionFor(fn.Pos(), false).Line
		to := positions.PositionFor(fn.End(), false).Line
		if long := to - from + 1; long > c.Longest.Lines {
			c.Longest = Function{Name: functionName(fn), File: path.Base(file), Lines: long}
		}
	}
	return c, nil
}

// lines counts a last line without a line feed too.
func lines(source []byte) int {
	n := bytes.Count(source, []byte{'\n'})
	if len(source) > 0 && source[len(source)-1] != '\n' {
		n++
	}
	return n
}

// functionName puts the receiver's type in front of a method's name.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.ParenExpr:
			receiver = t.X
		case *ast.IndexExpr: // a type with one parameter
			receiver = t.X
		case *ast.IndexListExpr: // with several
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// Merge sums the parts up under a new name. Of equally long functions the first
// part's wins; its file is then named with the package.
func Merge(name string, parts []Census) Census {
	sum := Census{Package: name}
	for _, part := range parts {
		sum.Files += part.Files
		sum.Lines += part.Lines
		sum.Functions += part.Functions
		if part.Longest.Lines > sum.Longest.Lines {
			sum.Longest = part.Longest
			sum.Longest.File = path.Join(part.Package, part.Longest.File)
		}
	}
	return sum
}

// JSON is the census as the guest writes it.
func (c Census) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write census of %s: %w", c.Package, err)
	}
	return append(text, '\n'), nil
}
