package archtest

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

var listNames = flag.Bool("names", false, "list the exported names that no other package uses")

// unusedNames bounds the exported names of a part of the tree that no other package,
// its tests included, uses. Lower a number when fewer are left; never
// raise one: a name that only its own package needs begins with a small letter.
func unusedNames() map[string]int {
	// sdk is for programs of others: nobody here need use it.
	return map[string]int{"pkg": 11, "internal": 51, "cmd": 0, "examples": 0, "sdk": 21}
}

// TestNames counts the exported names that nothing outside of their package uses.
// To list them, with the place of each and whether tests elsewhere use it: make names
func TestNames(t *testing.T) {
	found, err := checkNames(t, repositoryRoot)
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]int{}
	for _, f := range found.unused {
		part, _, _ := strings.Cut(f.file, "/")
		unused[part]++
	}
	if *listNames {
		for _, f := range sorted(slices.Concat(found.unused, found.tested)) {
			t.Log(f)
		}
	}
	t.Logf("%d exported names; no other package's code names %d of them. %d of these it meets in the "+
		"type of another or through an interface, %d only its tests name, %d nobody: %v",
		found.all, found.unnamed, found.unnamed-len(found.tested)-len(found.unused), len(found.tested),
		len(found.unused), unused)
	bounds := unusedNames()
	for _, part := range slices.Sorted(maps.Keys(unused)) {
		if bound := bounds[part]; unused[part] > bound {
			t.Errorf("%s/ has %d exported names that no other package uses, at most %d may be; "+
				"list them with: make names", part, unused[part], bound)
		}
	}
}

// TestNamesRefuse runs the same check on code where each marked name is unused.
func TestNamesRefuse(t *testing.T) {
	const root = "testdata/names"
	found, err := checkNames(t, root)
	if err != nil {
		t.Fatal(err)
	}
	compareWithMarks(t, mustRead(t, root), slices.Concat(found.unused, found.tested))
}

// names holds the findings about exported names: constants, variables, functions,
// types and methods at a package's level.
type names struct {
	all     int
	unnamed int       // no other package's code names them
	tested  []finding // only tests of other packages use them
	unused  []finding // nobody outside of the package uses them
}

// checkNames type-checks all packages below root, without their tests. A name is
// used when another package names it, when a name that is used has it in its type
// (a result, a field), or when it is a method by which its type satisfies an
// interface. In the tests it is searched by its spelling.
func checkNames(t *testing.T, root string) (names, error) {
	t.Helper()
	top, err := filepath.Abs(root)
	if err != nil {
		return names{}, err
	}
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(), Dir: top, Env: append(os.Environ(), "GOWORK=off"),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
			packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
		BuildFlags: []string{"-tags=manual"}, // which adds to the programs, and takes nothing away
	}, "./...")
	if err != nil {
		return names{}, fmt.Errorf("load packages: %w", err)
	}
	c := &census{
		named: map[types.Object]bool{}, met: map[types.Object]bool{}, seen: map[types.Type]bool{},
		inTests: namesInTests(mustRead(t, root)),
	}
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			err = errors.Join(err, fmt.Errorf("package %s does not compile: %w", pkg.PkgPath, pkg.Errors[0]))
			continue
		}
		c.uses(pkg)
	}
	if err != nil {
		return names{}, err
	}
	c.interfaces = interfacesOf(loaded)
	c.walkTested(loaded)
	var found names
	for _, pkg := range loaded {
		for _, object := range exportedNames(pkg) {
			at := pkg.Fset.Position(object.Pos())
			file, err := filepath.Rel(top, at.Filename)
			if err != nil {
				return names{}, err
			}
			c.count(&found, object, finding{file: filepath.ToSlash(file), line: at.Line})
		}
	}
	return found, nil
}

// qualified is a name as another package would write it.
func qualified(object types.Object) string {
	if receiver := receiverOf(object); receiver != nil {
		return object.Pkg().Name() + "." + receiver.Obj().Name() + "." + object.Name()
	}
	return object.Pkg().Name() + "." + object.Name()
}

