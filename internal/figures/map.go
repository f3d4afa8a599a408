package figures

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

// Map draws where sites were in the virtual map as time passed: map-MRS.svg. Its upper part is the
// map of six jobs that came at six moments: the job at the origin, the sites that offered when it
// was announced first, their risk as colour, and a ring around those that it was given to. Sites
// that stand at the same point are counted. Below is, over all jobs, which part of the sites
// offered, and how far the nearest, the middle and the chosen ones were.
func (a Album) Map(r eval.RunRecord) error {
	if a.Empty() || len(r.Offers) == 0 {
		return nil
	}
	asked := firstRounds(r)
	m := mapFigure{record: r, asked: asked, shown: moments(asked)}
	m.unit, m.unitName = unitFor(asked[len(asked)-1].at)
	for _, i := range m.shown {
		for _, o := range asked[i].offers {
			m.risk = max(m.risk, o.Z)
		}
	}
	strips, err := m.strips()
	if err != nil {
		return err
	}
	return a.save("map-"+eval.FileName(r.Strategy), m.figure(m.maps(), strips))
}

// mapFigure has all that it is drawn from.
type mapFigure struct {
	record   eval.RunRecord
	asked    []announced
	shown    []int // in asked
	unit     time.Duration
	unitName string
	risk     float64 // the greatest that is shown
}

// in is a time in the unit of the figure.
func (m *mapFigure) in(d time.Duration) float64 { return d.Seconds() / m.unit.Seconds() }

// announced is a job and the offers that answered its first announcement.
type announced struct {
	at     time.Duration
	offers []eval.Offer
	taken  []float64 // distances of all offers that it was given to, whenever
}

// firstRounds lists all jobs, in the order of submission. A site that is asked to hold what it has
// offered says again where it is: it counts once, where it was first.
func firstRounds(r eval.RunRecord) []announced {
	all := make([]announced, len(r.Jobs))
	type siteOf struct{ job, site int }
	seen := make(map[siteOf]int) // its place among the job's offers
	for i, j := range r.Jobs {
		all[i].at = j.Submit
	}
	for _, o := range r.Offers {
		job := &all[o.Job]
		at, again := seen[siteOf{o.Job, o.Site}]
		switch {
		case o.Round == 1 && again:
			job.offers[at].Taken = job.offers[at].Taken || o.Taken
		case o.Round == 1:
			seen[siteOf{o.Job, o.Site}] = len(job.offers)
			job.offers = append(job.offers, o)
		}
		if o.Taken {
			job.taken = append(job.taken, o.Distance)
		}
	}
	return all
}

const (
	mapsShown = 6
	mapColumn = 3 // maps beside each other
)

// moments chooses jobs to show: after each sixth of the time the first one that had an offer.
func moments(asked []announced) []int {
	var shown []int
	last := asked[len(asked)-1].at
	for k := range mapsShown {
		from := last * time.Duration(k) / mapsShown
		i := slices.IndexFunc(asked, func(j announced) bool {
			return j.at >= from && len(j.offers) > 0
		})
		if i >= 0 && !slices.Contains(shown, i) {
			shown = append(shown, i)
		}
	}
	return shown
}

func (m *mapFigure) labels() (x, y string) {
	if m.record.InSeconds {
		return "wait and run (s)", "data on its way (s)"
	}
	return "x: computation", "y: data"
}

// maps are the plots of the jobs that are shown.
func (m *mapFigure) maps() []*plot.Plot {
	var plots []*plot.Plot
	for _, i := range m.shown {
		job := m.asked[i]
		p := newPlot(fmt.Sprintf("after %.3g %s: %d of %d sites offer", m.in(job.at), m.unitName,
			len(job.offers), len(m.record.Grid.Sites)))
		p.Title.TextStyle.Font = sans(labelSize)
		p.X.Label.Text, p.Y.Label.Text = m.labels()
		p.Add(&sitesAt{m: m, offers: job.offers})
		reach := plotter.XY{}
		for _, o := range job.offers {
			reach.X, reach.Y = max(reach.X, o.X), max(reach.Y, o.Y)
		}
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, upTo(reach.X), 0, upTo(reach.Y)
		p.X.Tick.Marker, p.Y.Tick.Marker = ticker{4}, ticker{4}
		plots = append(plots, p)
	}
	return plots
}

