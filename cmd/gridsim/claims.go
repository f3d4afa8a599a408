package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

// printClaims prints what was expected, what was found, and the verdict.
func printClaims(out io.Writer, claims []eval.ClaimResult) error {
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
		switch c.Kind {
		case "":
		case "lowest":
			what = fmt.Sprintf("eta at which %s of %s is lowest", c.Measure, c.Ratio)
			found = fmt.Sprintf("%.4g of %d", c.Mean, c.Cells)
		default:
			what = fmt.Sprintf("%s %s in %s, part of cells", c.Kind, c.Measure,
				strings.Replace(c.Ratio, "/", " than in ", 1))
			found = fmt.Sprintf("%.0f of %d", c.Mean*float64(c.Cells), c.Cells)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", what, bounds, paper, found, verdict)
	}
	return w.Flush()
}
