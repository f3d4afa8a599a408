package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Value is one setting to be written into a file.
type Value struct {
	Name string // dotted: "ceilings.memory"
	Text string // as a flag would have it
}

// errNoFile says that a text is no configuration file, or that it is written in a way
// that cannot be changed here.
var errNoFile = errors.New("the file cannot be changed here; use an editor")

// Edit sets values in the text of a configuration file and leaves everything else as
// it is: other settings, their order, blank lines and comments. A setting that stands
// in the file is changed in its place. One that stands there as a comment is written
// over the comment; others are added at the end, those that are not documented under
// advanced:. What the text says about other settings is compared before and after.
func Edit(text []byte, values []Value) ([]byte, error) {
	return edit(text, func(want map[string]string) ([]byte, error) {
		var err error
		for _, v := range values {
			if text, err = set(text, v); err != nil {
				return nil, fmt.Errorf("%s: %w", v.Name, err)
			}
			want[v.Name] = v.Text
		}
		return text, nil
	})
}

// Remove takes settings out of the text of a configuration file, so that their
// defaults count again. A line that explains a documented setting stays as a comment.
func Remove(text []byte, names []string) ([]byte, error) {
	return edit(text, func(want map[string]string) ([]byte, error) {
		var err error
		for _, name := range names {
			if text, err = remove(text, name); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			delete(want, name)
		}
		return text, nil
	})
}

// edit changes a text and makes sure that afterwards it says what is wanted, no more
// and no less. change is given what the text says and notes what it changes.
func edit(text []byte, change func(want map[string]string) ([]byte, error)) ([]byte, error) {
	want, err := Says(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoFile, err)
	}
	after, err := change(want)
	if err != nil {
		return nil, err
	}
	if have, err := Says(after); err != nil || !maps.Equal(want, have) {
		return nil, errNoFile
	}
	return after, nil
}

// Says returns the value that the text of a configuration file gives each setting, as it stands
// there.
func Says(text []byte) (map[string]string, error) {
	values, err := fromYAML("configuration", text)
	said := make(map[string]string)
	for _, v := range values {
		said[v.name] = v.text
	}
	return said, errors.Join(err, twice(values))
}

// set writes one value.
func set(text []byte, v Value) ([]byte, error) {
	root, entries, err := parseFile("configuration", text)
	if err != nil {
		return nil, err
	}
	written := v.Name + ": " + quoted(v.Text)
	for _, e := range entries {
		if e.name == v.Name {
			return replaceValue(text, e, quoted(v.Text))
		}
	}
	if from, to, found := commented(text, v.Name); found {
		return splice(text, from, to, written), nil
	}
	if !isDocumented(v.Name) && root != nil {
		isBlock := func(n *yaml.Node) bool { return n.Value == advanced }
		if i := slices.IndexFunc(root.Content, isBlock); i >= 0 {
			return insertUnder(text, root.Content[i], root.Content[i+1], written), nil
		}
	}
	if !isDocumented(v.Name) {
		written = advanced + ":\n  " + written
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		written = "\n" + written
	}
	return append(slices.Clip(text), written+"\n"...), nil
}

// commented finds the line that stands for a setting which is not chosen: "#name: value".
func commented(text []byte, name string) (from, to int, found bool) {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("#"+name+":")) {
			return from, from + len(bytes.TrimRight(line, "\r\n")), true
		}
		from += len(line)
	}
	return 0, 0, false
}

func isDocumented(name string) bool {
	settings := agentSettings()
	i := slices.IndexFunc(settings, func(s setting[Agent]) bool { return s.Name == name })
	return i >= 0 && settings[i].Documented
}

// insertUnder adds a line to the block of a key; one in braces stays as it is, and the
// line goes to the top.
func insertUnder(text []byte, key, block *yaml.Node, written string) []byte {
	if block.Kind == yaml.MappingNode && block.Style&yaml.FlowStyle != 0 {
		at := lineStart(text, key.Line)
		return splice(text, at, at, written+"\n")
	}
	indent := 2
	if block.Kind == yaml.MappingNode {
		indent = block.Column - 1
	}
	at := lineStart(text, key.Line+1)
	line := strings.Repeat(" ", indent) + written + "\n"
	if at > 0 && text[at-1] != '\n' {
		line = "\n" + line
	}
	return splice(text, at, at, line)
}

