package figures

import (
	"fmt"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// Outages draws how long a task takes over the number of its checkpoints, a line for each number
// of outages, with a ring around the lowest of each: checkpoints.svg, figure 2 of OpenCCS.
func (a Album) Outages(task eval.Checkpoints, r eval.CheckpointsResult) error {
	if a.Empty() {
		return nil
	}
	longest := 0.0
	for _, curve := range r.Outages {
		for _, seconds := range curve.Seconds {
			longest = max(longest, seconds)
		}
	}
	unit, label := unitFor(time.Duration(min(longest, 1e9) * float64(time.Second)))
	c := chart{
		title: fmt.Sprintf("A task of %s, checkpoints of %s", brief(task.Run.Seconds()),
			brief(task.Cost.Seconds())),
		x: "checkpoints", y: "time that the task takes (" + label + ")",
	}
	for n := range r.Outages[0].Seconds {
		c.values = append(c.values, strconv.Itoa(n))
	}
	for i, curve := range r.Outages {
		s := series{name: outagesName(curve.Outages), number: i}
		for n, seconds := range curve.Seconds {
			value := seconds / unit.Seconds()
			s.values = append(s.values, &metrics.Interval{Mean: value})
			if int64(n) == curve.Best {
				c.marks = append(c.marks, plotter.XY{X: float64(n), Y: value})
			}
		}
		c.series = append(c.series, s)
	}
	return a.lines("checkpoints", c)
}

func outagesName(outages int64) string {
	switch outages {
	case 0:
		return "no outage"
	case 1:
		return "one outage"
	case 2:
		return "two outages"
	default:
		return fmt.Sprintf("%d outages", outages)
	}
}

// addRings puts a ring around each of some points.
func addRings(p *plot.Plot, at plotter.XYs) error {
	if len(at) == 0 {
		return nil
	}
	rings, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	rings.Shape, rings.Radius = draw.RingGlyph{}, vg.Points(6)
	p.Add(rings)
	return nil
}
