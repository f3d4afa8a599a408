package jobfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Flow is several jobs of one file, with what they need of each other.
type Flow struct {
	Name string    // empty: it has none
	Jobs []FlowJob // in the order of the file
}

// FlowJob is one job of a flow.
type FlowJob struct {
	Name  string // in the flow
	Plan  *Plan
	Needs []string // names of jobs that must be done before, in the order of the file
}

// MaxFlowJobs bounds the jobs of a flow.
const MaxFlowJobs = grid.MaxAfter

const maxFlowName = 64

// IsFlow reports whether a text is a file of several jobs rather than of one.
func IsFlow(data []byte) bool {
	root, broken := parseText(data)
	return broken == nil && valueOf(root, "jobs") != nil
}

// valueOf is the value of a key of a mapping, or nil.
func valueOf(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// LoadFlow reads a flow and resolves the files of its jobs in a folder. The error is an Errors with
// everything that is wrong: in the text, on the disk, and between the jobs.
func LoadFlow(data []byte, folder string, o Options) (*Flow, error) {
	root, broken := parseText(data)
	if broken != nil {
		return nil, Errors{broken}.sorted(o.Name)
	}
	r := &flowReader{options: o, folder: folder, parser: &parser{file: newFile(o)}, flow: &Flow{}}
	r.read(root)
	if len(r.errs) == 0 {
		r.link()
	}
	if err := r.distinct().sorted(o.Name); err != nil {
		return nil, err
	}
	return r.flow, nil
}

// flowReader collects a flow and its mistakes.
type flowReader struct {
	*parser // of the file itself
	options Options
	folder  string
	flow    *Flow
	lines   []int // of each job's name
}

func (r *flowReader) read(root *yaml.Node) {
	var defaults, list *yaml.Node
	r.mapping(root, "", func(key string, value *yaml.Node) bool {
		switch key {
		case "name":
			r.flow.Name, _ = r.text(value, key)
			if !isFlowName(r.flow.Name) {
				r.failName(value.Line, key, r.flow.Name)
			}
		case "defaults":
			defaults = value
		case "jobs":
			list = value
		default:
			return false
		}
		return true
	}, []string{"name", "defaults", "jobs"})
	if defaults != nil && defaults.Kind != yaml.MappingNode {
		r.fail(defaults.Line, "defaults", "write it as key: value",
			"want keys of a job file, have %s", describe(defaults))
		defaults = nil
	}
	if list == nil {
		r.fail(root.Line, "jobs", "write jobs: {name: {wasm: FILE, ...}}", "missing")
		return
	}
	r.mapping(list, "jobs", func(name string, node *yaml.Node) bool {
		r.job(name, node, defaults)
		return true
	}, nil)
	if n := len(r.flow.Jobs); n == 0 && len(r.errs) == 0 || n > MaxFlowJobs {
		r.fail(list.Line, "jobs", "write name: {wasm: FILE, ...} for each",
			"want 1 to %d jobs, have %d", MaxFlowJobs, n)
	}
}

// job reads one job, as a job file with the defaults of all.
func (r *flowReader) job(name string, node, defaults *yaml.Node) {
	field := "jobs." + name
	if !isFlowName(name) {
		r.failName(node.Line, field, name)
		return
	}
	p := &parser{
		file: newFile(r.options), now: r.options.Now, runtime: r.options.Runtime, flow: true,
	}
	p.root(withDefaults(node, defaults))
	plan, err := p.file.Resolve("", r.folder)
	found := p.errs
	if more, ok := errors.AsType[Errors](err); ok {
		found = append(found, more...)
	} else if err != nil {
		found = append(found, &FieldError{Text: err.Error(), cause: err})
	}
	for _, e := range found {
		e.Field = strings.TrimSuffix(field+"."+e.Field, ".")
		r.errs = append(r.errs, e)
	}
	for i, note := range p.file.Notes {
		p.file.Notes[i] = name + ": " + note
	}
	p.file.Spec.Name = r.fullName(name, p.file.Spec.Name)
	if plan == nil {
		plan = &Plan{File: p.file}
	}
	plan.name = r.options.Name
	r.flow.Jobs = append(r.flow.Jobs, FlowJob{Name: name, Plan: plan})
	r.lines = append(r.lines, node.Line)
}

// fullName is the name under which a job is listed: the one it gives itself, or FLOW/JOB.
func (r *flowReader) fullName(name, own string) string {
	switch {
	case own != "":
		return own
	case r.flow.Name != "":
		return r.flow.Name + "/" + name
	default:
		return name
	}
}

// withDefaults is a job with the keys of defaults that it does not have; of resources and env the
// single ones.
func withDefaults(job, defaults *yaml.Node) *yaml.Node {
	if defaults == nil || job.Kind != yaml.MappingNode {
		return job
	}
	all := *job
	all.Content = slices.Clone(job.Content)
	for i := 0; i+1 < len(defaults.Content); i += 2 {
		key, value := defaults.Content[i], defaults.Content[i+1]
		own := valueOf(job, key.Value)
		at := slices.IndexFunc(all.Content, func(n *yaml.Node) bool { return n == own })
		switch {
		case at < 0:
			all.Content = append(all.Content, key, value)
		case (key.Value == "resources" || key.Value == "env") && value.Kind == yaml.MappingNode:
			all.Content[at] = withDefaults(all.Content[at], value)
		}
	}
	return &all
}

func (r *flowReader) failName(line int, field, name string) {
	r.fail(line, field, "rename it",
		"want at most %d letters, digits, - and _, beginning with a letter or a digit, have %q",
		maxFlowName, name)
}

// isFlowName reports whether a text can name a job of a flow.
func isFlowName(name string) bool {
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return name != "" && len(name) <= maxFlowName
}

// distinct is all mistakes, each once: what is wrong in the defaults is wrong in every job.
func (r *flowReader) distinct() Errors {
	seen := map[string]bool{}
	return slices.DeleteFunc(r.errs, func(e *FieldError) bool {
		_, rest, _ := strings.Cut(strings.TrimPrefix(e.Field, "jobs."), ".")
		key := fmt.Sprintf("%d %s %s", e.Line, rest, e.Text)
		double := seen[key] && e.Line > 0
		seen[key] = true
		return double
	})
}
