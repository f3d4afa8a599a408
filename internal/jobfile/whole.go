package jobfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	wordItem  = "{{item}}"
	wordIndex = "{{index}}"
)

// own reports whether a text differs from task to task.
func own(text string) bool {
	return strings.Contains(text, wordItem) || strings.Contains(text, wordIndex)
}

// checkWhole looks at what no single key can know. seen has the line of each key.
func (p *parser) checkWhole(seen map[string]int, line int) {
	f := p.file
	p.checkWork(seen, line)
	if _, given := seen["runtime"]; !given && f.Spec.Kind != grid.KindReservation {
		f.Spec.Runtime = p.runtime
		if f.Spec.Runtime <= 0 {
			f.Spec.Runtime = defaultRuntime
		}
		f.Notes = append(f.Notes, fmt.Sprintf("no runtime given: planning with %s",
			short(f.Spec.Runtime)))
	}
	if _, both := seen["count"]; both && seen["items"] > 0 {
		p.fail(seen["count"], "count", "remove count: items say how many tasks there are",
			"count and items are both given")
	}
	p.checkWindow()
	p.checkPlacing(seen)
	p.checkWords(seen["items"] > 0)
	p.checkDoubles()
	if len(p.errs) == 0 {
		p.checkLimits(line)
	}
}

// checkWork wants exactly one kind of work.
func (p *parser) checkWork(seen map[string]int, line int) {
	_, wasm := seen["wasm"]
	_, command := seen["command"]
	_, reserve := seen["reserve"]
	switch {
	case wasm && command:
		p.fail(max(seen["wasm"], seen["command"]), "command", "keep one of them",
			"wasm and command are both given")
	case reserve && (wasm || command):
		p.fail(seen["reserve"], "reserve", "submit the reservation and its jobs one after the other",
			"a reservation runs nothing")
	case !wasm && !command && !reserve && !slices.ContainsFunc(p.errs, func(e *FieldError) bool {
		return e.Field == "container"
	}):
		p.fail(line, "wasm", "add wasm: FILE (or command: [...])",
			"want exactly one of wasm and command, have none")
	}
}

// short is a duration without the zero units that Go writes ("10m0s").
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// checkWords refuses {{item}} where there are no items: it would reach the
// program as it stands.
func (p *parser) checkWords(items bool) {
	f := p.file
	check := func(field, text string) {
		if !items && strings.Contains(text, wordItem) {
			p.fail(f.lines[field], field, "add items, or use {{index}} with count",
				"{{item}} is used and there are no items")
		}
	}
	for i, a := range f.Spec.Args {
		if i < p.program {
			check(fmt.Sprintf("command[%d]", i), a)
			continue
		}
		check(fmt.Sprintf("args[%d]", i-p.program), a)
	}
	for _, e := range f.Spec.Env {
		check("env."+e.Name, e.Value)
	}
	for i, in := range f.Inputs {
		p.checkEach(i, in)
		check(fmt.Sprintf("inputs[%d].path", i), in.Path)
		check(fmt.Sprintf("inputs[%d].from", i), in.From.Text)
	}
	for i, out := range f.Spec.Outputs {
		check(fmt.Sprintf("outputs[%d].path", i), out.Path)
		check(fmt.Sprintf("outputs[%d].to", i), out.To)
		if f.array() && !own(out.To) {
			field := fmt.Sprintf("outputs[%d].to", i)
			p.fail(f.lines[field], field, "put {{index}} or {{item}} into it",
				"every task of the array would write %s", out.To)
		}
	}
	if own(f.Wasm.Text) {
		p.fail(f.lines["wasm"], "wasm", "name one module and tell tasks apart by args",
			"the module is the same for all tasks")
	}
}

// array reports whether there may be more than one task.
func (f *File) array() bool { return f.Count > 1 || len(f.Items) > 1 || f.Glob != "" }

// checkDoubles refuses two inputs or two outputs of the same name.
func (p *parser) checkDoubles() {
	seen := map[string]bool{}
	check := func(kind, field, text string) {
		if text != "" && seen[kind+text] {
			p.fail(p.file.lines[field], field, "choose another one", "%s is used twice", text)
		}
		seen[kind+text] = true
	}
	for i, in := range p.file.Inputs {
		check("input ", fmt.Sprintf("inputs[%d].path", i), in.Path)
	}
	for i, out := range p.file.Spec.Outputs {
		check("output ", fmt.Sprintf("outputs[%d].path", i), out.Path)
		check("target ", fmt.Sprintf("outputs[%d].to", i), out.To)
	}
}

// checkLimits asks pkg/grid, whose limits are the protocol's.
func (p *parser) checkLimits(line int) {
	spec := p.file.Spec
	if spec.Kind == grid.KindWasm {
		spec.Module.CID = "b"
	}
	if err := spec.Validate(); err != nil {
		p.fail(line, "", "see the limits in the documentation of job files", "%v", err)
	}
	for i, item := range p.file.Items {
		if err := (grid.Item{Value: item.Value}).Validate(); err != nil {
			p.fail(line, fmt.Sprintf("items[%d]", i), "shorten it", "%v", err)
		}
	}
}
