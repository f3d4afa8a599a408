package index

import (
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// latencyUnit is one unit of the axis of latency in the thesis map: a round trip
// that a person notices.
const latencyUnit = 100 * time.Millisecond

// place works out the distance of a site whose parts are known, on the job's axes
// or, where it names none, on the thesis' three.
func place(req *grid.Requirement, site *Site, p *grid.Parts) {
	core := coreAxes(p, req.Map)
	if len(req.Axes) == 0 {
		p.Distance, _ = Distance(core[0], core[1], core[2]) // finite and at least 0
		return
	}
	p.Distance = 0
	for _, axis := range req.Axes {
		var value float64
		switch {
		case axis.Dimension <= grid.Availability:
			value = core[axis.Dimension-grid.Computation]
		case axis.Dimension.BySubmitter():
			continue
		default:
			c := coordinate(axis.Dimension, req, site, p)
			p.Further = append(p.Further, c)
			value = c.Value
		}
		p.Distance = farther(p.Distance, value, axis.Weight)
	}
}

// coreAxes are the thesis' three in the units of the map.
func coreAxes(p *grid.Parts, kind grid.MapKind) [3]float64 {
	if kind != grid.MapSeconds {
		return [3]float64{p.X, p.Y, p.Z}
	}
	wait, stage, run := p.Wait.Seconds(), p.StageIn.Seconds(), p.Run.Seconds()
	return [3]float64{wait + run, stage, p.Z * (wait + stage + run)}
}

// Lag is the axis on which a site loses most against another one.
type Lag struct {
	Dimension grid.Dimension // 0: on none
	Value     float64        // of the site
	Nearest   float64        // of the other one
}

// Behind says on which of the job's axes a site is farther than the nearest one,
// and adds most to its distance: on none if they are equally near.
func Behind(p, nearest grid.Parts, req grid.Requirement) Lag {
	if p.Distance-nearest.Distance <= EqualDistance {
		return Lag{}
	}
	axes := req.Axes
	if len(axes) == 0 {
		axes = grid.DefaultAxes()
	}
	var worst Lag
	most := 0.0
	for _, axis := range axes {
		own, other := valueOn(axis.Dimension, &p, req.Map), valueOn(axis.Dimension, &nearest, req.Map)
		if loss := axis.Weight * (own - other) * (own + other); loss > most {
			most, worst = loss, Lag{Dimension: axis.Dimension, Value: own, Nearest: other}
		}
	}
	return worst
}

func valueOn(d grid.Dimension, p *grid.Parts, kind grid.MapKind) float64 {
	if d <= grid.Availability {
		return coreAxes(p, kind)[d-grid.Computation]
	}
	for _, c := range p.Further {
		if c.Dimension == d {
			return c.Value
		}
	}
	return 0
}

// coordinate returns the site's position on one of the axes that it knows and that are
// not the thesis'.
func coordinate(
	d grid.Dimension, req *grid.Requirement, site *Site, p *grid.Parts,
) grid.Coordinate {
	c := grid.Coordinate{Dimension: d}
	switch d { //nolint:exhaustive // the others are the thesis', or the submitter's
	case grid.QueueWait:
		c.Value, c.Known = p.Wait.Seconds(), true
		if runtime := req.Runtime.Seconds(); req.Map == grid.MapThesis && runtime > 0 {
			c.Value /= runtime
		}
	case grid.Price:
		cores := float64(max(req.Need.MilliCPUs, 1000)) / 1000
		c.Value, c.Known = site.Price*cores*p.Run.Hours(), site.Priced
	}
	return sane(c)
}

// Standing holds what a submitter knows of a site that has made an offer.
type Standing struct {
	RoundTrip      time.Duration // between the two
	RoundTripKnown bool
	FaultIndex     float64 // of the site; 0 = it has not failed lately
}

// Complete adds the submitter's own axes to an offer's parts: latency, and the
// distrust f/(1+f) that follows from a fault index of f. A job that names neither
// gets the parts back as they are.
func Complete(p grid.Parts, req grid.Requirement, s Standing) grid.Parts {
	var own []grid.Coordinate
	for _, axis := range req.Axes {
		if !axis.Dimension.BySubmitter() {
			continue
		}
		c := grid.Coordinate{Dimension: axis.Dimension}
		switch axis.Dimension { //nolint:exhaustive // the others are the site's
		case grid.Latency:
			c.Value, c.Known = max(s.RoundTrip, 0).Seconds(), s.RoundTripKnown
			if req.Map == grid.MapThesis {
				c.Value /= latencyUnit.Seconds()
			}
		case grid.Distrust:
			f := max(s.FaultIndex, 0)
			c.Value, c.Known = f/(1+f), true
		}
		c = sane(c)
		own = append(own, c)
		p.Distance = farther(p.Distance, c.Value, axis.Weight)
	}
	if len(own) > 0 {
		p.Further = append(slices.Clip(p.Further), own...) // a copy: offers are values
	}
	return p
}

// farther is a distance with one more weighted component.
func farther(distance, value, weight float64) float64 {
	return min(math.Hypot(distance, math.Sqrt(weight)*value), math.MaxFloat64)
}

// sane makes what is unknown, or no amount, 0 and unknown.
func sane(c grid.Coordinate) grid.Coordinate {
	if !c.Known || !(c.Value >= 0) || math.IsInf(c.Value, 1) {
		c.Value, c.Known = 0, false
	}
	return c
}
