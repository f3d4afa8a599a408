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
	return printCaseClaims(out, r.Claims)
}

func printCaseClaims(out io.Writer, claims []eval.ClaimResult) error {
	if len(claims) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "expected\t\tpaper\tfound\t")
	for _, c := range claims {
		verdict, paper, bounds := "holds", "-", fmt.Sprintf("%.4g to %.4g", c.From, c.To)
		if !c.Holds {
			verdict = "DOES NOT HOLD"
		}
		if c.Paper != 0 {
			paper = fmt.Sprintf("%.4g", c.Paper)
		}
		if c.From == 0 {
			bounds = fmt.Sprintf("at most %.4g", c.To)
		}
		what, found := c.Ratio+" of "+c.Measure, fmt.Sprintf("%.3f ±%.3f", c.Mean, c.CI95)
		if c.Kind != "" {
			what = fmt.Sprintf("%s %s in %s, part of cells", c.Kind, c.Measure,
				strings.Replace(c.Ratio, "/", " than in ", 1))
			found = fmt.Sprintf("%.0f of %d", c.Mean*float64(c.Cells), c.Cells)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", what, bounds, paper, found, verdict)
	}
	return w.Flush()
}
