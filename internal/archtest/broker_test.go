package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The largest room of pkg/ has an order inside. brokerLayers lists its files from what
// everything rests on to what sees everything; a file names what stands lower.
func brokerLayers() []string {
	return []string{
		"doc.go", "events.go", "config.go", "tally.go", "near.go", "search.go", "run.go", "wall.go",
		"offers.go", "arrival.go", "pledge.go", "saved.go", "copies.go", "task.go",
		"ceiling.go", "traits.go", "divide.go", "intake.go", "job.go",
		"encrypted.go", "hold.go",
		"tail.go", "order.go", "takes.go", "repeated.go", "facts.go", "longgrant.go", "line.go",
		"watch.go", "breach.go",
		"testimony.go", "trouble.go", "faults.go", "peers.go", "trust.go", "bounds.go",
		"policy.go", "round.go", "spared.go", "sooner.go", "beside.go", "announce.go",
		"search_rounds.go", "probe.go",
		"neighbours.go", "queue.go",
		"rights.go", "roll.go", "machine.go", "strategy.go", "kept.go", "doubt.go", "end.go",
		"border.go",
		"retries.go",
		"vacancy.go", "placing.go", "failover.go", "remap.go", "restored.go", "result.go", "late.go",
		"comparison.go", "convict.go", "checkpoint.go", "moving.go", "seeking.go", "space.go", "award.go", "clockset.go",
		"answers.go", "grant.go",
		"renew.go", "presence.go", "look.go",
		"ranking.go", "desk.go", "parts_hosts.go",
		"place_nearest.go", "place_promised.go", "place_rivals.go", "parts_start.go", "parts_again.go",
		"place_together.go", "strategies.go", "submit.go", "restore.go", "resume.go", "check.go",
		"domains.go", "view.go", "view_copies.go", "archive.go", "step.go",
	}
}

// Bounds on the room: no figure may grow past them without a look at why.
const (
	maxArrowsAgainst  = 20 // of a hundred arrows between files
	maxMachineMethods = 81
	maxStateFields    = 15 // of job and task
)

func TestBrokerKeepsItsOrder(t *testing.T) {
	m := mustLoadMachine(t, repositoryRoot)
	if circles := m.circles(); len(circles) > 0 {
		t.Errorf("functions that reach themselves, calls through interfaces counted: %v", circles)
	}
	against, all, err := m.arrows(brokerLayers())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d arrows between files point upwards:\n%s",
		len(against), all, strings.Join(against, "\n"))
	if 100*len(against) > maxArrowsAgainst*all {
		t.Errorf("%d of %d arrows point upwards, want at most %d %%", len(against), all, maxArrowsAgainst)
	}
	if n := m.methods("Machine"); n > maxMachineMethods {
		t.Errorf("Machine has %d methods, want at most %d", n, maxMachineMethods)
	}
	for _, state := range []string{"job", "task"} {
		if n := m.fields(state); n == 0 || n > maxStateFields {
			t.Errorf("%s has %d fields, want 1 to %d", state, n, maxStateFields)
		}
	}
	single, called := m.calledOnce()
	t.Logf("%d methods of Machine; %d of %d functions have exactly one caller",
		m.methods("Machine"), single, called)
}

// TestStrategiesSeeADesk is the rule for what places jobs: a strategy uses its desk, and
// nothing of the machine behind it.
func TestStrategiesSeeADesk(t *testing.T) {
	refuse(t, mustLoadMachine(t, repositoryRoot).behindTheDesk())
}

func TestStrategiesSeeADeskRefuses(t *testing.T) {
	const root = "testdata/desk"
	m := mustLoadMachine(t, root)
	compareWithMarks(t, mustRead(t, root), m.behindTheDesk())
	if circles := m.circles(); len(circles) != 2 {
		t.Errorf("circles %v, want the one through the interface and the one of itself", circles)
	}
	against, all, err := m.arrows([]string{"place_wrong.go", "machine.go"})
	if err != nil || all != 2 || len(against) != 1 {
		t.Errorf("%d of %d arrows point upwards, %v; want 1 of 2", len(against), all, err)
	}
}

// machineRoom is pkg/broker, type-checked, and who calls whom in it.
type machineRoom struct {
	*packages.Package
	top   string
	decls map[*types.Func]*ast.FuncDecl
	calls map[*types.Func][]*types.Func
}

func mustLoadMachine(t *testing.T, root string) *machineRoom {
	t.Helper()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(), Dir: top, Env: append(os.Environ(), "GOWORK=off"),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
			packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, "./pkg/broker")
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		t.Fatalf("load pkg/broker below %s: %d packages, %v", root, len(loaded), loaded[0].Errors)
	}
	m := &machineRoom{Package: loaded[0], top: top, decls: map[*types.Func]*ast.FuncDecl{}}
	m.calls = m.whoCallsWhom()
	return m
}

func (m *machineRoom) fileOf(at token.Pos) string {
	return filepath.Base(m.Fset.Position(at).Filename)
}

// whoCallsWhom counts a function that is named, called or not. A method of an interface
// stands for all of that name that its implementations have.
func (m *machineRoom) whoCallsWhom() map[*types.Func][]*types.Func {
	for _, file := range m.Syntax {
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
				m.decls[m.TypesInfo.Defs[f.Name].(*types.Func)] = f
			}
		}
	}
	calls := map[*types.Func][]*types.Func{}
	for caller, decl := range m.decls {
		ast.Inspect(decl.Body, func(n ast.Node) bool {
			id, is := n.(*ast.Ident)
			if !is {
				return true
			}
			if called, is := m.TypesInfo.Uses[id].(*types.Func); is {
				calls[caller] = append(calls[caller], m.meant(called.Origin())...)
			}
			return true
		})
	}
	return calls
}

