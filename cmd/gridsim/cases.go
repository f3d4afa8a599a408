package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

// printCases prints an experiment with several cases: a table for each measure, with a column for
// each case, and what was expected.
func printCases(out io.Writer, r eval.CompareResult) error {
	fmt.Fprintf(out, "%s, seeds %d to %d\n", r.Scenario, r.First, r.First+uint64(r.Seeds)-1)
	for _, measure := range r.Measures {
		fmt.Fprintln(out)
		w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprintf(w, "%s\t%s\n", measure, strings.Join(r.Cases, "\t"))
		for _, name := range r.Names {
			cells := []string{name}
			for _, in := range r.Cases {
				cells = append(cells, cell(r.Strategies[name+"@"+in], measure))
			}
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return printClaims(out, r.Claims)
}
