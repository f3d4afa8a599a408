package figures

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// Compare draws each measure of a run, and its ratios beside the first strategy: wait.svg,
// wait-ratio.svg and so on. Of an experiment with several cases each has figures of its own:
// waste-4h.svg; see Intervals, Thresholds and Settings for what else is drawn, or instead.
func (a Album) Compare(r eval.CompareResult, measures []string) error {
	if a.Empty() {
		return nil
	}
	if len(r.Settings) > 0 {
		return a.Settings(r, measures)
	}
	if len(r.Curves) > 0 {
		return a.Thresholds(r)
	}
	if err := a.Intervals(r); err != nil {
		return err
	}
	cases := r.Cases
	if len(cases) == 0 {
		cases = []string{""}
	}
	for _, in := range cases {
		for _, measure := range measures {
			if err := a.compareIn(r, in, measure); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareIn draws a measure in a case; empty: there is one.
func (a Album) compareIn(r eval.CompareResult, in, measure string) error {
	title, file, at := fmt.Sprintf("%s, %s", r.Scenario, seedsLabel(r.First, r.Seeds)), measure, ""
	if in != "" {
		title, file, at = title+", "+in, eval.FileName(measure+"-"+in), "@"+in
	}
	values := make([]*metrics.Interval, len(r.Names))
	ratios := make([]*metrics.Interval, len(r.Names))
	for i, name := range r.Names {
		values[i] = known(r.Strategies[name+at], measure)
		ratios[i] = known(r.Ratios[name+at+"/"+r.Names[0]+at], measure)
	}
	err := a.bars(file, title, measureLabel(measure), r.Names, values, false)
	if err == nil && len(r.Names) > 1 {
		err = a.bars(file+"-ratio", title, ratioLabel(measure, r.Names[0]), r.Names[1:],
			ratios[1:], true)
	}
	return err
}

// known is a measure, or nil if there is none.
func known(of map[string]metrics.Interval, measure string) *metrics.Interval {
	x, is := of[measure]
	if !is {
		return nil
	}
	return &x
}

// bars draws a bar for each value that there is.
func (a Album) bars(
	file, title, label string, names []string, values []*metrics.Interval, ratio bool,
) error {
	if !slices.ContainsFunc(values, func(v *metrics.Interval) bool { return v != nil }) {
		return nil
	}
	p := newPlot(title)
	p.Y.Label.Text = label
	p.Add(horizontals())
	for i, v := range values {
		if v == nil {
			continue
		}
		number := i // of the strategy: it has the same colour in all figures
		if ratio {
			number++
		}
		if err := addBar(p, float64(i), *v, colourOf(number)); err != nil {
			return err
		}
	}
	if ratio {
		p.Add(levelAt(1, len(names)))
	}
	nameBars(p, names)
	width := vg.Length(max(12, 2*len(names)+3)) * vg.Centimeter
	return a.save(file, figure{width, 9 * vg.Centimeter, whole(p)})
}

// crowded says that names beside each other would touch.
func crowded(names []string) bool {
	const most = 12 // letters
	for _, name := range names {
		if len(names) > 4 && len(name) > most-3 || len(name) > most {
			return true
		}
	}
	return false
}

// addBar adds a bar with its error bar.
func addBar(p *plot.Plot, at float64, v metrics.Interval, colour color.Color) error {
	bar, err := plotter.NewBarChart(plotter.Values{v.Mean}, vg.Points(28))
	if err != nil {
		return err
	}
	bar.XMin, bar.Color, bar.LineStyle.Width = at, colour, 0
	p.Add(bar)
	if v.CI95 == 0 {
		return nil
	}
	errorBar, err := plotter.NewYErrorBars(struct {
		plotter.XYs
		plotter.YErrors
	}{plotter.XYs{{X: at, Y: v.Mean}}, plotter.YErrors{{Low: v.CI95, High: v.CI95}}})
	if err != nil {
		return err
	}
	errorBar.Width, errorBar.CapWidth = vg.Points(1), vg.Points(8)
	p.Add(errorBar)
	return nil
}

// horizontals are faint lines behind the data.
func horizontals() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color = nil
	g.Horizontal.Color = color.NRGBA{0xdd, 0xdd, 0xdd, 0xff}
	return g
}

// levelAt is a dashed line over all bars.
func levelAt(y float64, bars int) *plotter.Line {
	line := &plotter.Line{
		XYs:       plotter.XYs{{X: -.6, Y: y}, {X: float64(bars) - .4, Y: y}},
		LineStyle: plotter.DefaultLineStyle,
	}
	line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	return line
}

// whole draws a plot over all of the canvas, with a margin.
func whole(p *plot.Plot) func(draw.Canvas) {
	return func(c draw.Canvas) {
		blank(c)
		p.Draw(draw.Crop(c, 8, -12, 8, -8))
	}
}

// blank makes the background white: figures are looked at on dark pages, too.
func blank(c draw.Canvas) {
	c.FillPolygon(color.White, []vg.Point{
		c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y},
	})
}