// quoted is a text as a YAML scalar.
func quoted(text string) string {
	// What needs no quotes, also within braces.
	plain := regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9_./@+-]*$`)
	var back yaml.Node
	bare := plain.MatchString(text) && yaml.Unmarshal([]byte(text), &back) == nil
	if !bare || back.Content[0].Tag == "!!null" {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// replaceValue writes another value in the place of an entry's.
func replaceValue(text []byte, e entry, written string) ([]byte, error) {
	if e.value.Kind == yaml.ScalarNode && e.value.Tag == "!!null" && e.value.Value == "" { // "name:"
		end, ok := colonEnd(text, e.key)
		if !ok {
			return nil, errNoFile
		}
		return splice(text, end, end, " "+written), nil
	}
	from, _ := nodeStart(text, e.value)
	to, ok := nodeEnd(text, e.value)
	if !ok {
		return nil, errNoFile
	}
	return splice(text, from, to, written), nil
}

// remove takes one setting out, and the mappings that are empty then.
func remove(text []byte, name string) ([]byte, error) {
	root, entries, err := parseFile("configuration", text)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return text, nil
	}
	key, value, parent := entries[i].key, entries[i].value, entries[i].parent
	within := entries[i].within
	for n := len(within); n > 0 && len(parent.Content) == 2; n -= 2 { // it was alone there
		key, value, parent = within[n-2], within[n-1], root
		if n > 2 {
			parent = within[n-3]
		}
	}
	from, _ := nodeStart(text, key)
	to, ok := nodeEnd(text, value)
	if value.Tag == "!!null" && value.Value == "" {
		to, ok = colonEnd(text, key)
	}
	if !ok {
		return nil, errNoFile
	}
	if parent.Style&yaml.FlowStyle != 0 {
		return cutFlow(text, from, to), nil
	}
	start, stop := lineStart(text, key.Line), lineEnd(text, to)
	explained := []byte("# " + explanation(name) + "\n")
	if key.Value == name && bytes.HasSuffix(text[:start], explained) {
		return splice(text, start, stop, "#"+name+": "+quoted(defaultOf(name))+"\n"), nil
	}
	return splice(text, start, stop, ""), nil
}

// cutFlow takes a pair and one of its commas out of braces.
func cutFlow(text []byte, from, to int) []byte {
	for to < len(text) && (text[to] == ' ' || text[to] == '\n') {
		to++
	}
	if to < len(text) && text[to] == ',' {
		for to++; to < len(text) && text[to] == ' '; {
			to++
		}
		return splice(text, from, to, "")
	}
	for from > 0 && (text[from-1] == ' ' || text[from-1] == '\n') {
		from--
	}
	if from > 0 && text[from-1] == ',' {
		from--
	}
	return splice(text, from, to, "")
}

func splice(text []byte, from, to int, with string) []byte {
	return slices.Concat(text[:from], []byte(with), text[to:])
}

// lineStart returns the offset at which a line begins, the first being 1.
func lineStart(text []byte, line int) int {
	at := 0
	for ; line > 1; line-- {
		next := bytes.IndexByte(text[at:], '\n')
		if next < 0 {
			return len(text)
		}
		at += next + 1
	}
	return at
}

// lineEnd returns the end of the line that holds an offset, its line feed included.
func lineEnd(text []byte, at int) int {
	if next := bytes.IndexByte(text[at:], '\n'); next >= 0 {
		return at + next + 1
	}
	return len(text)
}

// nodeStart returns the offset at which a node begins.
func nodeStart(text []byte, n *yaml.Node) (int, bool) {
	at := lineStart(text, n.Line)
	for range n.Column - 1 { // columns count characters
		if at >= len(text) || text[at] == '\n' {
			return at, false
		}
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at, at <= len(text)
}

// nodeEnd returns the end of a node that is written in a simple way; false for others.
func nodeEnd(text []byte, n *yaml.Node) (int, bool) {
	at, ok := nodeStart(text, n)
	if !ok {
		return at, false
	}
	rest := text[at:]
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&yaml.DoubleQuotedStyle != 0:
		return matchEnd(at, rest, `^"(?:[^"\\\n]|\\.)*"`)
	case n.Kind == yaml.ScalarNode && n.Style&yaml.SingleQuotedStyle != 0:
		return matchEnd(at, rest, `^'(?:[^'\n]|'')*'`)
	case n.Kind == yaml.ScalarNode && n.Style&^yaml.FlowStyle == 0:
		return at + len(n.Value), bytes.HasPrefix(rest, []byte(n.Value)) && n.Value != ""
	case n.Kind != yaml.SequenceNode && n.Kind != yaml.MappingNode:
		return at, false
	}
	closer := map[yaml.Kind]byte{yaml.SequenceNode: ']', yaml.MappingNode: '}'}[n.Kind]
	if len(n.Content) > 0 {
		if at, ok = nodeEnd(text, n.Content[len(n.Content)-1]); !ok || n.Style&yaml.FlowStyle == 0 {
			return at, ok
		}
	}
	next := bytes.IndexByte(text[at:], closer)
	return at + next + 1, next >= 0
}

// colonEnd returns the end of the colon behind a key; false for a key that has none.
func colonEnd(text []byte, key *yaml.Node) (int, bool) {
	at, ok := nodeEnd(text, key)
	rest := bytes.TrimLeft(text[at:], " \t")
	return len(text) - len(rest) + 1, ok && bytes.HasPrefix(rest, []byte(":"))
}

func matchEnd(at int, rest []byte, pattern string) (int, bool) {
	found := regexp.MustCompile(pattern).FindIndex(rest)
	if found == nil {
		return at, false
	}
	return at + found[1], true
}
