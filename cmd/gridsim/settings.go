package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

// printSettings prints, for each setting, what the strategies' sites made of their jobs, beside the
// first strategy; then in how many settings each expectation came true.
func printSettings(out io.Writer, r eval.CompareResult) error {
	first := r.Names[0]
	for _, setting := range r.Settings {
		if _, forecasts := r.Strategies[eval.InSetting(first, setting)]["within2"]; forecasts {
			if err := printForecasts(out, r, setting); err != nil {
				return err
			}
			continue
		}
		w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprintf(w, "%s\tdone\tfailed\trejected\tbeside %s: done\tfailed\tfailures\trejected\n",
			setting, first)
		for _, name := range r.Names {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s", name, share(r, name, setting, "done"),
				share(r, name, setting, "failed"), share(r, name, setting, "rejected"))
			for _, measure := range []string{"done", "failed", "failures", "rejected"} {
				fmt.Fprint(w, "\t"+cell(r.Ratios[eval.InSetting(name+"/"+first, setting)], measure))
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return printVerdicts(out, r)
}

// printForecasts prints by how many sites forecasts were off in a setting.
func printForecasts(out io.Writer, r eval.CompareResult, setting string) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "%s\twithin 2 sites\toff by\ttoo high by\n", setting)
	for _, name := range r.Names {
		of := r.Strategies[eval.InSetting(name, setting)]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n",
			name, cell(of, "within2"), cell(of, "off"), cell(of, "bias"))
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// share is which part of all jobs had an outcome.
func share(r eval.CompareResult, name, setting, measure string) string {
	m := r.Strategies[eval.InSetting(name, setting)]
	all := m["done"].Mean + m["failed"].Mean + m["rejected"].Mean
	if all <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*m[measure].Mean/all)
}

// printVerdicts prints each expectation once, with the settings in which it holds.
func printVerdicts(out io.Writer, r eval.CompareResult) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "expected\t\tholds in\tfound\t")
	var order []eval.ClaimResult // one for each expectation
	key := func(c eval.ClaimResult) eval.ClaimResult {
		return eval.ClaimResult{Ratio: c.Ratio, Measure: c.Measure, From: c.From, To: c.To}
	}
	found := make(map[eval.ClaimResult][]eval.ClaimResult)
	for _, c := range r.Claims {
		if found[key(c)] == nil {
			order = append(order, key(c))
		}
		found[key(c)] = append(found[key(c)], c)
	}
	for _, c := range order {
		holds := 0
		var means []float64
		for _, in := range found[c] {
			if means = append(means, in.Mean); in.Holds {
				holds++
			}
		}
		slices.Sort(means)
		fmt.Fprintf(w, "%s of %s\t%.4g to %.4g\t%d of %d\tfrom %.3g to %.3g, median %.3g\t\n", c.Ratio,
			c.Measure, c.From, c.To, holds, len(means), means[0], means[len(means)-1], means[len(means)/2])
	}
	return w.Flush()
}
