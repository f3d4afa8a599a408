package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// result holds what a verb shows, in every format.
type result struct {
	value any          // json and yaml
	names []string     // name and --parsable
	table func(*table) // table and wide
}

// show prints a result in the format that was asked for.
func (a *app) show(r result) error {
	format := a.config.Output
	if a.parsable {
		format = "name"
	}
	switch format {
	case "json":
		encoder := json.NewEncoder(a.out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return wrapOutput(encoder.Encode(r.value))
	case "yaml":
		return wrapOutput(writeYAML(a.out, r.value))
	case "name":
		for _, name := range r.names {
			if _, err := fmt.Fprintln(a.out, name); err != nil {
				return wrapOutput(err)
			}
		}
		return nil
	default:
		t := &table{wide: format == "wide", writer: tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)}
		r.table(t)
		return wrapOutput(t.writer.Flush())
	}
}

// writeYAML keeps the order and the names of the JSON form.
func writeYAML(w io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write yaml: %w", err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return fmt.Errorf("write yaml: %w", err)
	}
	blockStyle(&node)
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return fmt.Errorf("write yaml: %w", err)
	}
	return encoder.Close()
}

// blockStyle takes the brackets and needless quotes of JSON away.
func blockStyle(node *yaml.Node) {
	node.Style = 0 // the encoder quotes what would read as something else
	for _, child := range node.Content {
		blockStyle(child)
	}
}

// ndjson prints one document in one line.
func (a *app) ndjson(value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		_, err = a.out.Write(append(data, '\n'))
	}
	return wrapOutput(err)
}

// output is standard output; its errors are told from those of the agent's connection.
type output struct{ to io.Writer }

var errOutput = errors.New("write standard output")

// Write passes on and marks what went wrong.
func (o output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	return n, wrapOutput(err)
}

func wrapOutput(err error) error {
	if err == nil || errors.Is(err, errOutput) {
		return err
	}
	return fmt.Errorf("%w: %w", errOutput, err)
}

// table is text in columns.
type table struct {
	wide   bool
	writer *tabwriter.Writer
}

// row adds a row. Cells beginning with a bar are for the wide form only.
func (t *table) row(cells ...string) {
	var kept []string
	for _, cell := range cells {
		text, wide := strings.CutPrefix(cell, "|")
		if wide && !t.wide {
			continue
		}
		kept = append(kept, clean(text))
	}
	_, _ = fmt.Fprintln(t.writer, strings.Join(kept, "\t")) // Flush reports it
}

// clean keeps what others wrote from steering the terminal.
func clean(text string) string {
	if text == "" {
		return "-"
	}
	return grid.Plain(text)
}
