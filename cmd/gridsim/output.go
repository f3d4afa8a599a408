package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/pflag"
)

// form names a form in which results are printed.
type form struct{ name string }

const (
	formText = "text" // for people
	formJSON = "json"
)

// addTo adds the flag that chooses it.
func (f *form) addTo(flags *pflag.FlagSet) {
	flags.StringVarP(&f.name, "output", "o", formText, "text or json")
}

// check refuses a form that there is not.
func (f *form) check() error {
	if f.name != formText && f.name != formJSON {
		return usageError("--output: want text or json, have %q", f.name)
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
