package config

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Value is one setting to be written into a file.
type Value struct {
	Name string // of a setting without dots: "domain"
	Text string // as a flag would have it
}

// ErrNoFile says that a text is no configuration file.
var ErrNoFile = errors.New("not a configuration file")

// Edit sets values in the text of a configuration file and leaves everything
// else as it is: other settings, their order, and comments. Only indentation and
// blank lines may change. Settings that are missing are added at the end.
func Edit(text []byte, values []Value) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoFile, err)
	}
	if len(doc.Content) == 0 { // nothing but comments
		doc.Kind = yaml.DocumentNode
		doc.Content = []*yaml.Node{{Kind: yaml.MappingNode}}
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%w: want settings as name: value", ErrNoFile)
	}
	for _, v := range values {
		set(root, v)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&doc), encoder.Close()); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return out.Bytes(), nil
}

func set(root *yaml.Node, v Value) {
	scalar := func() *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: v.Text}
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != v.Name {
			continue
		}
		old, fresh := root.Content[i+1], scalar()
		fresh.HeadComment, fresh.LineComment, fresh.FootComment = old.HeadComment, old.LineComment, old.FootComment
		root.Content[i+1] = fresh
		return
	}
	root.Style &^= yaml.FlowStyle
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v.Name}, scalar())
}
