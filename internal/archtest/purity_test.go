package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestPurity is the rule of the house, second half: pkg/ thinks. Nothing there
// reads a clock, draws global randomness, does input or output, starts a
// goroutine, takes a lock or lets the order of a map leak out.
func TestPurity(t *testing.T) {
	found, err := checkPurity(t, repositoryRoot)
	if err != nil {
		t.Error(err)
	}
	refuse(t, found)
}

// TestPurityRefuses runs the same check on code where each marked line is wrong.
func TestPurityRefuses(t *testing.T) {
	const root = "testdata/purity"
	found, err := checkPurity(t, root)
	if err != nil {
		t.Fatal(err)
	}
	compareWithMarks(t, mustRead(t, root), found)
}

// checkPurity type-checks every package below root's pkg/ and judges its files,
// without tests and generated code.
func checkPurity(t *testing.T, root string) ([]finding, error) {
	t.Helper()
	top, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(),
		Dir:     top,
		Env:     append(os.Environ(), "GOWORK=off"),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
			packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, "./pkg/...")
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	if len(loaded) == 0 {
		return nil, fmt.Errorf("no packages below %s/pkg", root)
	}
	var found []finding
	var broken []error
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			broken = append(
				broken, fmt.Errorf("package %s does not compile: %w", pkg.PkgPath, pkg.Errors[0]),
			)
			continue
		}
		for _, file := range pkg.Syntax {
			if ast.IsGenerated(file) {
				continue
			}
			j := &judge{pkg: pkg, top: top}
			j.file(file)
			found = append(found, j.found...)
		}
	}
	return found, errors.Join(broken...)
}

// judge collects what is impure in one file.
type judge struct {
	pkg   *packages.Package
	top   string
	found []finding
	// sortedCalls are the walks over a map whose result goes straight into a sort.
	sortedCalls map[ast.Node]bool
}

func (j *judge) file(file *ast.File) {
	for _, spec := range file.Imports {
		if why := impureImport(importPath(spec)); why != "" {
			j.refuse(spec, "pkg/ may not import %s: %s", importPath(spec), why)
		}
	}
	j.sortedCalls = map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			j.refuse(n, "pkg/ starts no goroutine")
		case *ast.SelectStmt, *ast.ChanType:
			j.refuse(n, "pkg/ has no channels: nothing waits there")
		case *ast.RangeStmt:
			j.rangeOver(n)
		case *ast.CallExpr:
			j.call(n)
		case *ast.Ident:
			j.use(n)
		}
		return true
	})
}

func (j *judge) refuse(n ast.Node, format string, args ...any) {
	at := j.pkg.Fset.Position(n.Pos())
	name, err := filepath.Rel(j.top, at.Filename)
	if err != nil {
		name = at.Filename
	}
	j.found = append(j.found, finding{filepath.ToSlash(name), at.Line, fmt.Sprintf(format, args...)})
}

// rangeOver refuses a loop over a map: its order is random. Loop over
// slices.Sorted(maps.Keys(m)) instead.
func (j *judge) rangeOver(n *ast.RangeStmt) {
	t := j.pkg.TypesInfo.TypeOf(n.X)
	if t != nil && rangesOverMap(t) {
		j.refuse(n, "the order of a map is random: range over slices.Sorted(maps.Keys(m))")
	}
}

// rangesOverMap also sees through type parameters.
func rangesOverMap(t types.Type) bool {
	if param, ok := types.Unalias(t).(*types.TypeParam); ok {
		return constraintHasMap(param.Constraint().Underlying())
	}
	_, isMap := t.Underlying().(*types.Map)
	return isMap
}

func constraintHasMap(constraint types.Type) bool {
	iface, ok := constraint.(*types.Interface)
	if !ok {
		return false
	}
	for embedded := range iface.EmbeddedTypes() {
		switch e := embedded.(type) {
		case *types.Union:
			for term := range e.Terms() {
				if rangesOverMap(term.Type()) {
					return true
				}
			}
		default:
			if rangesOverMap(e) || constraintHasMap(e.Underlying()) {
				return true
			}
		}
	}
	return false
}

// call remembers what goes straight into a sort, and refuses a walk over a map
// that does not. The outer call is visited before its arguments.
func (j *judge) call(n *ast.CallExpr) {
	name := j.callee(n)
	if slices.Contains(sorters(), name) {
		for _, arg := range n.Args {
			j.sortedCalls[ast.Unparen(arg)] = true
		}
		return
	}
	if !slices.Contains(mapWalks(), name) || j.sortedCalls[n] {
		return
	}
	j.refuse(
		n, "%s walks a map in random order: put it straight into slices.Sorted or slices.SortedFunc",
		name,
	)
}

// use refuses functions that touch the world, whatever the import is called and
// whether they are called or only named.
func (j *judge) use(n *ast.Ident) {
	object := j.pkg.TypesInfo.Uses[n]
	if object == nil {
		return
	}
	if builtin, ok := object.(*types.Builtin); ok && strings.HasPrefix(builtin.Name(), "print") {
		j.refuse(n, "pkg/ prints nothing: %s", builtin.Name())
		return
	}
	if object.Pkg() == nil {
		return
	}
	if name, why := impureObject(object); why != "" {
		j.refuse(n, "%s: %s", name, why)
	}
}

func (j *judge) callee(call *ast.CallExpr) string {
	fun := ast.Unparen(call.Fun)
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	if index, ok := fun.(*ast.IndexListExpr); ok {
		fun = index.X
	}
	var ident *ast.Ident
	switch f := fun.(type) {
	case *ast.SelectorExpr:
		ident = f.Sel
	case *ast.Ident:
		ident = f
	default:
		return ""
	}
	if f, ok := j.pkg.TypesInfo.Uses[ident].(*types.Func); ok {
		return f.FullName()
	}
	return ""
}
