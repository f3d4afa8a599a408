package jobfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	maxFileBytes = 64 << 20 // 100,000 items as describe writes them
	maxDepth     = 16
)

// parseText reads YAML or JSON into a tree with lines.
func parseText(data []byte) (*yaml.Node, *FieldError) {
	if len(data) > maxFileBytes {
		return nil, &FieldError{
			Text:   fmt.Sprintf("the job file is larger than %d MiB", maxFileBytes>>20),
			Remedy: "put data into inputs",
		}
	}
	if !utf8.Valid(data) {
		return nil, &FieldError{
			Text:   "the job file is no UTF-8 text",
			Remedy: "name a YAML or JSON file; a module goes after --wasm",
		}
	}
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(data) {
		return fromJSON(data)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, &FieldError{
			Line: 1, Text: "the job file is empty", Remedy: "write at least wasm: FILE",
		}
	}
	if err != nil {
		return nil, syntaxError(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, &FieldError{
			Line: more.Line, Text: "a second document begins", Remedy: "write one job a file",
		}
	}
	if len(doc.Content) != 1 {
		return nil, &FieldError{
			Line: 1, Text: "the job file is empty", Remedy: "write at least wasm: FILE",
		}
	}
	return doc.Content[0], nil
}

// syntaxError takes the line out of the YAML reader's message.
func syntaxError(err error) *FieldError {
	out := &FieldError{
		Line: 1, Text: "want YAML or JSON: " + err.Error(),
		Remedy: "check indentation, quotes and brackets there",
	}
	if found := regexp.MustCompile(`line (\d+)`).FindStringSubmatch(err.Error()); found != nil {
		out.Line, _ = strconv.Atoi(found[1]) // digits only
	}
	return out
}

// jsonReader builds the same tree from JSON, which YAML readers do not take in
// full (tabs, escapes).
type jsonReader struct {
	decoder *json.Decoder
	data    []byte
	offset  int64 // up to where lines are counted
	line    int
}

func fromJSON(data []byte) (*yaml.Node, *FieldError) {
	r := &jsonReader{decoder: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1}
	r.decoder.UseNumber()
	node, err := r.value(0)
	if err != nil {
		return nil, &FieldError{
			Line: r.line, Text: "want JSON: " + err.Error(), Remedy: "check brackets and quotes there",
		}
	}
	return node, nil
}

func (r *jsonReader) token() (json.Token, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	end := r.decoder.InputOffset()
	r.line += bytes.Count(r.data[r.offset:end], []byte("\n"))
	r.offset = end
	return token, nil
}

func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line, Tag: "!!str"}
	switch v := token.(type) {
	case json.Delim:
		return r.container(node, v, depth)
	case string:
		node.Value = v
	case json.Number:
		node.Value, node.Tag = v.String(), "!!float"
	case bool:
		node.Value, node.Tag = strconv.FormatBool(v), "!!bool"
	default:
		node.Value, node.Tag = "null", "!!null"
	}
	return node, nil
}

func (r *jsonReader) container(node *yaml.Node, open json.Delim, depth int) (*yaml.Node, error) {
	if depth >= maxDepth {
		return nil, errors.New("nested too deeply")
	}
	node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		node.Kind, node.Tag = yaml.MappingNode, "!!map"
	}
	for r.decoder.More() {
		// Keys come as string tokens, like values.
		child, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, child)
	}
	_, err := r.token() // the closing bracket
	return node, err
}
