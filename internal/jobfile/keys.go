package jobfile

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const maxName = 128

// topLevel reads one key of the job file.
func (p *parser) topLevel(key string, node *yaml.Node) bool {
	spec := &p.file.Spec
	switch key {
	case "name":
		spec.Name, _ = p.text(node, key)
		if len(spec.Name) > maxName {
			p.fail(node.Line, key, "shorten it", "want at most %d bytes, have %d", maxName, len(spec.Name))
		}
	case "wasm":
		p.file.Wasm = p.ref(node, key)
		spec.Kind = grid.KindWasm
	case "command":
		p.command(node)
	case "args":
		spec.Args = append(spec.Args, p.texts(node, key)...)
	case "env":
		p.env(node)
	case "inputs":
		p.file.Inputs = p.inputs(node, key)
	case "outputs":
		p.outputs(node)
	case "os":
		spec.OS, _ = p.text(node, key)
	case "arch":
		spec.Arch, _ = p.text(node, key)
	default:
		return p.planning(key, node)
	}
	return true
}

// planning reads the keys that say how much, when and how often.
func (p *parser) planning(key string, node *yaml.Node) bool {
	spec := &p.file.Spec
	switch key {
	case "resources":
		p.mapping(node, key, p.resource, []string{"gflops", "cpus", "memory", "disk", "bandwidth"})
	case "runtime":
		spec.Runtime = p.span(node, key, "10m", time.Millisecond, grid.MaxRuntime)
	case "limit":
		spec.TimeLimit = p.span(node, key, "1h", time.Second, grid.MaxRuntime)
	case "start":
		p.mapping(node, key, p.start, []string{"at", "notBefore"})
	case "deadline":
		// Understood in checkWhole: its next occurrence is the one after the start.
		p.deadline = node
	case "items":
		p.items(node)
	case "count":
		p.wholeNumber(node, key, &p.file.Count, 1, grid.MaxTasks)
	case "retries":
		p.wholeNumber(node, key, &p.file.Retries, 0, grid.MaxRetries)
	case "max-failures":
		p.wholeNumber(node, key, &p.file.MaxFailures, 1, grid.MaxTasks)
	case "ttl":
		p.file.TTL = p.span(node, key, "1s", grid.MinTTL, grid.MaxTTL)
	case "unattended":
		p.unattended(node)
	case "map":
		p.mapping(node, key, p.virtualMap, []string{"kind", "weights", "dimensions"})
	default:
		return p.placing(key, node)
	}
	return true
}

// command is a list, put in front of args.
func (p *parser) command(node *yaml.Node) {
	p.file.Spec.Kind = grid.KindCommand
	if node.Kind == yaml.ScalarNode {
		p.fail(node.Line, "command", `write ["program", "argument"]`,
			"want a list, have %s; no shell splits it", describe(node))
		return
	}
	words := p.texts(node, "command")
	p.program = len(words)
	p.file.Spec.Args = append(words, p.file.Spec.Args...)
	if len(node.Content) == 0 {
		p.fail(node.Line, "command", `write ["program", "argument"]`,
			"want at least the program, have an empty list")
	}
}

