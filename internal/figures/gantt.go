package figures

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

// Gantt draws who holds how many nodes of which site when: gantt-BACKFILL.svg. Neighbours have
// different colours; the same one does not mean the same job.
func (a Album) Gantt(r eval.RunRecord) error {
	title := fmt.Sprintf("%s, %s, seed %d: who holds which nodes", r.Experiment, r.Strategy, r.Seed)
	if n := len(r.Grid.Sites); n > mostRows {
		title += fmt.Sprintf(" (the %d busiest of %d sites)", mostRows, n)
	}
	p := newPlot(title)
	rows := rowsOf(r, busiest(r))
	last := time.Duration(0)
	for _, h := range r.Holds {
		last = max(last, h.To)
	}
	unit, label := unitFor(last)
	p.Add(&gantt{record: r, places: r.Places(), rows: rows, unit: unit})
	p.X.Label.Text, p.Y.Label.Text = "time ("+label+")", "site and its nodes"
	p.X.Min, p.X.Max = 0, max(last, time.Second).Seconds()/unit.Seconds()
	p.X.Tick.Marker = ticker{10}
	p.Y.Min, p.Y.Max = rows[len(rows)-1].low, rows[0].low+rows[0].height
	var ticks plot.ConstantTicks
	for _, row := range rows {
		ticks = append(ticks, plot.Tick{
			Value: row.low + row.height/2, Label: fmt.Sprintf("s%d  %.4g", row.site, row.nodes),
		})
	}
	p.Y.Tick.Marker, p.Y.Tick.Length = ticks, 0
	return a.save("gantt-"+eval.FileName(r.Strategy), figure{
		26 * vg.Centimeter, vg.Length(p.Y.Max-p.Y.Min+margins) * vg.Centimeter, whole(p),
	})
}

// unitFor is a unit in which a time is a number that one can read.
func unitFor(d time.Duration) (time.Duration, string) {
	switch {
	case d < 5*time.Minute:
		return time.Second, "s"
	case d < 5*time.Hour:
		return time.Minute, "min"
	case d < 10*24*time.Hour:
		return time.Hour, "h"
	default:
		return 24 * time.Hour, "days"
	}
}

// row is the part of the figure that a site has; low and height in cm.
type row struct {
	site               int
	low, height, nodes float64
}

// mostRows bounds the height of a figure to that of a poster.
const mostRows = 100

const (
	leastRow    = .42 // cm: the site's name fits beside it
	betweenRows = .06
	margins     = 2.6 // title and axis
)

// busiest are the sites that are drawn, in their order: all, or those of which most was held.
func busiest(r eval.RunRecord) []int {
	sites, held := make([]int, len(r.Grid.Sites)), make([]float64, len(r.Grid.Sites))
	for i := range sites {
		sites[i] = i
	}
	for _, h := range r.Holds {
		held[h.Site] += h.Nodes * (h.To - h.From).Seconds()
	}
	slices.SortStableFunc(sites, func(a, b int) int { return cmp.Compare(held[b], held[a]) })
	sites = sites[:min(len(sites), mostRows)]
	slices.Sort(sites)
	return sites
}

// rowsOf gives each site a row, the first one on top, and large ones more than small ones.
func rowsOf(r eval.RunRecord, sites []int) []row {
	all := 0.0
	for _, i := range sites {
		all += float64(r.Grid.Sites[i].MilliCPUs) / 1000
	}
	shared := max(8, .25*float64(len(sites))) // cm, by their nodes
	rows := make([]row, len(sites))
	low := 0.0
	for k, i := range sites {
		nodes := float64(r.Grid.Sites[i].MilliCPUs) / 1000
		height := leastRow + shared*nodes/all
		low -= height + betweenRows
		rows[k] = row{i, low, height, nodes}
	}
	return rows
}

// gantt is a plotter.
type gantt struct {
	record eval.RunRecord
	places []eval.Place
	rows   []row
	unit   time.Duration
}

// Plot draws a rectangle for each place.
func (g *gantt) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	box := func(from, to time.Duration, low, high float64, fill color.Color) {
		left, right := x(from.Seconds()/g.unit.Seconds()), x(to.Seconds()/g.unit.Seconds())
		c.FillPolygon(fill, []vg.Point{
			{X: left, Y: y(low)},
			{X: right, Y: y(low)},
			{X: right, Y: y(high)},
			{X: left, Y: y(high)},
		})
	}
	rows := make(map[int]row)
	for _, row := range g.rows {
		rows[row.site] = row
		c.FillPolygon(color.NRGBA{0xee, 0xee, 0xee, 0xff}, []vg.Point{
			{X: c.Min.X, Y: y(row.low)},
			{X: c.Max.X, Y: y(row.low)},
			{X: c.Max.X, Y: y(row.low + row.height)},
			{X: c.Min.X, Y: y(row.low + row.height)},
		})
	}
	for _, place := range g.places {
		h := g.record.Holds[place.Hold]
		row, drawn := rows[h.Site]
		if !drawn {
			continue
		}
		scale := row.height / row.nodes
		box(h.From, h.To, row.low+place.Low*scale, row.low+place.High*scale, colourOf(h.Job))
	}
}
