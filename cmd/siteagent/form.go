package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// form says in what form a command answers on standard output: for people, or as JSON. It
// implements pflag.Value, so that a mistake is told before anything is done.
type form string

const (
	tableForm form = "table"
	jsonForm  form = "json"
)

// formFlag gives a command the flag -o.
func formFlag(cmd *cobra.Command) *form {
	f := tableForm
	cmd.Flags().VarP(&f, "output", "o", "table or json")
	// It fails only for a flag that there is not.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(
		[]cobra.Completion{string(tableForm), string(jsonForm)}, cobra.ShellCompDirectiveNoFileComp,
	))
	return &f
}

// String implements pflag.Value.
func (f *form) String() string { return string(*f) }

// Type implements pflag.Value: help shows it in place of a value.
func (f *form) Type() string { return "form" }

// Set implements pflag.Value.
func (f *form) Set(text string) error {
	if form(text) != tableForm && form(text) != jsonForm {
		return fmt.Errorf("want table or json, have %q", text)
	}
	*f = form(text)
	return nil
}

// line names the place of a token that a command has just printed.
func (f *form) line() string {
	if *f == jsonForm {
		return "TOKEN"
	}
	return "<the line above>"
}

// print writes a value as JSON, or has people told. A nil people: there is nothing to tell them on
// standard output.
func (f *form) print(out io.Writer, value any, people func() error) error {
	if *f == jsonForm {
		return json.NewEncoder(out).Encode(value)
	}
	if people == nil {
		return nil
	}
	return people()
}
