package figures

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

// Intervals draws each measure of rules for checkpoints over their interval, a plot for each case
// with a line for each rule: completion-interval.svg and so on, figures 4 to 6 of the FIBR paper.
// A rule that has no interval is a dashed line. Without two intervals there is nothing to draw.
func (a Album) Intervals(r eval.CompareResult) error {
	lines, intervals := linesOf(r.Rules)
	if a.Empty() || len(intervals) < 2 {
		return nil
	}
	for _, measure := range r.Measures {
		legend := legendAt()
		p := panels{
			title:   fmt.Sprintf("%s, %s", r.Scenario, seedsLabel(r.First, r.Seeds)),
			columns: 2, width: 11 * vg.Centimeter, height: 7.5 * vg.Centimeter,
			legend: legend, legendWidth: 3.5 * vg.Centimeter,
		}
		for i, in := range r.Cases {
			drawn := legend
			if i > 0 {
				drawn = legendAt() // one is enough
			}
			one, err := overInterval(r, in, measure, lines, intervals, drawn)
			if err != nil {
				return err
			}
			p.plots = append(p.plots, one)
		}
		if err := a.save(measure+"-interval", p.figure()); err != nil {
			return err
		}
	}
	return nil
}

// linesOf lists the lines of an experiment with their rules, and the intervals in seconds.
func linesOf(rules []eval.RuleOf) (lines [][]eval.RuleOf, intervals []float64) {
	for _, rule := range rules {
		at := slices.IndexFunc(lines, func(l []eval.RuleOf) bool { return l[0].Line == rule.Line })
		if at < 0 {
			lines, at = append(lines, nil), len(lines)
		}
		lines[at] = append(lines[at], rule)
		if x := rule.Interval.Seconds(); x > 0 && !slices.Contains(intervals, x) {
			intervals = append(intervals, x)
		}
	}
	slices.Sort(intervals)
	return lines, intervals
}

// overInterval is the plot of a measure in one case.
func overInterval(
	r eval.CompareResult, in, measure string, lines [][]eval.RuleOf, intervals []float64,
	legend *plot.Legend,
) (*plot.Plot, error) {
	p := newPlot(in)
	p.X.Label.Text, p.Y.Label.Text = "interval", ruleLabel(measure)
	p.X.Scale = plot.LogScale{}
	p.Add(horizontals())
	for number, rules := range lines {
		if len(rules) == 1 && rules[0].Interval == 0 {
			if x := known(r.Strategies[rules[0].Name+"@"+in], measure); x != nil {
				addLevel(p, legend, series{name: rules[0].Name, number: number}, x.Mean, intervals)
			}
			continue
		}
		s := series{name: rules[0].Line, number: number}
		var at []float64
		for _, rule := range rules {
			at = append(at, rule.Interval.Seconds())
			s.values = append(s.values, known(r.Strategies[rule.Name+"@"+in], measure))
		}
		if err := addSeries(p, legend, s, at); err != nil {
			return nil, err
		}
	}
	var ticks plot.ConstantTicks
	for _, x := range intervals {
		ticks = append(ticks, plot.Tick{Value: x, Label: brief(x)})
	}
	p.X.Tick.Marker = ticks
	p.X.Min, p.X.Max = intervals[0], intervals[len(intervals)-1]
	if p.Y.Max <= p.Y.Min {
		p.Y.Min, p.Y.Max = p.Y.Min-.5, p.Y.Max+.5
	}
	return p, nil
}

// ruleLabel is a measure of rules for checkpoints, which count failures for each job.
func ruleLabel(measure string) string {
	if measure == "failures" {
		return "failures for each job"
	}
	return measureLabel(measure)
}

// brief writes seconds in the largest unit that has a whole number of them: 5 min, 1 h.
func brief(seconds float64) string {
	for _, u := range []struct {
		name    string
		seconds float64
	}{{"h", 3600}, {"min", 60}} {
		if n := seconds / u.seconds; n >= 1 && n == float64(int(n)) {
			return fmt.Sprintf("%.0f %s", n, u.name)
		}
	}
	return fmt.Sprintf("%.4g s", seconds)
}

// addLevel adds what does not depend on the interval.
func addLevel(p *plot.Plot, legend *plot.Legend, s series, y float64, over []float64) {
	line := &plotter.Line{
		XYs:       plotter.XYs{{X: over[0], Y: y}, {X: over[len(over)-1], Y: y}},
		LineStyle: plotter.DefaultLineStyle,
	}
	line.Color, line.Width = colourOf(s.number), vg.Points(1.5)
	line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	p.Add(line)
	legend.Add(s.name, line)
}
