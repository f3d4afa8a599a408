package wasm

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// The function that makes a module one of steps: () -> i32.
const (
	stepName = "step"
	initName = "_initialize"
)

// Kinds of imports and exports, and types of values, as they stand in a module.
const (
	kindFunc   = 0
	kindTable  = 1
	kindMemory = 2
	kindGlobal = 3

	typeI32      = 0x7f
	typeF64      = 0x7c
	typeFunction = 0x60
)

// global is a global variable of a module.
type global struct {
	kind    byte // the type of its value
	mutable bool
}

// numeric reports whether its value is a number of at most 64 bits.
func (g global) numeric() bool { return g.kind <= typeI32 && g.kind >= typeF64 }

// wide reports whether that has 64 bits.
func (g global) wide() bool { return g.kind == 0x7e || g.kind == typeF64 }

// layout holds as much of a module as running it in steps needs.
type layout struct {
	steps   []bool   // of each type: whether it is () -> i32
	funcs   []uint32 // the type of each function
	globals []global // those of the module are behind the imported ones
	exports map[string]export

	imported    int // globals
	memories    int
	begins      bool // it has a start function
	renumbers   bool // it imports what gives descriptors other numbers
	yields      bool // it imports mrs.yield
	exportsAt   section
	effects     effects
	exportCount uint32
}

type export struct {
	kind  byte
	index uint32
}

// examine reads a module's layout. The error says that wazero will not take the module either.
func examine(module []byte) (*layout, error) {
	parts, err := sections(module)
	if err != nil {
		return nil, err
	}
	l := &layout{exports: make(map[string]export)}
	for _, s := range parts {
		c := &cursor{rest: s.body}
		if read := l.reader(s); read != nil {
			if read(c); c.bad || !c.done() && l.effects.unknown == "" {
				return nil, errBinary
			}
		}
	}
	return l, nil
}

// reader gives what reads a section, nil if nothing has to.
func (l *layout) reader(s section) func(*cursor) {
	each := func(read func(*cursor)) func(*cursor) {
		return func(c *cursor) {
			for range c.u32() {
				if read(c); c.bad {
					return
				}
			}
		}
	}
	switch s.id {
	case sectionType:
		return each(l.readType)
	case sectionImport:
		return each(l.readImport)
	case sectionFunc:
		return each(func(c *cursor) { l.funcs = append(l.funcs, c.u32()) })
	case sectionMemory:
		return each(func(c *cursor) { c.limits(); l.memories++ })
	case sectionGlobal:
		return each(func(c *cursor) {
			l.readGlobal(c)
			c.expression(&l.effects)
		})
	case sectionExport:
		l.exportsAt = s
		return each(l.readExport)
	case sectionStart:
		l.begins = true
		return nil
	case sectionCode:
		return each(l.readBody)
	default:
		return nil
	}
}

func (l *layout) readType(c *cursor) {
	if c.byte() != typeFunction {
		c.fail()
	}
	params, results := c.take(c.u32()), c.take(c.u32())
	l.steps = append(l.steps, len(params) == 0 && len(results) == 1 && results[0] == typeI32)
}

func (l *layout) readImport(c *cursor) {
	module, name := c.name(), c.name()
	switch c.byte() {
	case kindFunc:
		l.yields = l.yields || module == yieldModule && name == yieldName
		l.funcs = append(l.funcs, c.u32())
		l.renumbers = l.renumbers || name == "fd_renumber"
	case kindTable:
		c.byte()
		c.limits()
	case kindMemory:
		c.limits()
		l.memories++
	case kindGlobal:
		l.readGlobal(c)
		l.imported++
	default:
		c.fail()
	}
}

func (l *layout) readGlobal(c *cursor) {
	l.globals = append(l.globals, global{kind: c.byte(), mutable: c.byte() == 1})
}

func (l *layout) readExport(c *cursor) {
	name := c.name()
	l.exports[name] = export{kind: c.byte(), index: c.u32()}
	l.exportCount++
}

func (l *layout) readBody(c *cursor) {
	body := &cursor{rest: c.take(c.u32())}
	for range body.u32() { // its variables
		body.u32()
		if body.byte(); body.bad {
			break
		}
	}
	if body.code(&l.effects); body.bad {
		c.fail()
	}
}

// isStepped reports whether the module is one of steps: it exports step, and is no command.
func (l *layout) isStepped() bool {
	e, is := l.exports[stepName]
	if _, command := l.exports["_start"]; !is || command || e.kind != kindFunc ||
		uint64(e.index) >= uint64(len(l.funcs)) {
		return false
	}
	kind := l.funcs[e.index]
	return uint64(kind) < uint64(len(l.steps)) && l.steps[kind]
}

// isYielding reports whether the module is a command that yields, and that asyncify has prepared.
func (l *layout) isYielding() bool {
	command := l.exports["_start"]
	is := l.yields && command.kind == kindFunc && uint64(command.index) < uint64(len(l.funcs))
	for _, f := range asyncify {
		e, has := l.exports[f.name]
		is = is && has && e.kind == kindFunc
	}
	return is && l.memories == 1
}

// problem says why states of the module cannot be saved, "" if they can.
func (l *layout) problem() string {
	if why := l.effects.problem(); why != "" {
		return why
	}
	switch {
	case l.memories > 1:
		return "the module has several memories"
	case l.begins:
		return "the module has a start function: build it as a reactor, with " + initName
	case l.renumbers:
		return "the module gives descriptors other numbers (fd_renumber)"
	case slices.ContainsFunc(l.globals, func(g global) bool { return g.mutable && !g.numeric() }):
		return "the module has a global variable that is a reference or a vector"
	default:
		return ""
	}
}

// exposed is a global variable that can be read and set under a name.
type exposed struct {
	global
	name string
}

// expose gives the module with its mutable globals exported, and their names: hidden ones could
// not be saved. Nothing else of the module changes.
func (l *layout) expose(module []byte) ([]byte, []exposed) {
	prefix := "mrs.global."
	for taken := true; taken; {
		if taken = false; l.exportsPrefix(prefix) {
			prefix, taken = "_"+prefix, true
		}
	}
	var all []exposed
	var entries []byte
	for i, g := range l.globals {
		if !g.mutable || i < l.imported {
			continue
		}
		name := prefix + strconv.Itoa(i)
		all = append(all, exposed{g, name})
		entries = binary.AppendUvarint(entries, uint64(len(name)))
		entries = append(append(entries, name...), kindGlobal)
		entries = binary.AppendUvarint(entries, uint64(i))
	}
	if len(all) == 0 {
		return module, nil
	}
	old := cursor{rest: l.exportsAt.body}
	old.u32()
	body := binary.AppendUvarint(nil, uint64(l.exportCount)+uint64(len(all)))
	body = append(append(body, old.rest...), entries...)
	out := append([]byte(nil), module[:l.exportsAt.begin]...)
	out = binary.AppendUvarint(append(out, sectionExport), uint64(len(body)))
	return append(append(out, body...), module[l.exportsAt.end:]...), all
}

func (l *layout) exportsPrefix(prefix string) bool {
	for name := range l.exports {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
