package jobfile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The words of placing.
const (
	placingOnce  = "once"
	placingFlood = "flood"
)

// minReserve is the shortest reservation.
const minReserve = time.Second

// placingKeys are the keys that say after what, in what and beside whom a job runs.
func placingKeys() []string {
	return []string{
		"reserve", "after", "priority", "project", "reservation", "overrun", "split", "communication",
		"placing", "hold", "checkpoint", "replicas", "agreement", "verify",
		keySignature, keyModuleSignature, keyEncrypt,
	}
}

// placing reads one of placingKeys.
func (p *parser) placing(key string, node *yaml.Node) bool {
	spec := &p.file.Spec
	switch key {
	case "reserve":
		spec.Kind, spec.Runtime = grid.KindReservation, p.span(node, key, "2h",
			minReserve, grid.MaxRuntime)
	case "after":
		p.after(node)
	case "priority":
		spec.Priority = p.priority(node)
	case "project":
		spec.Project, _ = p.text(node, key)
	case "reservation":
		p.file.Reservation = p.jobRef(node, key)
	case "overrun":
		word := p.oneOf(node, key, grid.OverrunSuspend.String(), grid.OverrunStop.String())
		spec.Overrun = grid.Overrun(max(word, 0))
	case "split":
		words := []grid.Split{grid.SplitNever, grid.SplitIfNeeded, grid.SplitGreedy}
		if at := p.oneOf(node, key, words[0].String(), words[1].String(), words[2].String()); at >= 0 {
			p.file.Split = words[at]
		}
	case "communication":
		p.file.CommBytes = p.size(node, key)
	case "checkpoint":
		spec.Checkpoint = p.saving(node)
	case "hold":
		p.file.Held = p.oneOf(node, key, "false", "true") == 1
	case keySignature, keyModuleSignature:
		p.signature(key, node)
	case "placing":
		p.file.Flood = p.oneOf(node, key, placingOnce, placingFlood) == 1
	default:
		return p.redundancy(key, node)
	}
	return true
}

// oneOf reads one of some words and gives its place, -1 for another.
func (p *parser) oneOf(node *yaml.Node, field string, words ...string) int {
	text, ok := p.text(node, field)
	if !ok {
		return -1
	}
	at := slices.Index(words, text)
	if at < 0 {
		list := strings.Join(words, ", ")
		p.fail(node.Line, field, "write one of them", "want one of %s, have %q", list, text)
	}
	return at
}

// saving reads when a task's state is saved.
func (p *parser) saving(node *yaml.Node) grid.Saving {
	const field = "checkpoint"
	text, ok := p.text(node, field)
	if !ok {
		return grid.Saving{}
	}
	s, err := grid.ParseSaving(text)
	if err != nil {
		problem := strings.TrimPrefix(err.Error(), grid.ErrInvalid.Error()+": "+field+": ")
		p.fail(node.Line, field, "leave it out for auto", "%s", problem)
	}
	return s
}

func (p *parser) priority(node *yaml.Node) int {
	text, ok := p.text(node, "priority")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < -grid.MaxPriority || n > grid.MaxPriority {
		p.fail(node.Line, "priority", "write it like 10; higher goes first among your own jobs",
			"want a whole number from -%d to %d, have %q", grid.MaxPriority, grid.MaxPriority, text)
		return 0
	}
	return n
}

// after reads one job or a list of them.
func (p *parser) after(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode {
		p.file.After = []Ref{p.jobRef(node, "after")}
		return
	}
	p.list(node, "after", func(field string, child *yaml.Node) {
		p.file.After = append(p.file.After, p.jobRef(child, field))
	})
	if len(p.file.After) > grid.MaxAfter {
		p.fail(node.Line, "after", "let it wait for a job that waits for the others",
			"want at most %d jobs, have %d", grid.MaxAfter, len(p.file.After))
		p.file.After = nil
	}
}

// jobRef reads a job's ID or what one begins with.
func (p *parser) jobRef(node *yaml.Node, field string) Ref {
	text, ok := p.text(node, field)
	if p.flow {
		if ok && !isFlowName(text) {
			p.fail(node.Line, field, "name a job of this flow", "want a job's name, have %q", text)
		}
		return Ref{Text: text, Field: field}
	}
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	if ok && (text == "" || len(text) > 16 || strings.Trim(text, alphabet) != "") {
		p.fail(node.Line, field, "copy it from submit list",
			"want a job's id, or what it begins with, have %q", text)
	}
	return Ref{Text: text, Field: field}
}

