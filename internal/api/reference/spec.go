package reference

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// page has all that the template shows.
type page struct {
	Title, About string
	Groups       []*group // by tag, in the specification's order
	Schemas      []schema
}

// group has the operations of one tag.
type group struct {
	Name, About string
	Operations  []operation
}

type operation struct {
	ID, Method, Path, Summary, About string
	Fields                           []field // parameters
	Body                             *typed  // nil: none
	Answers                          []answer
}

type answer struct {
	Code, About string
	Body        *typed // nil: none
}

type schema struct {
	Name, About string
	Type        typed
	Fields      []field
}

// field is a parameter, or a part of a schema.
type field struct {
	Name, In string // In: path, query or header; empty in a schema
	Type     typed
	About    string
	Required bool
}

// typed is a type in words, with the schema that it leads to.
type typed struct {
	Text string // "array of", "string, at most 255 characters", ...
	Ref  string // name of a schema; empty: none
}

// tree is a mapping of the specification, in its order.
type tree struct{ node *yaml.Node }

func (t tree) each(do func(key string, value tree)) {
	if t.node == nil || t.node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(t.node.Content); i += 2 {
		do(t.node.Content[i].Value, tree{t.node.Content[i+1]})
	}
}

// at follows keys; what is not there is an empty tree.
func (t tree) at(keys ...string) tree {
	for _, key := range keys {
		var found tree
		t.each(func(k string, v tree) {
			if k == key {
				found = v
			}
		})
		t = found
	}
	return t
}

func (t tree) items() []tree {
	if t.node == nil || t.node.Kind != yaml.SequenceNode {
		return nil
	}
	var all []tree
	for _, n := range t.node.Content {
		all = append(all, tree{n})
	}
	return all
}

func (t tree) text() string {
	if t.node == nil {
		return ""
	}
	return t.node.Value
}

// reader reads one specification and notes what is wrong with it.
type reader struct {
	root tree
	err  error
}

func read(text []byte) (page, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return page{}, fmt.Errorf("read specification: %w", err)
	}
	if len(document.Content) == 0 {
		return page{}, fmt.Errorf("read specification: it is empty")
	}
	r := &reader{root: tree{document.Content[0]}}
	info := r.root.at("info")
	p := page{Title: info.at("title").text(), About: info.at("description").text()}
	groups := map[string]*group{}
	for _, tag := range r.root.at("tags").items() {
		g := &group{Name: tag.at("name").text(), About: tag.at("description").text()}
		groups[g.Name], p.Groups = g, append(p.Groups, g)
	}
	r.root.at("paths").each(func(path string, item tree) {
		item.each(func(method string, op tree) {
			if method == "parameters" {
				return
			}
			o := r.operation(method, path, op)
			o.Fields = append(r.parameters(item), o.Fields...)
			for _, tag := range op.at("tags").items() {
				if g := groups[tag.text()]; g != nil {
					g.Operations = append(g.Operations, o)
				} else {
					r.fail("%s %s: no tag %s", method, path, tag.text())
				}
			}
		})
	})
	r.root.at("components", "schemas").each(func(name string, s tree) {
		p.Schemas = append(p.Schemas, r.schema(name, s))
	})
	return p, r.err
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("read specification: "+format, args...)
	}
}

func (r *reader) operation(method, path string, op tree) operation {
	o := operation{
		ID: op.at("operationId").text(), Method: strings.ToUpper(method), Path: path,
		Summary: op.at("summary").text(), About: op.at("description").text(),
		Fields: r.parameters(op), Body: r.content(op.at("requestBody")),
	}
	op.at("responses").each(func(code string, response tree) {
		response = r.resolved(response)
		o.Answers = append(o.Answers, answer{
			Code: code, About: response.at("description").text(), Body: r.content(response),
		})
	})
	return o
}

// resolved follows a reference to something that is no schema, such as an answer.
func (r *reader) resolved(t tree) tree {
	ref := t.at("$ref").text()
	if ref == "" {
		return t
	}
	found := r.root.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	if found.node == nil {
		r.fail("%s is nowhere", ref)
	}
	return found
}

func (r *reader) parameters(of tree) []field {
	var fields []field
	for _, p := range of.at("parameters").items() {
		p = r.resolved(p)
		fields = append(fields, field{
			Name: p.at("name").text(), In: p.at("in").text(), Type: r.typed(p.at("schema")),
			About: p.at("description").text(), Required: p.at("required").text() == "true",
		})
	}
	return fields
}

// content is the first form in which a body comes.
func (r *reader) content(body tree) *typed {
	var found *typed
	body.at("content").each(func(kind string, form tree) {
		if found == nil {
			t := r.typed(form.at("schema"))
			t.Text = strings.TrimSpace(kind + ": " + t.Text)
			found = &t
		}
	})
	return found
}

func (r *reader) schema(name string, s tree) schema {
	out := schema{Name: name, About: s.at("description").text(), Type: r.typed(s)}
	required := map[string]bool{}
	for _, key := range s.at("required").items() {
		required[key.text()] = true
	}
	s.at("properties").each(func(key string, value tree) {
		out.Fields = append(out.Fields, field{
			Name: key, Type: r.typed(value), About: value.at("description").text(),
			Required: required[key],
		})
	})
	return out
}

// typed describes a schema in words.
func (r *reader) typed(s tree) typed {
	if ref := s.at("$ref").text(); ref != "" {
		r.resolved(s)
		return typed{Ref: ref[strings.LastIndex(ref, "/")+1:]}
	}
	switch s.at("type").text() {
	case "array":
		of := r.typed(s.at("items"))
		of.Text = strings.TrimSpace("array of " + of.Text)
		return of
	case "object":
		if of := s.at("additionalProperties"); of.node != nil && of.node.Kind == yaml.MappingNode {
			value := r.typed(of)
			value.Text = strings.TrimSpace("object, by name " + value.Text)
			return value
		}
	}
	return typed{Text: strings.Join(append([]string{s.at("type").text()}, limits(s)...), ", ")}
}

// limits are what a value is bounded by.
func limits(s tree) []string {
	var all []string
	if format := s.at("format").text(); format != "" {
		all = append(all, format)
	}
	var words []string
	for _, word := range s.at("enum").items() {
		words = append(words, word.text())
	}
	if len(words) > 0 {
		all = append(all, "one of "+strings.Join(words, ", "))
	}
	for _, limit := range [][2]string{
		{"minimum", "at least "},
		{"maximum", "at most "},
		{"maxLength", "characters at most: "},
		{"maxItems", "items at most: "},
		{"default", "default "},
	} {
		if value := s.at(limit[0]).text(); value != "" {
			all = append(all, limit[1]+value)
		}
	}
	return all
}
