package figures

import (
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// mapBins bounds the points of a line over time.
const mapBins = 60

// strips are the plots over time.
func (m *mapFigure) strips() ([]*plot.Plot, error) {
	bins, far := m.bins(), m.strip("distance from a job, medians", "distance")
	if m.record.InSeconds {
		far.Y.Label.Text = "distance (s)"
	}
	for _, line := range []struct {
		name   string
		number int // its colour
		values func(announced) []float64
	}{
		{"nearest", 2, func(j announced) []float64 { return j.quantile(0) }},
		{"in the middle", 0, func(j announced) []float64 { return j.quantile(.5) }},
		{"chosen", 1, func(j announced) []float64 { return j.taken }},
	} {
		if err := addLine(far, line.name, line.number, m.medians(bins, line.values)); err != nil {
			return nil, err
		}
	}
	offer, sites := m.strip("sites that offer", "part of all"), float64(len(m.record.Grid.Sites))
	if err := addLine(offer, "", 0, m.medians(bins, func(j announced) []float64 {
		return []float64{float64(len(j.offers)) / sites}
	})); err != nil {
		return nil, err
	}
	offer.Y.Min, offer.Y.Max = 0, 1
	far.Y.Min, far.Y.Max = 0, upTo(1.2*far.Y.Max) // room for what the lines are
	for _, p := range []*plot.Plot{offer, far} {
		p.X.Min, p.X.Max = 0, m.in(m.last())
	}
	return []*plot.Plot{offer, far}, nil
}

// last is when the last job came; above 0.
func (m *mapFigure) last() time.Duration { return max(m.asked[len(m.asked)-1].at, 1) }

// bins are the jobs by the time when they came.
func (m *mapFigure) bins() [][]announced {
	bins := make([][]announced, mapBins)
	for _, job := range m.asked {
		i := min(int(float64(job.at)/float64(m.last())*mapBins), mapBins-1)
		bins[i] = append(bins[i], job)
	}
	return bins
}

// medians are those of what jobs say, over time, where they say anything.
func (m *mapFigure) medians(bins [][]announced, of func(announced) []float64) plotter.XYs {
	var points plotter.XYs
	for i, bin := range bins {
		var all []float64
		for _, job := range bin {
			all = append(all, of(job)...)
		}
		if len(all) > 0 {
			slices.Sort(all)
			at := (float64(i) + .5) / mapBins * m.in(m.last())
			points = append(points, plotter.XY{X: at, Y: all[len(all)/2]})
		}
	}
	return points
}

// quantile is the distance of one of the offers, if there is any.
func (j announced) quantile(q float64) []float64 {
	if len(j.offers) == 0 {
		return nil
	}
	var all []float64
	for _, o := range j.offers {
		all = append(all, o.Distance)
	}
	slices.Sort(all)
	return []float64{all[int(q*float64(len(all)))]}
}

// strip is an empty plot over time.
func (m *mapFigure) strip(title, label string) *plot.Plot {
	p := newPlot(title)
	p.Title.TextStyle.Font = sans(labelSize)
	p.X.Label.Text, p.Y.Label.Text = "time ("+m.unitName+")", label
	p.Y.Tick.Marker = ticker{4}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(3)
	p.Add(horizontals())
	return p
}

// addLine adds a line, with a name if it has one.
func addLine(p *plot.Plot, name string, number int, at plotter.XYs) error {
	if len(at) == 0 {
		return nil
	}
	line, points, err := plotter.NewLinePoints(at)
	if err != nil {
		return err
	}
	line.Color, line.Width = colourOf(number), vg.Points(1)
	points.Color, points.Shape, points.Radius = line.Color, draw.CircleGlyph{}, vg.Points(1.8)
	p.Add(line, points)
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}
