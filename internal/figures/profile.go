package figures

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// Profile draws how wide and long the jobs of a log are, and when they come: workload.svg, instead
// of figure 10 of the thesis.
func (a Album) Profile(r eval.Profile) error {
	if a.Empty() {
		return nil
	}
	p := panels{
		title: fmt.Sprintf("%s: number of jobs %d", r.Model, r.Jobs), columns: 3,
		width: 9 * vg.Centimeter, height: 7.5 * vg.Centimeter,
	}
	const part = "part of jobs"
	for _, one := range []struct {
		x, y   string
		shares []eval.Share
		ticks  plot.Ticker
	}{
		{"processors", part + " with at most so many", r.Procs, powers(r.Procs)},
		{"run time", part + " that run at most so long", r.Runs, times(r.Runs)},
		{"hour of the day", part + " that come in that hour", r.Hours, nil},
	} {
		drawn, err := sharesOf(one.x, one.y, one.shares, one.ticks)
		if err != nil {
			return err
		}
		p.plots = append(p.plots, drawn)
	}
	return a.save("workload", p.figure())
}

// sharesOf is a plot of shares, on a logarithmic axis if that has ticks of its own.
func sharesOf(x, y string, shares []eval.Share, ticks plot.Ticker) (*plot.Plot, error) {
	p := newPlot("")
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Add(horizontals())
	var at []float64
	var parts []*metrics.Interval
	for _, s := range shares {
		at, parts = append(at, s.At), append(parts, &metrics.Interval{Mean: s.Part})
	}
	if err := addSeries(p, legendAt(), series{values: parts}, at); err != nil {
		return nil, err
	}
	p.Y.Min = 0
	if ticks != nil {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks
	}
	return p, nil
}

// powers marks some of the powers of two, so that their names do not touch.
func powers(shares []eval.Share) plot.ConstantTicks {
	const most = 5
	var ticks plot.ConstantTicks
	for i := 0; i < len(shares); i += 1 + len(shares)/most {
		at := shares[i].At
		ticks = append(ticks, plot.Tick{Value: at, Label: fmt.Sprintf("%.0f", at)})
	}
	return ticks
}

// times marks the times that people name.
func times(shares []eval.Share) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, seconds := range []float64{1, 10, 60, 600, 3600, 36000} {
		if seconds <= shares[len(shares)-1].At {
			ticks = append(ticks, plot.Tick{Value: seconds, Label: brief(seconds)})
		}
	}
	return ticks
}
