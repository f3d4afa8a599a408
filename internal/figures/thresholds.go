package figures

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

// Thresholds draws each measure of rules for reservations over their threshold eta, a plot for each
// case: termination-eta.svg and so on have a line for each rule with several thresholds,
// termination-references.svg the first of them beside the rules that have none, dashed. With the
// lengths of the intervals in interval-length.svg these are figures 8 to 12 of the VRM paper.
func (a Album) Thresholds(r eval.CompareResult) error {
	var several, levels [][]eval.RuleOf
	lines, _ := linesOf(r.Rules)
	for _, line := range lines {
		if len(line) > 1 {
			several = append(several, line)
		} else {
			levels = append(levels, line)
		}
	}
	if a.Empty() || len(several) == 0 {
		return nil
	}
	for _, measure := range r.Measures {
		err := a.overThresholds(r, measure, measure+"-eta", several)
		if err == nil && len(levels) > 0 {
			beside := slices.Concat(several[:1], levels)
			err = a.overThresholds(r, measure, measure+"-references", beside)
		}
		if err != nil {
			return err
		}
	}
	return a.lengths(r)
}

// overThresholds draws a measure of some lines of an experiment.
func (a Album) overThresholds(
	r eval.CompareResult, measure, file string, lines [][]eval.RuleOf,
) error {
	p := casePanels(r)
	p.legend, p.legendWidth = legendAt(), 4*vg.Centimeter
	for i, in := range r.Cases {
		one := newPlot(in)
		one.X.Label.Text, one.Y.Label.Text = "threshold eta", measureLabel(measure)
		one.Add(horizontals())
		c := curves{result: r, lines: lines, in: in, measure: measure}
		// The first line is drawn last, so that none hides it.
		for number := range slices.Backward(lines) {
			if err := c.add(one, legendAt(), number); err != nil {
				return err
			}
		}
		for number := range lines {
			if i > 0 {
				break // one legend is enough
			}
			if err := c.add(newPlot(""), p.legend, number); err != nil {
				return err
			}
		}
		if one.Y.Max <= one.Y.Min {
			one.Y.Min, one.Y.Max = one.Y.Min-.5, one.Y.Max+.5
		}
		p.plots = append(p.plots, one)
	}
	return a.save(file, p.figure())
}

// casePanels are panels for a plot of each case.
func casePanels(r eval.CompareResult) panels {
	return panels{
		title:   fmt.Sprintf("%s, %s", r.Scenario, seedsLabel(r.First, r.Seeds)),
		columns: 2, width: 11 * vg.Centimeter, height: 8.5 * vg.Centimeter,
	}
}

// curves are the lines of an experiment, by one measure in one case.
type curves struct {
	result      eval.CompareResult
	lines       [][]eval.RuleOf
	in, measure string
}

// add draws a line: a curve, or a level if it has one rule alone.
func (c curves) add(p *plot.Plot, legend *plot.Legend, number int) error {
	rules := c.lines[number]
	s := series{name: rules[0].Line, number: number}
	var shares []float64
	for _, rule := range rules {
		shares = append(shares, rule.Share)
		s.values = append(s.values, known(c.result.Strategies[rule.Name+"@"+c.in], c.measure))
	}
	if len(rules) > 1 {
		return addSeries(p, legend, s, shares)
	}
	if s.values[0] != nil {
		addLevel(p, legend, s, s.values[0].Mean, extent(c.lines))
	}
	return nil
}

// extent is the lowest and the highest threshold.
func extent(lines [][]eval.RuleOf) []float64 {
	var shares []float64
	for _, line := range lines {
		for _, rule := range line {
			if rule.Share >= 0 {
				shares = append(shares, rule.Share)
			}
		}
	}
	return []float64{slices.Min(shares), slices.Max(shares)}
}

// lengths draws how many slots ahead reservations leave the machine in each slot of a failure.
func (a Album) lengths(r eval.CompareResult) error {
	if len(r.Lengths) == 0 {
		return nil
	}
	p := casePanels(r)
	p.title = fmt.Sprintf("%s, %s: the first failure of seed %d", r.Scenario, r.Lengths[0].Rule,
		r.First)
	for _, of := range r.Lengths {
		one := newPlot(of.Case)
		one.X.Label.Text, one.Y.Label.Text = "slot of the failure", "length of the interval (slots)"
		one.Add(horizontals())
		line := &plotter.Line{LineStyle: plotter.DefaultLineStyle}
		line.Color, line.Width = colourOf(0), vg.Points(1.5)
		for slot, length := range of.Slots {
			line.XYs = append(line.XYs, plotter.XY{X: float64(slot), Y: float64(length)})
		}
		one.Add(line)
		one.Y.Min = 0
		p.plots = append(p.plots, one)
	}
	return a.save("interval-length", p.figure())
}
