package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// advanced is the key under which a file keeps the settings that few need; they may
// stand at the top as well.
const advanced = "advanced"

// entry is a setting in a file: a key whose value is no mapping.
type entry struct {
	name   string // dotted, without "advanced."
	key    *yaml.Node
	value  *yaml.Node
	within []*yaml.Node // the keys and values of the mappings around it, outermost first
	parent *yaml.Node   // the mapping that holds it
}

// parseFile reads a file's text as settings. root is nil if it has none.
func parseFile(file string, text []byte) (root *yaml.Node, entries []entry, err error) {
	var doc yaml.Node
	if err = yaml.Unmarshal(text, &doc); err != nil {
		return nil, nil, fmt.Errorf("%s: not YAML: %w", file, err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil, nil, nil
	}
	root = doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, nil, fmt.Errorf("%s:%d: want settings as name: value, have %q",
			file, root.Line, root.Value)
	}
	entries, err = entriesOf(file, "", nil, root)
	return root, entries, err
}

func entriesOf(file, name string, within []*yaml.Node, node *yaml.Node) ([]entry, error) {
	var entries []entry
	var errs []error
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		dotted := strings.TrimPrefix(name+"."+key.Value, ".")
		if seen[key.Value] {
			errs = append(errs, fmt.Errorf("%s:%d: %s: given twice; remove one", file, key.Line, dotted))
			continue
		}
		seen[key.Value] = true
		if value.Kind == yaml.MappingNode {
			inner, err := entriesOf(file, dotted, append(slices.Clip(within), key, value), value)
			entries, errs = append(entries, inner...), append(errs, err)
			continue
		}
		entries = append(entries, entry{
			name: strings.TrimPrefix(dotted, advanced+"."), key: key, value: value, within: within,
			parent: node,
		})
	}
	return entries, errors.Join(errs...)
}

// text is the value of an entry as a flag would have it; a list becomes a text with
// commas. An entry that has no value says nothing.
func (e entry) text(file string) (text string, says bool, err error) {
	switch e.value.Kind {
	case yaml.ScalarNode:
		return e.value.Value, e.value.Tag != "!!null", nil
	case yaml.SequenceNode:
		var parts []string
		for _, part := range e.value.Content {
			if part.Kind != yaml.ScalarNode || strings.Contains(part.Value, ",") {
				return "", false, fmt.Errorf("%s:%d: %s: want a list of plain texts without commas",
					file, part.Line, e.name)
			}
			parts = append(parts, part.Value)
		}
		return strings.Join(parts, ","), true, nil
	default:
		return "", false, fmt.Errorf("%s:%d: %s: anchors and aliases are not allowed here; "+
			"write the value out",
			file, e.value.Line, e.name)
	}
}

// fromYAML gives the settings of a file's text with their dotted names.
func fromYAML(file string, text []byte) ([]value, error) {
	_, entries, err := parseFile(file, text)
	errs := []error{err}
	var values []value
	for _, e := range entries {
		text, says, err := e.text(file)
		errs = append(errs, err)
		if says && err == nil {
			values = append(values, value{
				name: e.name, text: text, layer: LayerFile, line: e.key.Line,
				source: fmt.Sprintf("%s:%d", file, e.key.Line),
			})
		}
	}
	return values, errors.Join(errs...)
}

// salvageMost bounds the lines of a text that is salvaged: each is tried.
const salvageMost = 1000

// salvage is a text that is YAML, or what is left of it without the one line that
// keeps it from being so.
func salvage(text []byte) []byte {
	parses := func(text []byte) bool {
		_, _, err := parseFile("", text)
		return err == nil
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if parses(text) || len(lines) > salvageMost {
		return text
	}
	for i := range lines {
		if rest := bytes.Join(slices.Concat(lines[:i], lines[i+1:]), nil); parses(rest) {
			return rest
		}
	}
	return text
}
