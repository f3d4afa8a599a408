package figures

import (
	"fmt"
	"strconv"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// Odds draws how likely a job succeeds with copies, with predictions, and with several tries:
// odds-copies.svg, odds-once.svg and odds-tries.svg, figures 7 to 9 of the thesis. What the thesis
// takes for it is dashed.
func (a Album) Odds(o eval.Odds, r eval.OddsResult) error {
	if a.Empty() {
		return nil
	}
	const wrong = "probability that a resource is predicted wrongly"
	for _, f := range []struct {
		file, title, x string
		curves         []eval.OddsCurve
	}{
		{"odds-copies", "One of K copies survives", "availability", r.Copies},
		{"odds-once", "All of k resources are predicted rightly", wrong, r.Once},
		{
			"odds-tries",
			fmt.Sprintf("One of R tries succeeds, resources in each: %d", o.Resources), wrong,
			r.Tries,
		},
	} {
		c := chart{title: f.title, x: f.x, y: "probability of success"}
		for _, x := range r.Over {
			c.values = append(c.values, strconv.FormatFloat(x, 'g', -1, 64))
		}
		for i, curve := range f.curves {
			c.series = append(c.series, series{
				name: curve.Name, number: i, values: exact(curve.Success),
			})
			if curve.Paper != nil {
				c.series = append(c.series, series{
					name: curve.Name + ", thesis", number: i, values: exact(curve.Paper),
					dashed: true,
				})
			}
		}
		if err := a.lines(f.file, c); err != nil {
			return err
		}
	}
	return nil
}

// exact are values without intervals.
func exact(values []float64) []*metrics.Interval {
	all := make([]*metrics.Interval, len(values))
	for i, x := range values {
		all[i] = &metrics.Interval{Mean: x}
	}
	return all
}