// upTo leaves some room behind the farthest point.
func upTo(far float64) float64 {
	if !(far > 0) {
		return 1
	}
	return 1.12 * far
}

// sitesAt is a plotter of the sites in one map.
type sitesAt struct {
	m      *mapFigure
	offers []eval.Offer
}

// Plot draws the job, and a dot for each point at which a site stands.
func (s *sitesAt) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	count, taken := make(map[plotter.XY]int), make(map[plotter.XY]bool)
	for _, o := range s.offers {
		at := plotter.XY{X: o.X, Y: o.Y}
		count[at]++
		taken[at] = taken[at] || o.Taken
	}
	words := p.X.Tick.Label
	words.XAlign, words.YAlign = draw.XLeft, draw.YBottom
	drawn := make(map[plotter.XY]bool)
	for _, o := range s.offers {
		at := plotter.XY{X: o.X, Y: o.Y}
		if drawn[at] {
			continue
		}
		drawn[at] = true
		to := vg.Point{X: x(at.X), Y: y(at.Y)}
		c.DrawGlyphNoClip(draw.GlyphStyle{
			Color: riskColour(o.Z, s.m.risk), Radius: vg.Points(3.5), Shape: draw.CircleGlyph{},
		}, to)
		if taken[at] {
			c.DrawGlyphNoClip(draw.GlyphStyle{
				Color: color.Black, Radius: vg.Points(6), Shape: draw.RingGlyph{},
			}, to)
		}
		if n := count[at]; n > 1 {
			c.FillText(words, vg.Point{X: to.X + 5, Y: to.Y + 3}, fmt.Sprintf("%d sites", n))
		}
	}
	c.DrawGlyphNoClip(draw.GlyphStyle{
		Color: color.Black, Radius: vg.Points(5), Shape: draw.PlusGlyph{},
	}, vg.Point{X: x(0), Y: y(0)})
}

// riskColour goes from light to dark as a risk grows to the greatest.
func riskColour(z, greatest float64) color.Color {
	part := 0.0
	if greatest > 0 {
		part = z / greatest
	}
	mix := func(light, dark float64) uint8 { return uint8(math.Round(light + part*(dark-light))) }
	return color.NRGBA{mix(0xf6, 0x7a), mix(0xc1, 0x04), mix(0x42, 0x03), 0xff}
}

// figure puts the maps over the strips.
func (m *mapFigure) figure(maps, strips []*plot.Plot) figure {
	const width, above, below = 27 * vg.Centimeter, 6.5 * vg.Centimeter, 5 * vg.Centimeter
	upper := panels{plots: maps, columns: mapColumn}.rows()
	height := titleHeight + vg.Length(len(upper))*above + 2*below + 2*aroundPanels
	return figure{width, height, func(c draw.Canvas) {
		blank(c)
		panels{title: m.title()}.drawTitle(c)
		c = draw.Crop(c, aroundPanels, -aroundPanels, aroundPanels, -titleHeight)
		drawPlots(draw.Crop(c, 0, 0, 2*below+aroundPanels, 0), upper)
		drawPlots(draw.Crop(c, 0, 0, 0, 2*below-c.Size().Y),
			[][]*plot.Plot{{strips[0]}, {strips[1]}})
	}}
}

func (m *mapFigure) title() string {
	r := m.record
	title := fmt.Sprintf("%s, %s, seed %d: sites around a job (+); dark: risk z up to %.2g; "+
		"ring: chosen", r.Experiment, r.Strategy, r.Seed, m.risk)
	if r.OffersCut {
		title += fmt.Sprintf("; the first %d offers", len(r.Offers))
	}
	return title
}
