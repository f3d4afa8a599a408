package reference

import (
	"bytes"
	_ "embed" // page.html
	"fmt"
	"html/template"
)

//go:embed page.html
var pageText string

// Page is the page of a specification, whose schemas are those that its references name. An error
// names what it cannot show.
func Page(specification []byte) ([]byte, error) {
	p, err := read(specification)
	if err != nil {
		return nil, err
	}
	shape, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("page of the specification: %w", err)
	}
	var out bytes.Buffer
	if err := shape.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("page of the specification: %w", err)
	}
	return out.Bytes(), nil
}
