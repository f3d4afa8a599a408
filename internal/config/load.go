package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Sources is where a configuration comes from, weakest first.
type Sources struct {
	File     string                      // YAML file; empty = none
	Required bool                        // the file must exist
	Env      func(string) (string, bool) // os.LookupEnv or a test's own; nil = no variables
	Flags    map[string]string           // flags that were set, by name without dashes
}

// maxFileBytes bounds a configuration file.
const maxFileBytes = 1 << 20

// LoadAgent reads an agent's configuration and validates it. The error joins
// everything that is wrong.
func LoadAgent(src Sources) (Agent, error) {
	env := lookup(src.Env)
	values, err := gather(src, agentSettings())
	c := Default(PresetLAN, env)
	for _, v := range values {
		if v.name == "preset" {
			c = Default(v.text, env)
		}
	}
	err = errors.Join(err, apply(&c, agentSettings(), values), c.Validate())
	return c, err
}

// LoadSubmit reads the command line's configuration and validates it.
func LoadSubmit(src Sources) (Submit, error) {
	values, err := gather(src, submitSettings())
	c := DefaultSubmit(lookup(src.Env))
	err = errors.Join(err, apply(&c, submitSettings(), values), c.Validate())
	return c, err
}

// AgentKeys lists an agent's settings with their defaults.
func AgentKeys(env func(string) (string, bool)) []Key {
	c := Default(PresetLAN, lookup(env))
	return keysOf(&c, agentSettings())
}

// SubmitKeys lists the command line's settings with their defaults.
func SubmitKeys(env func(string) (string, bool)) []Key {
	c := DefaultSubmit(lookup(env))
	return keysOf(&c, submitSettings())
}

// String is the configuration as a YAML-like list of its settings, secrets
// hidden.
func (c Agent) String() string { return show(&c, agentSettings()) }

// String is the configuration as a list of its settings, the token hidden.
func (c Submit) String() string { return show(&c, submitSettings()) }

func show[C any](c *C, settings []setting[C]) string {
	var b strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&b, "%s: %s\n", s.name, s.get(c))
	}
	return b.String()
}

func keysOf[C any](c *C, settings []setting[C]) []Key {
	var keys []Key
	for _, s := range settings {
		keys = append(keys, Key{Name: s.name, Flag: s.flag(), Env: s.env(), Help: s.help, Default: s.get(c)})
	}
	return keys
}

func lookup(env func(string) (string, bool)) func(string) (string, bool) {
	if env == nil {
		return func(string) (string, bool) { return "", false }
	}
	return env
}

// value is one setting as some source gives it.
type value struct{ name, text, source string }

// gather collects what all sources say, weakest first, with every mistake.
func gather[C any](src Sources, settings []setting[C]) ([]value, error) {
	values, err := fromFile(src)
	errs := []error{err}
	names := make([]string, 0, len(settings))
	for _, s := range settings {
		names = append(names, s.name)
		if text, ok := lookup(src.Env)(s.env()); ok {
			values = append(values, value{name: s.name, text: text, source: "environment, " + s.env()})
		}
	}
	for _, s := range settings {
		if text, ok := src.Flags[s.flag()]; ok {
			values = append(values, value{name: s.name, text: text, source: "flag --" + s.flag()})
		}
	}
	kept := values[:0]
	for _, v := range values {
		if slices.Contains(names, v.name) {
			kept = append(kept, v)
			continue
		}
		errs = append(errs, unknown(v, names))
	}
	return kept, errors.Join(errs...)
}

func unknown(v value, names []string) error {
	if near := grid.NearestWord(v.name, names); near != "" {
		return fmt.Errorf("%s: %s: no such setting; did you mean %s?", v.source, v.name, near)
	}
	return fmt.Errorf("%s: %s: no such setting; remove it (known: %s)", v.source, v.name, strings.Join(names, ", "))
}

func apply[C any](c *C, settings []setting[C], values []value) error {
	var errs []error
	for _, v := range values {
		for _, s := range settings {
			if s.name != v.name {
				continue
			}
			if err := s.set(c, v.text); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", v.source, v.name, err))
			}
		}
	}
	return errors.Join(errs...)
}

func fromFile(src Sources) ([]value, error) {
	if src.File == "" {
		return nil, nil
	}
	info, err := os.Stat(src.File)
	if errors.Is(err, fs.ErrNotExist) && !src.Required {
		return nil, nil
	}
	if err == nil && info.Size() > maxFileBytes {
		err = fmt.Errorf("larger than %s", grid.FormatBytes(maxFileBytes))
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", src.File, err)
	}
	data, err := os.ReadFile(filepath.Clean(src.File))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return fromYAML(filepath.Base(src.File), data)
}

// fromYAML flattens a document into dotted names; a list becomes a text with
// commas.
func fromYAML(file string, data []byte) ([]value, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: no YAML: %w", file, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	return flatten(file, "", doc.Content[0])
}

func flatten(file, name string, node *yaml.Node) ([]value, error) {
	source := fmt.Sprintf("%s:%d", file, node.Line)
	switch node.Kind {
	case yaml.ScalarNode:
		if name == "" {
			return nil, fmt.Errorf("%s: want settings as name: value, have %q", source, node.Value)
		}
		if node.Tag == "!!null" {
			return nil, nil
		}
		return []value{{name: name, text: node.Value, source: source}}, nil
	case yaml.SequenceNode:
		var parts []string
		for _, part := range node.Content {
			if part.Kind != yaml.ScalarNode || strings.Contains(part.Value, ",") {
				return nil, fmt.Errorf("%s:%d: %s: want a list of plain texts without commas", file, part.Line, name)
			}
			parts = append(parts, part.Value)
		}
		return []value{{name: name, text: strings.Join(parts, ","), source: source}}, nil
	case yaml.MappingNode:
		return flattenMapping(file, name, node)
	default:
		return nil, fmt.Errorf("%s: %s: anchors and aliases are not allowed here; write the value out", source, name)
	}
}

func flattenMapping(file, name string, node *yaml.Node) ([]value, error) {
	var values []value
	var errs []error
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		dotted := strings.TrimPrefix(name+"."+key.Value, ".")
		if seen[key.Value] {
			errs = append(errs, fmt.Errorf("%s:%d: %s: given twice; remove one", file, key.Line, dotted))
			continue
		}
		seen[key.Value] = true
		inner, err := flatten(file, dotted, node.Content[i+1])
		values, errs = append(values, inner...), append(errs, err)
	}
	return values, errors.Join(errs...)
}
