package jobfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Options say how a job file is read.
type Options struct {
	Name string // the file's name, for messages
	// Now has the submitter's zone, which applies to times without one. Such a time means its
	// next occurrence.
	Now     time.Time
	Runtime time.Duration // for jobs that give none; 0 = DefaultRuntime
	// AllowOutside lets inputs lie outside of the job file's folder. A file of somebody else could
	// send away whatever its reader can read.
	AllowOutside bool
	// Unsigned leaves the signature out that the file names, as before it is made.
	Unsigned bool
	// Encrypt is as encrypt: true in the file.
	Encrypt bool
}

// Parse reads a job file. The error is an Errors with everything that is wrong.
// The file it gives beside an error holds what could be read, so that Resolve can
// look for further mistakes.
func Parse(data []byte, o Options) (*File, error) {
	p := &parser{file: newFile(o), now: o.Now, runtime: o.Runtime}
	root, broken := parseText(data)
	if broken != nil {
		p.errs = append(p.errs, broken)
		return p.file, p.errs.sorted(o.Name)
	}
	p.root(root)
	return p.file, p.errs.sorted(o.Name)
}

// parser collects a file and its mistakes.
type parser struct {
	file     *File
	errs     Errors
	now      time.Time
	runtime  time.Duration
	deadline *yaml.Node
	flow     bool // other jobs are named as in a flow
	program  int  // of Args, the words that are command's
}

func (p *parser) fail(line int, field, remedy, format string, args ...any) {
	p.errs = append(p.errs,
		&FieldError{Line: line, Field: field, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// unsupported are keys of the job file that this version does not act on.
func unsupported() []string {
	return []string{
		"container", "domains",
	}
}

// root reads the document: a job file, or what describe wrote, {job, status}.
func (p *parser) root(node *yaml.Node) {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == "job" && p.isDescription(node) {
				node = node.Content[i+1]
				break
			}
		}
	}
	seen := map[string]int{}
	p.mapping(node, "", func(key string, value *yaml.Node) bool {
		seen[key] = value.Line
		return p.topLevel(key, value)
	}, topKeys())
	p.checkWhole(seen, node.Line)
}

// isDescription reports whether the mapping has job and status and nothing else.
func (p *parser) isDescription(node *yaml.Node) bool {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i].Value; key != "job" && key != "status" {
			return false
		}
	}
	return true
}

func topKeys() []string {
	return append([]string{
		"name", "wasm", "command", "args", "env", "inputs", "outputs", "resources", "os",
		"arch", "runtime", "limit",
		"start", "deadline", "items", "count", "retries", "max-failures", "ttl",
		"unattended", "map",
	}, placingKeys()...)
}

// mapping calls take for each key of a mapping. take says whether it knows the
// key. A value of null counts as not given.
func (p *parser) mapping(
	node *yaml.Node, field string, take func(string, *yaml.Node) bool, known []string,
) {
	if node.Kind != yaml.MappingNode {
		p.fail(node.Line, field, "write it as key: value", "want keys with values, have %s",
			describe(node))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		full := strings.TrimPrefix(field+"."+key.Value, ".")
		switch {
		case key.Kind != yaml.ScalarNode:
			p.fail(key.Line, field, "write a plain word", "want a word as key, have %s", describe(key))
		case seen[key.Value]:
			p.fail(key.Line, full, "remove one of them", "given twice")
		case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
			if known != nil && !slices.Contains(known, key.Value) && !slices.Contains(unsupported(), full) {
				p.unknown(key, full, known)
			}
		case slices.Contains(unsupported(), full):
			p.fail(key.Line, full, "remove it", "not supported by this version")
		case !take(key.Value, value):
			p.unknown(key, full, known)
		}
		seen[key.Value] = true
	}
}

func (p *parser) unknown(key *yaml.Node, full string, known []string) {
	if near := grid.NearestWord(key.Value, known); near != "" {
		p.fail(key.Line, full, fmt.Sprintf("did you mean %s?", near), "no such key")
		return
	}
	p.fail(key.Line, full, "remove it", "no such key; want one of %s", strings.Join(known, ", "))
}

// describe names the content of a node, for messages.
func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (they are not supported)"
	default:
		if len(node.Value) > 60 {
			return strconv.Quote(node.Value[:60] + "...")
		}
		return strconv.Quote(node.Value)
	}
}

// text reads one plain value, and notes the field's line for what is found out later.
func (p *parser) text(node *yaml.Node, field string) (string, bool) {
	p.file.lines[field] = node.Line
	if node.Kind != yaml.ScalarNode {
		p.fail(node.Line, field, "write one value", "want a text, have %s", describe(node))
		return "", false
	}
	if strings.ContainsRune(node.Value, 0) {
		p.fail(node.Line, field, "remove it", "holds a zero byte")
		return "", false
	}
	return node.Value, true
}

// list reads a list and calls take for each entry.
func (p *parser) list(node *yaml.Node, field string, take func(string, *yaml.Node)) {
	if node.Kind != yaml.SequenceNode {
		p.fail(node.Line, field, "write [a, b] or one - entry a line", "want a list, have %s",
			describe(node))
		return
	}
	if len(node.Content) > grid.MaxTasks {
		p.fail(node.Line, field, "split the job", "want at most %d entries, have %d",
			grid.MaxTasks, len(node.Content))
		return
	}
	for i, child := range node.Content {
		take(fmt.Sprintf("%s[%d]", field, i), child)
	}
}

func (p *parser) texts(node *yaml.Node, field string) []string {
	var out []string
	p.list(node, field, func(field string, child *yaml.Node) {
		if text, ok := p.text(child, field); ok {
			out = append(out, text)
		}
	})
	return out
}

func (p *parser) span(
	node *yaml.Node, field, example string, low, high time.Duration,
) time.Duration {
	text, ok := p.text(node, field)
	if !ok {
		return 0
	}
	d, err := grid.ParseSpan(text)
	if err != nil {
		p.fail(node.Line, field, "write it like "+example,
			"want a number with a unit (ms, s, m, h, d), have %q", text)
		return 0
	}
	if d < low || d > high {
		p.fail(node.Line, field, "choose a value in that range", "want %s to %s, have %s",
			low, high, text)
		return 0
	}
	return d
}

func (p *parser) size(node *yaml.Node, field string) int64 {
	text, ok := p.text(node, field)
	if !ok {
		return 0
	}
	n, err := grid.ParseBytes(text)
	if err != nil {
		p.fail(node.Line, field, "write it like 512MiB",
			"want a size with a unit (B, KiB, MiB, GiB, TiB), have %q", text)
	}
	return n
}

func (p *parser) rate(node *yaml.Node, field string) int64 {
	text, ok := p.text(node, field)
	if !ok {
		return 0
	}
	n, err := grid.ParseRate(text)
	if err != nil {
		p.fail(node.Line, field, "write it like 20Mbit/s",
			"want a rate with a unit (bit/s, kbit/s, Mbit/s, Gbit/s), have %q", text)
	}
	return n
}

func (p *parser) number(node *yaml.Node, field, unit string) float64 {
	text, ok := p.text(node, field)
	if !ok {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || v > 1e9 {
		p.fail(node.Line, field, "write it like 1.5",
			"want a number of %s, at least 0, have %q", unit, text)
		return 0
	}
	return v
}