// meant are the functions of this package that a call can reach.
func (m *machineRoom) meant(called *types.Func) []*types.Func {
	if called.Pkg() != m.Types {
		return nil
	}
	recv := called.Signature().Recv()
	if recv == nil || !types.IsInterface(recv.Type()) {
		return []*types.Func{called}
	}
	var all []*types.Func
	face := recv.Type().Underlying().(*types.Interface)
	for f := range m.decls {
		own := f.Signature().Recv()
		if f.Name() == called.Name() && own != nil && types.Implements(own.Type(), face) {
			all = append(all, f)
		}
	}
	return all
}

// circles lists the groups of functions that can reach each other, each as one text.
func (m *machineRoom) circles() []string {
	s := &circleSearch{
		room: m, index: map[*types.Func]int{}, low: map[*types.Func]int{}, on: map[*types.Func]bool{},
	}
	for _, f := range m.sorted() {
		if s.index[f] == 0 {
			s.visit(f)
		}
	}
	slices.Sort(s.found)
	return s.found
}

func (m *machineRoom) sorted() []*types.Func {
	return slices.SortedFunc(maps.Keys(m.decls), func(a, b *types.Func) int {
		return cmp.Compare(a.FullName(), b.FullName())
	})
}

// circleSearch is Tarjan's search for strongly connected components.
type circleSearch struct {
	room  *machineRoom
	index map[*types.Func]int
	low   map[*types.Func]int
	on    map[*types.Func]bool
	stack []*types.Func
	found []string
}

func (s *circleSearch) visit(f *types.Func) {
	s.index[f] = len(s.index) + 1
	s.low[f] = s.index[f]
	s.stack, s.on[f] = append(s.stack, f), true
	self := false
	for _, g := range s.room.calls[f] {
		self = self || f == g
		switch {
		case s.index[g] == 0:
			s.visit(g)
			s.low[f] = min(s.low[f], s.low[g])
		case s.on[g]:
			s.low[f] = min(s.low[f], s.index[g])
		}
	}
	if s.low[f] != s.index[f] {
		return
	}
	at := slices.Index(s.stack, f)
	group := s.stack[at:]
	s.stack = s.stack[:at]
	var names []string
	for _, g := range group {
		s.on[g] = false
		names = append(names, g.Name())
	}
	if len(group) > 1 || self {
		slices.Sort(names)
		s.found = append(s.found, strings.Join(names, " > "))
	}
}

// arrows counts which file names something that another one declares, and lists the arrows
// that point to a file of a higher layer. Fields and interfaces' methods do not count.
func (m *machineRoom) arrows(layers []string) (against []string, all int, err error) {
	seen := map[[2]string]bool{}
	for id, object := range m.TypesInfo.Uses {
		if object.Pkg() != m.Types || !m.counts(object) {
			continue
		}
		seen[[2]string{m.fileOf(id.Pos()), m.fileOf(object.Pos())}] = true
	}
	for arrow := range seen {
		from, to := slices.Index(layers, arrow[0]), slices.Index(layers, arrow[1])
		if from < 0 || to < 0 {
			return nil, 0, fmt.Errorf("%s > %s: a file stands in no layer of brokerLayers",
				arrow[0], arrow[1])
		}
		if from == to {
			continue
		}
		if all++; from < to {
			against = append(against, arrow[0]+" > "+arrow[1])
		}
	}
	slices.Sort(against)
	return against, all, nil
}

func (m *machineRoom) counts(object types.Object) bool {
	switch o := object.(type) {
	case *types.Func:
		return m.decls[o.Origin()] != nil
	case *types.TypeName, *types.Const:
		return o.Parent() == m.Types.Scope()
	default:
		return false
	}
}

func (m *machineRoom) methods(name string) int {
	n := 0
	for f := range m.decls {
		if recv := f.Signature().Recv(); recv != nil && typeName(recv.Type()) == name {
			n++
		}
	}
	return n
}

func typeName(t types.Type) string {
	if p, is := types.Unalias(t).(*types.Pointer); is {
		t = p.Elem()
	}
	if named, is := types.Unalias(t).(*types.Named); is {
		return named.Obj().Name()
	}
	return ""
}

func (m *machineRoom) fields(name string) int {
	object := m.Types.Scope().Lookup(name)
	if object == nil {
		return 0
	}
	s, is := object.Type().Underlying().(*types.Struct)
	if !is {
		return 0
	}
	return s.NumFields()
}

// calledOnce counts the functions that exactly one other names, and those named at all.
func (m *machineRoom) calledOnce() (single, called int) {
	callers := map[*types.Func]map[*types.Func]bool{}
	for f, list := range m.calls {
		for _, g := range list {
			if callers[g] == nil {
				callers[g] = map[*types.Func]bool{}
			}
			callers[g][f] = true
		}
	}
	for _, by := range callers {
		if len(by) == 1 {
			single++
		}
	}
	return single, len(m.decls)
}

// behindTheDesk lists what strategies take of the machine itself: the files that hold them
// are called place_... and parts_....
func (m *machineRoom) behindTheDesk() []finding {
	var found []finding
	for _, file := range m.Syntax {
		name := m.fileOf(file.Pos())
		if !strings.HasPrefix(name, "place_") && !strings.HasPrefix(name, "parts_") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			x, is := n.(ast.Expr)
			if !is || typeName(m.TypesInfo.TypeOf(x)) != "Machine" {
				return true
			}
			at := m.Fset.Position(x.Pos())
			path, err := filepath.Rel(m.top, at.Filename)
			if err != nil {
				path = at.Filename
			}
			found = append(found, finding{
				filepath.ToSlash(path), at.Line,
				"a strategy uses its desk, and nothing of the machine behind it",
			})
			return false
		})
	}
	return found
}
