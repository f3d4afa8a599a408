package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change of one file.
type mutant struct {
	file     string // path
	in       string // the function, or what else is declared, that has the line
	line     int
	head     int    // line of the switch whose case it stands in; else line
	from, to int    // bytes of the file that are replaced
	body     body   // of the function around them
	with     string // by what
	kind     string
	before   string // the line as it was, without space around it
	after    string // as it becomes; the first line of what is replaced
	nth      int    // of those in the function that read alike, from 1
}

// body says where the text of a function is: the bytes between its braces.
type body struct {
	from, to int
	returns  bool // the function has results
	alone    bool // its mutants need a program each: it has labels, or is no function's
}

// String is the mutant as it stands in lists; it does not name the line's number, which
// other changes move, but it numbers the lines of a function that read alike.
func (m mutant) String() string {
	in := m.in
	if m.nth > 1 {
		in = fmt.Sprintf("%s(%d)", m.in, m.nth)
	}
	return fmt.Sprintf("%s %s: `%s` -> `%s`", filepath.ToSlash(m.file), in, m.before, m.after)
}

// mutantsOf lists all mutants of a package's own files, in the order of the text. Tests,
// generated files and those of other systems are left out by the caller, which names the
// files.
func mutantsOf(files []string) ([]mutant, error) {
	var all []mutant
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(tree) {
			continue
		}
		s := &surgeon{fset: fset, name: name, text: text}
		for _, d := range tree.Decls {
			s.in, s.body = "var", body{alone: true}
			if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
				s.in, s.body = f.Name.Name, s.bodyOf(f)
			}
			ast.Inspect(d, s.visit)
		}
		all = append(all, s.found...)
	}
	slices.SortFunc(all, func(a, b mutant) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		if c := a.from - b.from; c != 0 {
			return c
		}
		return strings.Compare(a.with, b.with)
	})
	alike := make(map[string]int)
	for i, m := range all {
		alike[m.String()]++
		all[i].nth = alike[m.String()]
	}
	return all, nil
}

// surgeon collects the mutants of a file.
type surgeon struct {
	fset  *token.FileSet
	name  string
	text  []byte
	in    string // what is being declared
	body  body
	found []mutant
	cases []span // of the switches so far
}

// span has the expressions of a case, of a switch that begins at a line.
type span struct {
	from, to token.Pos
	line     int
}

func (s *surgeon) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.SwitchStmt:
		s.noteCases(n)
	case *ast.GenDecl:
		return n.Tok == token.VAR // constants and types are seldom logic
	case *ast.CallExpr:
		return s.visitCall(n)
	case *ast.BinaryExpr:
		for _, op := range others(n.Op) {
			s.replace("operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
		}
	case *ast.IfStmt:
		s.replace("skipped if", n.Cond.Pos(), n.Cond.End(), "false && ("+s.source(n.Cond)+")")
	case *ast.ReturnStmt:
		s.turn(n.Results)
	case *ast.BlockStmt:
		s.drop(n.List)
	case *ast.CaseClause:
		s.drop(n.Body)
	case *ast.BasicLit:
		if v, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
			s.replace("constant", n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
		}
	}
	return true
}

func (s *surgeon) bodyOf(f *ast.FuncDecl) body {
	b := body{
		from: s.offset(f.Body.Lbrace) + 1, to: s.offset(f.Body.Rbrace),
		returns: f.Type.Results.NumFields() > 0,
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if _, is := n.(*ast.LabeledStmt); is {
			b.alone = true
		}
		return true
	})
	return b
}

// noteCases notes where the cases of a switch stand. They are asked one after the other by
// whatever comes to the switch, also where none of them is taken.
func (s *surgeon) noteCases(n *ast.SwitchStmt) {
	for _, stmt := range n.Body.List {
		if c, is := stmt.(*ast.CaseClause); is {
			s.cases = append(s.cases, span{from: c.Pos(), to: c.Colon, line: s.fset.Position(n.Pos()).Line})
		}
	}
}