// checkPlacing looks at which of these keys go together.
func (p *parser) checkPlacing(seen map[string]int) {
	f := p.file
	if f.Spec.Kind == grid.KindReservation {
		p.checkReservation(seen)
	}
	if _, given := seen["communication"]; given && f.Split == grid.SplitNone {
		p.fail(seen["communication"], "communication", "add split: if-needed, or remove it",
			"only the parts of a split job exchange data")
	}
	if line, given := seen["retries"]; given && f.Split != grid.SplitNone {
		p.fail(line, "retries", "remove one of them",
			"the parts of a split job run together, and none of them again alone")
	}
	switch {
	case !f.Flood:
	case f.Split != grid.SplitNone:
		p.fail(seen["placing"], "placing", "remove one of them",
			"the parts of a split job cannot be queued at several sites")
	case f.Spec.Window.Promised():
		p.fail(seen["placing"], "placing", "remove placing, or start.at and deadline",
			"a job with a fixed start or a deadline is promised by one site and cannot be queued at several")
	}
	if f.Spec.Checkpoint.Every > 0 && f.Split != grid.SplitNone {
		p.fail(seen["checkpoint"], "checkpoint", "remove it",
			"the parts of a split job run together and cannot go on one by one")
	}
	p.checkRedundancy(seen)
	p.checkEncrypt(seen)
	if len(f.Spec.Project) > 64 {
		p.fail(seen["project"], "project", "shorten it", "want at most 64 bytes, have %d",
			len(f.Spec.Project))
	}
}

// checkReservation refuses what nothing that only holds capacity can have.
func (p *parser) checkReservation(seen map[string]int) {
	for _, key := range []string{
		"args", "env", "inputs", "outputs", "items", "runtime", "limit", "deadline", "after",
		"reservation", "overrun", "split",
		"communication", "placing", "hold", "retries", "max-failures", "checkpoint",
		"replicas", "agreement", "verify", keySignature, keyModuleSignature, keyEncrypt,
	} {
		if line, given := seen[key]; given {
			p.fail(line, key, "remove it; give it to the jobs that run in the reservation",
				"a reservation only holds capacity")
		}
	}
	if _, given := seen["start"]; !given || p.file.Spec.Window.At.IsZero() && !p.failed("start.at") {
		p.fail(seen["reserve"], "start.at", "add start: {at: 14:00}", "a reservation needs its start")
	}
}

// failed reports whether something is wrong with a field already.
func (p *parser) failed(field string) bool {
	return slices.ContainsFunc(p.errs, func(e *FieldError) bool { return e.Field == field })
}

// Complete finds the jobs that the job file names, which may be written as what
// their IDs begin with; find is told which field asks. The error is an Errors that
// names field and line, behind which errors.Is sees those of find.
func (p *Plan) Complete(find func(ref Ref) (grid.JobID, error)) error {
	var errs Errors
	get := func(ref Ref) grid.JobID {
		id, err := find(ref)
		if err != nil {
			errs = append(errs, &FieldError{
				Line: p.File.lines[ref.Field], Field: ref.Field, Text: err.Error(),
				Remedy: "submit list shows your jobs", cause: err,
			})
		}
		return id
	}
	p.after = nil
	for _, ref := range p.File.After {
		p.after = append(p.after, get(ref))
	}
	p.takes = nil
	for _, in := range p.File.Inputs {
		if in.isTaken() {
			p.takes = append(p.takes, grid.Take{
				Path: in.Path, Job: get(in.Take.Job), Output: in.Take.Output, Each: in.Take.Each,
			})
		}
	}
	if p.File.Reservation != (Ref{}) {
		p.reservation = get(p.File.Reservation)
	}
	return errs.sorted(p.name)
}

// others are the jobs that were found, or what the job file has for them.
func (p *Plan) others() (after []grid.JobID, reservation grid.JobID) {
	after, reservation = slices.Clone(p.after), p.reservation
	if after == nil {
		for _, ref := range p.File.After {
			after = append(after, grid.JobID(ref.Text))
		}
	}
	for _, take := range p.takes {
		if !slices.Contains(after, take.Job) {
			after = append(after, take.Job)
		}
	}
	if reservation == "" {
		reservation = grid.JobID(p.File.Reservation.Text)
	}
	return after, reservation
}
