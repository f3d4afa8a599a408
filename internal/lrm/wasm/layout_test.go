package wasm

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// made is a module for tests: its sections beside types, functions and exports as bytes of their
// vectors, and the body of step.
type made struct {
	imports, tables, memory, globals, start, elements, data []byte
	counts                                                  bool // a section that counts data
	exports                                                 string
	body                                                    string // without its end
}

// bytes assembles the module. It has forty types, functions, variables and labels, so that an
// index may be a byte that would mean something else as an opcode.
func (m made) bytes() []byte {
	const many = 40
	out := []byte("\x00asm\x01\x00\x00\x00")
	add := func(id byte, body []byte) {
		if body != nil {
			out = binary.AppendUvarint(append(out, id), uint64(len(body)))
			out = append(out, body...)
		}
	}
	types := append([]byte{many}, strings.Repeat("\x60\x00\x01\x7f", many)...)
	add(sectionType, types)
	add(2, m.imports)
	add(sectionFunc, make([]byte, 1+many-1))
	out[len(out)-many] = many - 1 // functions, all of type 0
	add(4, m.tables)
	add(sectionMemory, m.memory)
	add(sectionGlobal, m.globals)
	exports := m.exports
	if exports == "" {
		exports = "\x01\x04step\x00\x00"
	}
	add(sectionExport, []byte(exports))
	add(sectionStart, m.start)
	add(9, m.elements)
	if m.counts {
		add(12, []byte{1})
	}
	code := []byte{many - 1}
	first := "\x01" + string(rune(many)) + "\x7f" + strings.Repeat("\x02\x40", many) + m.body +
		"\x00" + strings.Repeat("\x0b", many) + "\x41\x00\x0b"
	code = binary.AppendUvarint(code, uint64(len(first)))
	code = append(code, first...)
	for range many - 2 {
		code = append(code, "\x04\x00\x41\x00\x0b"...)
	}
	add(sectionCode, code)
	add(11, m.data)
	return out
}

// compiles reports whether wazero takes a module.
func compiles(t testing.TB, module []byte) (wazero.CompiledModule, error) {
	t.Helper()
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { _ = rt.Close(t.Context()) })
	return rt.CompileModule(t.Context(), module)
}

// withAll has what instructions refer to.
func withAll(body string) made {
	return made{
		tables: []byte("\x01\x70\x00\x09"), memory: []byte("\x01\x00\x01"), counts: true,
		globals:  append([]byte{40}, strings.Repeat("\x7f\x01\x41\x00\x0b", 40)...),
		elements: []byte("\x01\x01\x00\x01\x00"), // passive, of function 0
		data:     []byte("\x01\x01\x01x"), body: body,
	}
}

// Each instruction is passed over with all that belongs to it, and no more: what follows is seen,
// and what belongs to it is not taken for one. wazero takes each of these modules.
func TestInstructionsArePassedOver(t *testing.T) {
	t.Parallel()
	const ref = "\x26" // as an opcode it would change a table
	tests := []string{
		"", "\x01", "\x03\x40\x0b", "\x03\x7f\x00\x0b\x1a", "\x00\x04\x26\x00\x05\x00\x0b\x1a",
		"\x00\x0c" + ref, "\x00\x0d" + ref, "\x00\x0e\x02" + ref + ref + ref,
		"\x00\x0f", "\x10" + ref + "\x1a",
		"\x00\x11" + ref + "\x00", "\x00\x1a", "\x00\x1b", "\x00\x1c\x01\x7f",
		"\x20" + ref + "\x1a",
		"\x00\x21" + ref, "\x00\x22" + ref, "\x23" + ref + "\x1a", "\x00\x24" + ref, "\x00\x25\x00",
		"\x3f\x00\x1a", "\x00\x40\x00", "\x41" + ref + "\x1a", "\x42\xa6" + ref + "\x1a",
		"\x43" + ref + ref + ref + ref + "\x1a", "\x44" + strings.Repeat(ref, 8) + "\x1a",
		"\x00\xd0\x70\xd1\x1a", "\x00\xc0", "\x00\xfc\x00", "\x00\xfc\x07", "\x00\xfc\x08\x00\x00",
		"\x00\xfc\x0a\x00\x00", "\x00\xfc\x0b\x00", "\xfc\x0d\x00", "\xfc\x10\x00\x1a",
		"\x00\xfd\x00\x00" + ref, "\x00\xfd\x0b\x00" + ref, "\xfd\x0c" + strings.Repeat(ref, 16),
		"\x00\xfd\x0d" + strings.Repeat("\x02", 16), "\x00\xfd\x15\x02", "\x00\xfd\x22\x01",
		"\x00\xfd\x54\x00" + ref + "\x03", "\x00\xfd\x5b\x00" + ref + "\x01",
		"\x00\xfd\x5c\x00" + ref,
		"\x00\xfd\x5d\x00" + ref, "\x00\xfd\x23", "\x00\xfd\xff\x01",
	}
	for op := byte(0x28); op <= 0x3e; op++ {
		tests = append(tests, "\x00"+string([]byte{op, 0})+ref)
	}
	for op := byte(0x45); op < 0xc4; op++ {
		tests = append(tests, "\x00"+string([]byte{op}))
	}
	for _, body := range tests {
		for marker, changes := range map[string]bool{"": false, "\x00\x26\x00": true} {
			module := withAll(body + marker).bytes()
			if _, err := compiles(t, module); err != nil {
				t.Errorf("%x: wazero: %v", body, err)
			}
			l, err := examine(module)
			if err != nil || l.effects.table != changes || l.effects.unknown != "" {
				t.Errorf("%x, then %x: %+v, %v", body, marker, l, err)
			}
		}
	}
}