func (p *parser) env(node *yaml.Node) {
	p.mapping(node, "env", func(name string, value *yaml.Node) bool {
		text, ok := p.text(value, "env."+name)
		if name == "" || strings.ContainsAny(name, "=\x00") {
			p.fail(value.Line, "env."+name, "rename it", "want a name without = in it")
		} else if ok {
			p.file.Spec.Env = append(p.file.Spec.Env, grid.EnvVar{Name: name, Value: text})
		}
		return true
	}, nil)
	slices.SortFunc(p.file.Spec.Env, func(a, b grid.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
}

// ref reads what names content.
func (p *parser) ref(node *yaml.Node, field string) Ref {
	text, ok := p.text(node, field)
	if !ok {
		return Ref{}
	}
	switch {
	case text == "":
		p.fail(node.Line, field, "write a path or cid:...", "want the name of a file, have nothing")
	case strings.HasPrefix(text, "https:"), strings.HasPrefix(text, "http:"):
		p.fail(node.Line, field, "download it and name the file",
			"URLs are not supported by this version")
	case strings.HasPrefix(text, "cid:"):
		if err := grid.CID(text[len("cid:"):]).Validate(); err != nil {
			p.fail(node.Line, field, "copy it from describe -o json",
				"want cid: and a content identifier, have %q", text)
		}
	}
	return Ref{Text: text, Field: field}
}

func (p *parser) inputs(node *yaml.Node, field string) []InputRef {
	var out []InputRef
	p.list(node, field, func(field string, child *yaml.Node) {
		var in InputRef
		p.mapping(child, field, func(key string, value *yaml.Node) bool {
			switch key {
			case "path":
				in.Path = p.sandboxPath(value, field+".path")
			case "from":
				if value.Kind == yaml.MappingNode {
					in.Take = p.taken(value, field+".from")
				} else {
					in.From = p.ref(value, field+".from")
				}
			default:
				return false
			}
			return true
		}, []string{"path", "from"})
		if child.Kind == yaml.MappingNode {
			p.require(child, field, "path", "from")
		}
		out = append(out, in)
	})
	return out
}

// require names the keys that a mapping lacks.
func (p *parser) require(node *yaml.Node, field string, keys ...string) {
	for _, key := range keys {
		found := false
		for i := 0; i+1 < len(node.Content); i += 2 {
			found = found || node.Content[i].Value == key && node.Content[i+1].Tag != "!!null"
		}
		if !found {
			p.fail(node.Line, field+"."+key, "add "+key+": ...", "missing")
		}
	}
}

// sandboxPath reads an absolute, clean path inside the sandbox.
func (p *parser) sandboxPath(node *yaml.Node, field string) string {
	text, ok := p.text(node, field)
	if ok && (!path.IsAbs(text) || path.Clean(text) != text || text == "/" || len(text) > 4096) {
		p.fail(node.Line, field, "write it like /in/table.csv",
			"want an absolute path inside the sandbox without . and .., have %q", text)
	}
	return text
}

func (p *parser) outputs(node *yaml.Node) {
	p.list(node, "outputs", func(field string, child *yaml.Node) {
		var out grid.Output
		p.mapping(child, field, func(key string, value *yaml.Node) bool {
			switch key {
			case "path":
				out.Path = p.sandboxPath(value, field+".path")
			case "to":
				out.To = p.target(value, field+".to")
			default:
				return false
			}
			return true
		}, []string{"path", "to"})
		if child.Kind == yaml.MappingNode {
			p.require(child, field, "path", "to")
		}
		p.file.Spec.Outputs = append(p.file.Spec.Outputs, out)
	})
}

// target reads where an output goes: inside the job file's folder.
func (p *parser) target(node *yaml.Node, field string) string {
	text, ok := p.text(node, field)
	if !ok {
		return ""
	}
	clean := filepath.ToSlash(filepath.Clean(text))
	if text == "" || clean == "." || !filepath.IsLocal(filepath.FromSlash(clean)) {
		p.fail(node.Line, field, "write it like ./result.txt",
			"want a path below the job file's folder, have %q", text)
	}
	return clean
}

func (p *parser) resource(key string, node *yaml.Node) bool {
	need, field := &p.file.Spec.Need, "resources."+key
	switch key {
	case "gflops":
		need.MFLOPS = int64(math.Round(p.number(node, field, "GFLOPS") * 1000))
	case "cpus":
		need.MilliCPUs = int64(math.Round(p.number(node, field, "cores") * 1000))
		if need.MilliCPUs < 1 {
			p.fail(node.Line, field, "write it like 0.5", "want at least 0.001 cores, have %s",
				describe(node))
		}
	case "memory":
		need.MemoryBytes = p.size(node, field)
	case "disk":
		need.DiskBytes = p.size(node, field)
	case "bandwidth":
		need.NetBps = p.rate(node, field)
	default:
		return false
	}
	return true
}

func (p *parser) items(node *yaml.Node) {
	if node.Kind == yaml.SequenceNode {
		p.itemList(node, "items")
		return
	}
	known := len(p.errs)
	p.mapping(node, "items", func(key string, value *yaml.Node) bool {
		switch key {
		case "list":
			p.itemList(value, "items.list")
		case "glob":
			p.file.Glob, _ = p.text(value, "items.glob")
			_, err := path.Match(p.file.Glob, "")
			if err != nil || p.file.Glob == "" || !filepath.IsLocal(p.file.Glob) {
				p.fail(value.Line, "items.glob", `write it like "data/*"`,
					"want a pattern below the job file's folder, have %q", p.file.Glob)
				p.file.Glob = ""
			}
		default:
			return false
		}
		return true
	}, []string{"glob", "list"})
	switch list := len(p.file.Items) > 0; {
	case len(p.errs) > known:
	case list && p.file.Glob != "":
		p.fail(node.Line, "items", "keep one of them", "list and glob are both given")
	case !list && p.file.Glob == "":
		p.fail(node.Line, "items", "add list or glob, or leave items out", "want items, have none")
	}
}

func (p *parser) itemList(node *yaml.Node, field string) {
	p.list(node, field, func(field string, child *yaml.Node) {
		var item ItemRef
		if child.Kind != yaml.MappingNode {
			item.Value, _ = p.text(child, field)
			p.file.Items = append(p.file.Items, item)
			return
		}
		p.mapping(child, field, func(key string, value *yaml.Node) bool {
			switch key {
			case "value":
				item.Value, _ = p.text(value, field+".value")
			case "inputs":
				item.Inputs = p.inputs(value, field+".inputs")
				p.refuseTaken(item.Inputs, field+".inputs")
			default:
				return false
			}
			return true
		}, []string{"value", "inputs"})
		p.file.Items = append(p.file.Items, item)
	})
	if node.Kind == yaml.SequenceNode && len(node.Content) == 0 {
		p.fail(node.Line, field, "list at least one, or leave items out",
			"want at least one item, have an empty list")
	}
}

// wholeNumber reads a number within bounds. With another one what is there stays.
func (p *parser) wholeNumber(node *yaml.Node, field string, into *uint32, least, most uint64) {
	text, ok := p.text(node, field)
	if !ok {
		return
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < least || n > most {
		p.fail(node.Line, field, fmt.Sprintf("write it like %d", min(100, most/10)),
			"want a whole number from %d to %d, have %q", least, most, text)
		return
	}
	*into = uint32(n)
}

func (p *parser) unattended(node *yaml.Node) {
	text, ok := p.text(node, "unattended")
	if !ok {
		return
	}
	u, err := grid.ParseUnattended(text)
	if err != nil || text == "" {
		p.fail(node.Line, "unattended", "leave it out for freeze",
			"want freeze, finish or stop, have %q", text)
	}
	p.file.Spec.Unattended = u
}

func (p *parser) virtualMap(key string, node *yaml.Node) bool {
	switch key {
	case "kind":
		switch text, ok := p.text(node, "map.kind"); {
		case !ok:
		case text == grid.MapThesis.String():
			p.file.Spec.Map = grid.MapThesis
		case text == grid.MapSeconds.String():
			p.file.Spec.Map = grid.MapSeconds
		default:
			p.fail(node.Line, "map.kind", "write thesis or seconds", "want thesis or seconds, have %q", text)
		}
	case "weights":
		w := &p.file.Spec.Weights
		p.mapping(node, "map.weights", func(key string, value *yaml.Node) bool {
			at := map[string]*float64{"C": &w.C, "M": &w.M, "F": &w.F, "P": &w.P}[key]
			if at != nil {
				*at = p.number(value, "map.weights."+key, "weight")
			}
			return at != nil
		}, []string{"C", "F", "M", "P"})
	case "dimensions":
		p.dimensions(node)
	default:
		return false
	}
	return true
}
