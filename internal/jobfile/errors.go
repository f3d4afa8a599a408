package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// FieldError is one mistake in a job file.
type FieldError struct {
	File   string // the file's name; empty for standard input and flags
	Line   int    // from 1; 0 = unknown
	Field  string // dotted: "resources.memory", "inputs[2].from"
	Text   string // what was expected and what is there
	Remedy string // what to do

	cause error
}

// Unwrap returns the underlying error, or nil.
func (e *FieldError) Unwrap() error { return e.cause }

// Error is the mistake in one line: "job.yaml:7: resources.memory: want ...; write ...".
func (e *FieldError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		if e.File == "" {
			b.WriteString("line ")
		}
		fmt.Fprintf(&b, "%d:", e.Line)
	}
	if b.Len() > 0 {
		b.WriteString(" ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Text)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Errors is all that is wrong with a job file, by line.
type Errors []*FieldError

// Error is one mistake a line.
func (e Errors) Error() string {
	var lines []string
	for _, one := range e {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the mistakes to errors.As.
func (e Errors) Unwrap() []error {
	var out []error
	for _, one := range e {
		out = append(out, one)
	}
	return out
}

// sorted puts the mistakes in the order of the file and names it.
func (e Errors) sorted(file string) error {
	if len(e) == 0 {
		return nil
	}
	for _, one := range e {
		one.File = file
	}
	slices.SortStableFunc(e, func(a, b *FieldError) int { return cmp.Compare(a.Line, b.Line) })
	return e
}
