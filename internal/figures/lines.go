package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// Sweep draws each measure over the first value that is varied, a line for each strategy with a
// band of its 95 % interval, and the ratios beside the first strategy: wait.svg,
// wait-ratio.svg. If two values are varied there are such figures for each one of the second:
// wait-grid.n-8.svg.
func (a Album) Sweep(r eval.SweepResult, measures []string) error {
	if a.Empty() {
		return nil
	}
	if len(r.Varied) == 1 {
		return a.sweepOver(r, measures, r.Points, "", "")
	}
	other := r.Varied[1]
	for _, value := range other.Values {
		points := slices.DeleteFunc(slices.Clone(r.Points), func(p eval.SweepPoint) bool {
			return p.Set[other.Key] != value
		})
		setting := fmt.Sprintf(", %s=%s", other.Key, value)
		file := "-" + eval.FileName(other.Key) + "-" + eval.FileName(value)
		if err := a.sweepOver(r, measures, points, setting, file); err != nil {
			return err
		}
	}
	return nil
}

func (a Album) sweepOver(
	r eval.SweepResult, measures []string, points []eval.SweepPoint, setting, file string,
) error {
	first := points[0]
	title := fmt.Sprintf("%s%s, %s", r.Scenario, setting, seedsLabel(first.First, first.Seeds))
	for _, measure := range measures {
		var values, ratios []series
		for i, name := range first.Names {
			values = append(values, seriesOf(name, i, points, func(p eval.SweepPoint) *metrics.Interval {
				return known(p.Strategies[name], measure)
			}))
			beside := first.Beside(name)
			if name == beside {
				continue
			}
			ratio := name + "/" + beside
			ratios = append(ratios, seriesOf(name, i, points, func(p eval.SweepPoint) *metrics.Interval {
				return known(p.Ratios[ratio], measure)
			}))
		}
		if none(values) {
			continue
		}
		over := chart{
			title: title, x: r.Varied[0].Key, y: measureLabel(measure), values: r.Varied[0].Values,
			series: values,
		}
		err := a.lines(measure+file, over)
		if err == nil && !none(ratios) {
			over.y, over.series = ratioLabel(measure, firstName(first)), ratios
			err = a.lines(measure+"-ratio"+file, over)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// firstName is the strategy that ratios are beside, without its case.
func firstName(p eval.SweepPoint) string {
	name := p.Names[0]
	if at := strings.LastIndex(name, "@"); len(p.Cases) > 0 && at > 0 {
		return name[:at]
	}
	return name
}

// series is a line of a sweep: a value for each one that is varied, nil where there is none.
type series struct {
	name   string
	number int // of its strategy: it has the same colour in all figures
	values []*metrics.Interval
	dashed bool // without marks
}

// none says that there is nothing to draw.
func none(all []series) bool {
	return !slices.ContainsFunc(all, func(s series) bool {
		return slices.ContainsFunc(s.values, func(v *metrics.Interval) bool { return v != nil })
	})
}

func seriesOf(
	name string, number int, points []eval.SweepPoint, of func(eval.SweepPoint) *metrics.Interval,
) series {
	s := series{name: name, number: number}
	for _, p := range points {
		s.values = append(s.values, of(p))
	}
	return s
}

// positions are where the values are on the axis: numbers and times where they belong, from the
// smallest to the largest; others side by side in the order in which they were written.
func positions(values []string) (at []float64, numbers bool) {
	for _, v := range values {
		x, err := strconv.ParseFloat(v, 64)
		if d, wrong := time.ParseDuration(v); err != nil && wrong == nil {
			x, err = d.Seconds(), nil
		}
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			at = nil
			for i := range values {
				at = append(at, float64(i))
			}
			return at, false
		}
		at = append(at, x)
	}
	return at, true
}

// chart is lines over values.
type chart struct {
	title, x, y string // x and y are the labels of the axes
	values      []string
	series      []series
	marks       plotter.XYs // points that have a ring around them
}

// lines draws the series with their bands, and what they are beside them.
func (a Album) lines(file string, c chart) error {
	p := newPlot(c.title)
	p.X.Label.Text, p.Y.Label.Text = c.x, c.y
	p.Add(horizontals())
	at, numbers := positions(c.values)
	legend := plot.NewLegend()
	legend.TextStyle.Font, legend.Top, legend.Left = sans(tickSize), true, true
	legend.Padding = vg.Points(4)
	for _, s := range c.series {
		if err := addSeries(p, &legend, s, at); err != nil {
			return err
		}
	}
	if err := addRings(p, c.marks); err != nil {
		return err
	}
	p.Y.Min = min(p.Y.Min, 0)
	if p.Y.Max <= p.Y.Min {
		p.Y.Max = p.Y.Min + 1
	}
	if !numbers {
		p.NominalX(c.values...)
		p.X.Min, p.X.Max = -.3, float64(len(at))-.7
	} else {
		if len(at) <= mostTicks {
			p.X.Tick.Marker = ticksAt(at, c.values)
		}
		p.X.Min, p.X.Max = slices.Min(at), slices.Max(at)
		if p.X.Min > 0 && p.X.Max/p.X.Min >= wide {
			p.X.Scale = plot.LogScale{}
		}
	}
	return a.save(file, figure{19 * vg.Centimeter, 10 * vg.Centimeter, func(c draw.Canvas) {
		const right = 4 * vg.Centimeter // for what the lines are
		blank(c)
		p.Draw(draw.Crop(c, 8, -right, 8, -8))
		legend.Draw(draw.Crop(c, c.Size().X-right+8, -4, 8, -28))
	}})
}

// mostTicks can be read side by side; of more values round numbers are marked.
const mostTicks = 15

// wide is a ratio of the largest value to the smallest from which on the axis is logarithmic.
const wide = 30

// ticksAt has a mark at each value, as it was written.
func ticksAt(at []float64, names []string) plot.ConstantTicks {
	ticks := make(plot.ConstantTicks, len(at))
	for i, x := range at {
		ticks[i] = plot.Tick{Value: x, Label: names[i]}
	}
	return ticks
}

// addSeries adds a band, a line over it, and its points.
func addSeries(p *plot.Plot, legend *plot.Legend, s series, at []float64) error {
	type mark struct {
		x float64
		metrics.Interval
	}
	var marks []mark
	for i, v := range s.values {
		if v != nil {
			marks = append(marks, mark{at[i], *v})
		}
	}
	if len(marks) == 0 {
		return nil
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.x, b.x) })
	var middle, low, high plotter.XYs
	for _, m := range marks {
		middle = append(middle, plotter.XY{X: m.x, Y: m.Mean})
		low = append(low, plotter.XY{X: m.x, Y: m.Mean - m.CI95})
		high = append(high, plotter.XY{X: m.x, Y: m.Mean + m.CI95})
	}
	slices.Reverse(low)
	band, err := plotter.NewPolygon(append(high, low...))
	if err != nil {
		return err
	}
	faint := colourOf(s.number)
	faint.A = 0x33
	band.Color, band.Width = faint, 0
	line, points, err := plotter.NewLinePoints(middle)
	if err != nil {
		return err
	}
	line.Color, line.Width = colourOf(s.number), vg.Points(1.5)
	points.Color, points.Radius = colourOf(s.number), vg.Points(3)
	shapes := []draw.GlyphDrawer{
		draw.CircleGlyph{},
		draw.SquareGlyph{},
		draw.TriangleGlyph{},
		draw.CrossGlyph{},
		draw.PlusGlyph{},
		draw.RingGlyph{},
		draw.PyramidGlyph{},
		draw.BoxGlyph{},
	}
	points.Shape = shapes[s.number%len(shapes)]
	if s.dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		p.Add(line)
		legend.Add(s.name, line)
		return nil
	}
	p.Add(band, line, points)
	legend.Add(s.name, line, points)
	return nil
}