// What cannot be saved is refused, and said.
func TestWhatCannotBeSaved(t *testing.T) {
	t.Parallel()
	ofOne := func(global string) made { return made{globals: []byte("\x01" + global)} }
	vector := "\x7b\x01\xfd\x0c" + strings.Repeat("\x00", 16) + "\x0b"
	for name, c := range map[string]struct {
		module made
		want   string
	}{
		"nothing":       {made{}, ""},
		"ordinary":      {withAll(""), ""},
		"table.set":     {withAll("\x00\x26\x00"), "table"},
		"table.init":    {withAll("\x00\xfc\x0c\x00\x00"), "table"},
		"table.copy":    {withAll("\x00\xfc\x0e\x00\x00"), "table"},
		"table.grow":    {withAll("\x00\xfc\x0f\x00"), "table"},
		"table.fill":    {withAll("\x00\xfc\x11\x00"), "table"},
		"elem.drop":     {withAll("\xfc\x0d\x00"), ""},
		"data.drop":     {withAll("\xfc\x09\x00"), ""}, // what it drops is never used
		"memory.init":   {withAll("\x00\xfc\x08\x00\x00"), ""},
		"both":          {withAll("\x00\xfc\x08\x00\x00\x00\xfc\x09\x00"), "segments"},
		"start":         {made{start: []byte{1}}, ""},
		"vector":        {ofOne(vector), "reference or a vector"},
		"constant one":  {ofOne(strings.Replace(vector, "\x01", "\x00", 1)), ""},
		"reference":     {ofOne("\x70\x01\xd0\x70\x0b"), "reference or a vector"},
		"fd_renumber":   {made{imports: []byte("\x01\x01w\x0bfd_renumber\x00\x00")}, "fd_renumber"},
		"other imports": {made{imports: []byte("\x01\x01w\x07fd_read\x00\x00")}, ""},
	} {
		module := c.module.bytes()
		l, err := examine(module)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.module.start != nil { // wazero refuses this one, as step has a result
			if l.problem() == "" {
				t.Errorf("%s is not refused", name)
			}
			continue
		}
		if _, err := compiles(t, module); err != nil {
			t.Errorf("%s: wazero: %v", name, err)
		}
		if got := l.problem(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	l, err := examine(made{memory: []byte("\x02\x00\x01\x01\x01\x02")}.bytes())
	if err != nil || !strings.Contains(l.problem(), "several memories") {
		t.Errorf("several memories: %v, %v", l, err)
	}
	l, err = examine(made{body: "\x06"}.bytes())
	if err != nil || !strings.Contains(l.problem(), "not known, 0x6") {
		t.Errorf("an instruction of later: %v, %v", l, err)
	}
}

// A module of steps exports step as () -> i32 and no _start.
func TestModulesOfSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		module made
		want   bool
	}{
		"step":       {made{}, true},
		"and _start": {made{exports: "\x02\x04step\x00\x00\x06_start\x00\x00"}, false},
		"another":    {made{exports: "\x01\x05steps\x00\x00"}, false},
		"a memory": {
			made{memory: []byte("\x01\x00\x01"), exports: "\x01\x04step\x02\x00"}, false,
		},
		"no function":    {made{exports: "\x01\x04step\x00\x7f"}, false},
		"one of no type": {made{imports: []byte("\x01\x01w\x01x\x00\x7f")}, false},
	} {
		l, err := examine(c.module.bytes())
		if err != nil || l.isStepped() != c.want {
			t.Errorf("%s: %v, %v, want %v", name, l, err, c.want)
		}
	}
	other := bytes.Replace(
		made{}.bytes(), []byte("\x60\x00\x01\x7f"), []byte("\x60\x00\x01\x7e"), 1)
	if l, err := examine(other); err != nil || l.isStepped() {
		t.Errorf("a step with a result of 64 bits: %v, %v", l, err)
	}
}