// headOf is the line that a test comes through if it comes to what stands at a place.
func (s *surgeon) headOf(at token.Pos) int {
	for _, c := range s.cases {
		if c.from <= at && at < c.to {
			return c.line
		}
	}
	return s.fset.Position(at).Line
}

// turn returns the other one of true and false.
func (s *surgeon) turn(results []ast.Expr) {
	for _, r := range results {
		if id, is := r.(*ast.Ident); is && (id.Name == "true" || id.Name == "false") {
			s.replace("returned bool", r.Pos(), r.End(), strconv.FormatBool(id.Name == "false"))
		}
	}
}

// visitCall leaves out what no test can see.
func (s *surgeon) visitCall(call *ast.CallExpr) bool {
	unseen := roomAhead(call)
	switch name := s.source(call.Fun); {
	case name == "math.Inf":
		unseen = call.Args[0] // its sign counts
	case name == "math.IsInf" && s.source(call.Args[1]) != "0":
		unseen = call.Args[1]
	}
	if unseen == nil {
		return true
	}
	for _, arg := range call.Args {
		if arg != unseen {
			ast.Inspect(arg, s.visit)
		}
	}
	return false
}

// roomAhead is the argument of a call that makes room ahead in a map or slice, which no
// test can see.
func roomAhead(call *ast.CallExpr) ast.Expr {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if f.Name != "make" || len(call.Args) < 2 {
			return nil
		}
		_, isMap := call.Args[0].(*ast.MapType)
		if isMap || len(call.Args) == 3 {
			return call.Args[len(call.Args)-1]
		}
	case *ast.SelectorExpr:
		if id, is := f.X.(*ast.Ident); is && f.Sel.Name == "Grow" && id.Name == "slices" {
			return call.Args[1]
		}
	}
	return nil
}

// others are the operators that one may be mistaken for.
func others(op token.Token) []token.Token {
	return map[token.Token][]token.Token{
		token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
		token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
		token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
		token.LAND: {token.LOR}, token.LOR: {token.LAND},
		token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
	}[op]
}

// drop leaves out statements that do something: calls, assignments, counting. What declares
// a name cannot be left out.
func (s *surgeon) drop(list []ast.Stmt) {
	for _, stmt := range list {
		switch st := stmt.(type) {
		case *ast.AssignStmt:
			if st.Tok == token.DEFINE {
				continue
			}
			names := make([]string, len(st.Rhs)) // stay used, so that it compiles
			for i, r := range st.Rhs {
				names[i] = s.source(r)
			}
			blanks := strings.TrimSuffix(strings.Repeat("_, ", len(st.Lhs)), ", ")
			s.replace("dropped statement", st.Pos(), st.End(), blanks+" = "+strings.Join(names, ", "))
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
			s.replace("dropped statement", stmt.Pos(), stmt.End(), "{}")
		}
	}
}

func (s *surgeon) source(n ast.Node) string {
	return string(s.text[s.offset(n.Pos()):s.offset(n.End())])
}

func (s *surgeon) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *surgeon) replace(kind string, from, to token.Pos, with string) {
	m := mutant{
		file: s.name, in: s.in, body: s.body, line: s.fset.Position(from).Line,
		head: s.headOf(from), from: s.offset(from), to: s.offset(to),
		with: with, kind: kind,
	}
	if with == string(s.text[m.from:m.to]) {
		return // what was thrown away before, as `_ = f()`
	}
	m.before = lineAt(s.text, m.from)
	m.after = lineAt(m.apply(s.text), m.from)
	s.found = append(s.found, m)
}

// apply is the file's text with the change.
func (m mutant) apply(text []byte) []byte {
	return slices.Concat(text[:m.from], []byte(m.with), text[m.to:])
}

// lineAt is the line around a byte, without the space at its ends.
func lineAt(text []byte, at int) string {
	begin := bytes.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := bytes.Cut(text[begin:], []byte("\n"))
	return string(bytes.TrimSpace(line))
}