// exportedNames are a package's own, in the order of their names, without what
// was generated.
func exportedNames(pkg *packages.Package) []types.Object {
	generated := map[string]bool{}
	for _, file := range pkg.Syntax {
		if ast.IsGenerated(file) {
			generated[pkg.Fset.Position(file.Package).Filename] = true
		}
	}
	var names []types.Object
	scope := pkg.Types.Scope()
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		if object.Exported() {
			names = append(names, object)
		}
		typeName, isType := object.(*types.TypeName)
		if !isType {
			continue
		}
		if named, is := typeName.Type().(*types.Named); is && object.Exported() {
			for method := range named.Methods() {
				if method.Exported() {
					names = append(names, method)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(o types.Object) bool {
		return generated[pkg.Fset.Position(o.Pos()).Filename]
	})
}

// census knows which names are used outside of their package.
type census struct {
	named      map[types.Object]bool // by another package's code
	met        map[types.Object]bool // in the type of a name that is used
	metInTests map[types.Object]bool // in the type of a name that only tests of other packages use
	seen       map[types.Type]bool
	interfaces map[string][]*types.Interface // by the names of their methods
	inTests    map[string]bool               // by package and name, which tests of other packages name
}

// uses takes in what a package names of others.
func (c *census) uses(pkg *packages.Package) {
	for _, object := range pkg.TypesInfo.Uses {
		if f, is := object.(*types.Func); is {
			object = f.Origin()
		}
		if object.Pkg() == nil || object.Pkg() == pkg.Types || c.named[object] {
			continue
		}
		c.named[object] = true
		c.walk(object.Type())
		if receiver := receiverOf(object); receiver != nil {
			c.walk(receiver)
		}
	}
}

// count puts one exported name where it belongs.
func (c *census) count(into *names, object types.Object, at finding) {
	into.all++
	if c.named[object] {
		return
	}
	into.unnamed++
	at.text = qualified(object)
	switch {
	case c.met[object] || c.satisfies(object) || foundByName(object):
	case c.testedByOthers(object) || c.metInTests[object]:
		at.text += " (tests of other packages use it)"
		into.tested = append(into.tested, at)
	default:
		into.unused = append(into.unused, at)
	}
}

// testedByOthers reports whether tests of other packages name the object.
func (c *census) testedByOthers(object types.Object) bool {
	return c.inTests[object.Pkg().Path()+"."+object.Name()]
}

// walkTested fills metInTests.
func (c *census) walkTested(loaded []*packages.Package) {
	met := c.met
	c.met, c.seen = map[types.Object]bool{}, map[types.Type]bool{}
	for _, pkg := range loaded {
		for _, object := range exportedNames(pkg) {
			if c.testedByOthers(object) {
				c.walk(object.Type())
			}
		}
	}
	c.met, c.metInTests = met, c.met
}

// foundByName reports whether a method is one that the standard library and go-cmp look
// for by its name, through an interface that nobody declares.
func foundByName(object types.Object) bool {
	return receiverOf(object) != nil &&
		slices.Contains([]string{"Unwrap", "Is", "As", "Equal"}, object.Name())
}

// namesInTests lists what tests select of anything (a package, a value), once for
// each package that they import and is not theirs.
func namesInTests(repo *repository) map[string]bool {
	found := map[string]bool{}
	for _, s := range repo.sources {
		if !s.test {
			continue
		}
		var imported []string
		for _, spec := range s.syntax.Imports {
			if p := importPath(spec); within(p, modulePath) && p != path.Join(modulePath, s.dir) {
				imported = append(imported, p)
			}
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if selector, is := n.(*ast.SelectorExpr); is {
				for _, p := range imported {
					found[p+"."+selector.Sel.Name] = true
				}
			}
			return true
		})
	}
	return found
}

// walk marks the names that can be met in a type.
func (c *census) walk(t types.Type) {
	if t == nil || c.seen[t] {
		return
	}
	c.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		c.met[t.Obj()] = true
		c.walk(types.Unalias(t))
	case *types.Named:
		c.met[t.Origin().Obj()] = true
		for arg := range t.TypeArgs().Types() {
			c.walk(arg)
		}
		c.walk(t.Underlying())
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() {
				c.walk(field.Type())
			}
		}
	case *types.Signature:
		c.walk(t.Params())
		c.walk(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			c.walk(v.Type())
		}
	case *types.Interface:
		for method := range t.Methods() {
			c.walk(method.Type())
		}
	case *types.Map:
		c.walk(t.Key())
		c.walk(t.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		c.walk(t.Elem())
	}
}

// satisfies reports whether a method is one by which its type satisfies an
// interface that can be seen from somewhere.
func (c *census) satisfies(object types.Object) bool {
	receiver := receiverOf(object)
	if receiver == nil {
		return false
	}
	return slices.ContainsFunc(c.interfaces[object.Name()], func(i *types.Interface) bool {
		return types.Implements(receiver, i) || types.Implements(types.NewPointer(receiver), i)
	})
}

func receiverOf(object types.Object) *types.Named {
	method, is := object.(*types.Func)
	if !is || method.Signature().Recv() == nil {
		return nil
	}
	t := method.Signature().Recv().Type()
	if pointer, is := t.(*types.Pointer); is {
		t = pointer.Elem()
	}
	named, _ := t.(*types.Named)
	return named
}

// interfacesOf collects the interfaces that the packages and all that they import
// declare, by the names of their methods.
func interfacesOf(loaded []*packages.Package) map[string][]*types.Interface {
	found := map[string][]*types.Interface{}
	seen := map[*types.Package]bool{}
	var visit func(pkg *types.Package)
	visit = func(pkg *types.Package) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, name := range pkg.Scope().Names() {
			if _, is := pkg.Scope().Lookup(name).(*types.TypeName); !is {
				continue
			}
			if i, is := pkg.Scope().Lookup(name).Type().Underlying().(*types.Interface); is {
				for method := range i.Methods() {
					found[method.Name()] = append(found[method.Name()], i)
				}
			}
		}
		for _, imported := range pkg.Imports() {
			visit(imported)
		}
	}
	for _, pkg := range loaded {
		visit(pkg.Types)
	}
	if i, is := types.Universe.Lookup("error").Type().Underlying().(*types.Interface); is {
		found["Error"] = append(found["Error"], i)
	}
	return found
}
