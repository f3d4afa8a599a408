package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// form names a form in which results are printed.
type form struct {
	name  string
	names []string // that there are, the default first; nil: text and JSON
}

const (
	formText = "text" // for people
	formJSON = "json"

	formTable = "table" // for people
	formCSV   = "csv"
)

// addTo adds the flag that chooses it.
func (f *form) addTo(flags *pflag.FlagSet) {
	if f.names == nil {
		f.names = []string{formText, formJSON}
	}
	flags.StringVarP(&f.name, "output", "o", f.names[0], f.choices())
}

// choices are the forms in words: "text or json".
func (f *form) choices() string {
	last := len(f.names) - 1
	return strings.Join(f.names[:last], ", ") + " or " + f.names[last]
}

// check refuses a form that there is not.
func (f *form) check() error {
	if !slices.Contains(f.names, f.name) {
		return usageError("--output: want %s, have %q", f.choices(), f.name)
	}
	return nil
}

// print prints a result as JSON, or has it printed as text.
func (f *form) print(out io.Writer, result any, asText func() error) error {
	if f.name != formJSON {
		return asText()
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}
