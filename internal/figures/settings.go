package figures

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// Settings draws each measure of strategies whose sites fail, and its ratios beside the first
// strategy: a plot for each law of lifetimes, with bars for each strategy, one for each run factor:
// failed-ratio.svg and so on, figures 12 to 14 of the thesis.
func (a Album) Settings(r eval.CompareResult, measures []string) error {
	if a.Empty() {
		return nil
	}
	for _, measure := range measures {
		value := func(name, setting string) *metrics.Interval {
			return known(r.Strategies[eval.InSetting(name, setting)], measure)
		}
		first := r.Names[0]
		ratio := func(name, setting string) *metrics.Interval {
			return known(r.Ratios[eval.InSetting(name+"/"+first, setting)], measure)
		}
		err := a.settings(r, settingBars{measure, measureLabel(measure), r.Names, value, false})
		if err == nil && len(r.Names) > 1 {
			err = a.settings(r, settingBars{
				measure + "-ratio", ratioLabel(measure, first), r.Names[1:], ratio, true,
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settingBars are the bars of one figure.
type settingBars struct {
	file, label string
	names       []string                                     // of strategies
	value       func(name, setting string) *metrics.Interval // nil: there is none
	ratio       bool
}

// settings draws one figure, if there is anything to draw.
func (a Album) settings(r eval.CompareResult, b settingBars) error {
	some := func(s eval.SettingOf) bool {
		return slices.ContainsFunc(b.names, func(n string) bool {
			return b.value(n, s.Name) != nil
		})
	}
	if !slices.ContainsFunc(r.Differ, some) {
		return nil
	}
	laws := distinct(r.Differ, func(s eval.SettingOf) string { return s.Law })
	readings := distinct(r.Differ, func(s eval.SettingOf) string { return s.Reading })
	bars := distinct(r.Differ, func(s eval.SettingOf) string { return s.Value })
	p := panels{
		title:   fmt.Sprintf("%s, %s", r.Scenario, seedsLabel(r.First, r.Seeds)),
		columns: 2, height: 9 * vg.Centimeter,
		width:  vg.Length(max(10, len(b.names)+3)) * vg.Centimeter,
		legend: legendAt(), legendWidth: 4 * vg.Centimeter,
	}
	if len(readings) > 1 {
		p.columns = len(readings)
	}
	for i, bar := range bars {
		p.legend.Add(bar, swatch{colourOf(i)})
	}
	for _, law := range laws {
		for _, reading := range readings {
			of := slices.DeleteFunc(slices.Clone(r.Differ), func(s eval.SettingOf) bool {
				return s.Law != law || s.Reading != reading
			})
			p.plots = append(p.plots, b.plot(law, reading, bars, of))
		}
	}
	return a.save(b.file, p.figure())
}

// plot draws the settings of one law and reading: groups of bars in the order of their values.
func (b settingBars) plot(law, reading string, bars []string, of []eval.SettingOf) *plot.Plot {
	p := newPlot(strings.TrimSuffix(law+", "+reading, ", "))
	p.Y.Label.Text = b.label
	p.Add(horizontals())
	for at, name := range b.names {
		values := make([]*metrics.Interval, len(bars))
		for _, s := range of {
			values[slices.Index(bars, s.Value)] = b.value(name, s.Name)
		}
		addGroup(p, float64(at), values)
	}
	if b.ratio {
		p.Add(levelAt(1, len(b.names)))
	}
	nameBars(p, b.names)
	return p
}

// distinct lists what settings differ in, each once, in their order.
func distinct(all []eval.SettingOf, of func(eval.SettingOf) string) []string {
	var words []string
	for _, s := range all {
		if word := of(s); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// addGroup adds bars beside each other at a place, one for each value that there is.
func addGroup(p *plot.Plot, at float64, values []*metrics.Interval) {
	const part = .84 // of the room between two groups
	width := part / float64(len(values))
	for i, v := range values {
		if v == nil {
			continue
		}
		left := at - part/2 + float64(i)*width
		p.Add(&box{left, left + width, *v, i})
	}
}

// box is a bar as wide as it is told, with its interval.
type box struct {
	left, right float64
	value       metrics.Interval
	number      int // its colour
}

// DataRange says how far it and its interval go. Nothing that is measured is below 0.
func (b *box) DataRange() (xmin, xmax, ymin, ymax float64) {
	// Intervals of two seeds may be many times as long as the bars.
	const most = 2
	high := min(b.value.Mean+b.value.CI95, most*b.value.Mean)
	return b.left, b.right, 0, max(high, 0)
}

// Plot draws it.
func (b *box) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	fill(c, colourOf(b.number), x(b.left), x(b.right), y(0), y(b.value.Mean))
	if b.value.CI95 == 0 {
		return
	}
	middle := (x(b.left) + x(b.right)) / 2
	style := draw.LineStyle{Color: plotter.DefaultLineStyle.Color, Width: vg.Points(.8)}
	low := max(y(b.value.Mean-b.value.CI95), c.Min.Y)
	high := min(y(b.value.Mean+b.value.CI95), c.Max.Y)
	c.StrokeLine2(style, middle, low, middle, high)
}

// nameBars names bars, or groups of them, that stand at 0, 1 and so on.
func nameBars(p *plot.Plot, names []string) {
	p.NominalX(names...)
	p.X.Min, p.X.Max = -.6, float64(len(names))-.4
	p.Y.Min = min(p.Y.Min, 0)
	if !(p.Y.Max > p.Y.Min) || math.IsInf(p.Y.Min, 0) {
		p.Y.Min, p.Y.Max = 0, 1
	}
	if crowded(names) {
		p.X.Tick.Label.Rotation = math.Pi / 6
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	}
}

// swatch shows a colour in a legend.
type swatch struct{ of color.Color }

// Thumbnail fills its place.
func (s swatch) Thumbnail(c *draw.Canvas) {
	fill(*c, s.of, c.Min.X, c.Max.X, c.Min.Y, c.Max.Y)
}

// fill fills a rectangle.
func fill(c draw.Canvas, with color.Color, left, right, low, high vg.Length) {
	c.FillPolygon(with, []vg.Point{
		{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high},
	})
}
