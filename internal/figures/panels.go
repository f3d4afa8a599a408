package figures

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panels are several plots of one size in one figure, row by row, with a title over them and at
// the right what their lines or bars are.
type panels struct {
	title         string
	plots         []*plot.Plot
	columns       int
	width, height vg.Length // of a plot
	legend        *plot.Legend
	legendWidth   vg.Length
}

const (
	titleHeight   = vg.Length(36)
	betweenPanels = vg.Length(14)
	aroundPanels  = vg.Length(10)
)

// rows are the plots in rows; a last row that is not full has nil at its end.
func (p panels) rows() [][]*plot.Plot {
	var rows [][]*plot.Plot
	for i, one := range p.plots {
		if i%p.columns == 0 {
			rows = append(rows, make([]*plot.Plot, p.columns))
		}
		rows[len(rows)-1][i%p.columns] = one
	}
	return rows
}

func (p panels) figure() figure {
	rows := p.rows()
	width := vg.Length(p.columns)*p.width + p.legendWidth + 2*aroundPanels
	height := vg.Length(len(rows))*p.height + titleHeight + aroundPanels
	return figure{width, height, func(c draw.Canvas) {
		blank(c)
		p.drawTitle(c)
		right := -aroundPanels - p.legendWidth
		drawPlots(draw.Crop(c, aroundPanels, right, aroundPanels, -titleHeight), rows)
		if p.legend != nil {
			p.legend.Draw(draw.Crop(c, c.Size().X-p.legendWidth, 0, 0, -titleHeight))
		}
	}}
}

func (p panels) drawTitle(c draw.Canvas) {
	style := newPlot("").Title.TextStyle
	style.XAlign, style.YAlign = draw.XCenter, draw.YTop
	c.FillText(style, vg.Point{X: c.Center().X, Y: c.Max.Y - 8}, p.title)
}

// drawPlots draws plots in rows, their axes under and beside each other.
func drawPlots(c draw.Canvas, rows [][]*plot.Plot) {
	tiles := draw.Tiles{
		Rows: len(rows), Cols: len(rows[0]), PadX: betweenPanels, PadY: betweenPanels,
	}
	for j, canvases := range plot.Align(rows, tiles, c) {
		for i, canvas := range canvases {
			if rows[j][i] != nil {
				rows[j][i].Draw(canvas)
			}
		}
	}
}

// legendAt is an empty legend of panels.
func legendAt() *plot.Legend {
	legend := plot.NewLegend()
	legend.TextStyle.Font, legend.Top, legend.Left = sans(tickSize), true, true
	legend.Padding = vg.Points(4)
	return &legend
}