// Hidden global variables are exported under names that no other export has; all else stays as it
// is, and wazero takes the module as before.
func TestGlobalsAreExposed(t *testing.T) {
	t.Parallel()
	globals := []byte("\x05\x7f\x01\x41\x07\x0b\x7e\x01\x42\x09\x0b\x7f\x00\x41\x05\x0b" +
		"\x7d\x01\x43\x00\x00\x80\x3f\x0b\x7c\x01\x44\x00\x00\x00\x00\x00\x00\xf0\x3f\x0b")
	for name, exports := range map[string]string{
		"alone":         "\x01\x04step\x00\x00",
		"visible ones":  "\x02\x04step\x00\x00\x01g\x03\x00",
		"the same name": "\x02\x04step\x00\x00\x0cmrs.global.0\x03\x02",
	} {
		module := made{globals: globals, exports: exports}.bytes()
		l, err := examine(module)
		if err != nil {
			t.Fatal(err)
		}
		out, all := l.expose(module)
		compiled, err := compiles(t, out)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := examine(out)
		if err != nil || len(all) != 4 || len(again.exports) != len(l.exports)+4 {
			t.Fatalf("%s: %v, %v", name, again, err)
		}
		if got := compiled.ExportedFunctions(); len(got) != 1 {
			t.Errorf("%s: functions %v", name, got)
		}
		for i, index := range []uint32{0, 1, 3, 4} {
			if e := again.exports[all[i].name]; e.kind != kindGlobal || e.index != index {
				t.Errorf("%s: %s is %+v", name, all[i].name, e)
			}
			if _, before := l.exports[all[i].name]; before {
				t.Errorf("%s: %s was there before", name, all[i].name)
			}
		}
	}
	module := made{}.bytes()
	l, _ := examine(module)
	if out, all := l.expose(module); !bytes.Equal(out, module) || all != nil {
		t.Error("a module without variables changes")
	}
}

// The programs that compilers make are understood to their last instruction.
func TestRealModules(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile(stepsModule(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := examine(module)
	if err != nil || !l.isStepped() || l.problem() != "" {
		t.Fatalf("the guest of steps: %v, %q", err, l.problem())
	}
	if _, all := l.expose(module); len(all) == 0 {
		t.Error("a Go program without a stack pointer")
	}
}

// FuzzModules looks that no module makes the reader fail or take much, that what wazero takes is
// understood, and that it takes what was rewritten, too.
func FuzzModules(f *testing.F) {
	f.Add(made{}.bytes())
	f.Add(withAll("\x00\xfd\x0c" + strings.Repeat("\x26", 16)).bytes())
	f.Add(withAll("\x00\xfc\x08\x00\x00\x00\x0e\x01\x02\x03").bytes())
	f.Add(made{imports: []byte("\x01\x01w\x0bfd_renumber\x00\x00"), start: []byte{1}}.bytes())
	f.Fuzz(func(t *testing.T, module []byte) {
		l, wrong := examine(module)
		if _, err := compiles(t, module); err != nil {
			return
		}
		if wrong != nil {
			t.Fatalf("wazero takes what cannot be read: %v", wrong)
		}
		if l.effects.unknown != "" {
			t.Fatalf("wazero knows more: %s", l.effects.unknown)
		}
		if !l.isStepped() {
			return
		}
		out, all := l.expose(module)
		compiled, err := compiles(t, out)
		if err != nil {
			t.Fatalf("it does not take what was rewritten: %v", err)
		}
		if _, is := compiled.ExportedFunctions()[stepName]; !is {
			t.Error("step is lost")
		}
		again, err := examine(out)
		if err != nil || len(again.exports) != len(l.exports)+len(all) {
			t.Errorf("of %d exports and %d variables are %d left, %v", len(l.exports), len(all),
				len(again.exports), err)
		}
	})
}
