package jobfile

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// start reads one key of start.
func (p *parser) start(key string, node *yaml.Node) bool {
	field := "start." + key
	window := &p.file.Spec.Window
	switch key {
	case "notBefore":
		if text, ok := p.text(node, field); ok {
			window.NotBefore = p.moment(text, node.Line, field, p.now)
		}
	case "at":
		if text, ok := p.text(node, field); ok {
			window.At = p.moment(text, node.Line, field, p.now)
		}
	default:
		return false
	}
	return true
}

// checkWindow looks at the times of a job together. The deadline is understood
// only here: its next occurrence is the one after the start.
func (p *parser) checkWindow() {
	window := &p.file.Spec.Window
	if !window.At.IsZero() && !window.NotBefore.IsZero() {
		p.fail(p.file.lines["start.notBefore"], "start.notBefore", "keep one of them",
			"start.at and start.notBefore exclude each other")
		return
	}
	if !window.At.IsZero() && !window.At.After(p.now) {
		p.fail(p.file.lines["start.at"], "start.at",
			"choose a later one, or remove it to start as soon as possible",
			"want a time after now, %s, have %s", p.local(p.now), p.local(window.At))
	}
	from := p.now
	if earliest := window.Earliest(); earliest.After(from) {
		from = earliest
	}
	p.readDeadline(from)
	p.noteWindow()
}

func (p *parser) readDeadline(from time.Time) {
	if p.deadline == nil {
		return
	}
	const field = "deadline"
	line := p.deadline.Line
	text, ok := p.text(p.deadline, field)
	if !ok {
		return
	}
	deadline := p.moment(text, line, field, from)
	p.file.Spec.Window.Deadline = deadline
	runtime := p.file.Spec.Runtime
	switch {
	case deadline.IsZero():
	case !deadline.After(from):
		p.fail(line, field, "choose a later one", "want a time after %s, have %s",
			p.local(from), p.local(deadline))
	case deadline.Sub(from) < runtime:
		what := "now"
		if !p.file.Spec.Window.Earliest().IsZero() {
			what = "the start"
		}
		p.fail(line, field, "choose a later deadline, or a shorter runtime",
			"from %s, %s, to the deadline, %s, there are %s, and the runtime is %s",
			what, p.local(from), p.local(deadline),
			short(deadline.Sub(from).Round(time.Millisecond)), short(runtime))
	}
}

// noteWindow says aloud how the times were understood.
func (p *parser) noteWindow() {
	window := p.file.Spec.Window
	note := func(what string, t time.Time) {
		if !t.IsZero() {
			p.file.Notes = append(p.file.Notes, what+" "+p.local(t))
		}
	}
	switch {
	case window.NotBefore.IsZero():
	case window.NotBefore.After(p.now):
		note("start not before", window.NotBefore)
	default:
		p.file.Notes = append(p.file.Notes,
			fmt.Sprintf("start.notBefore %s is over: it may start right away", p.local(window.NotBefore)))
	}
	note("start at", window.At)
	note("deadline", window.Deadline)
}
