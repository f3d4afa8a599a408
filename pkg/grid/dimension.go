package grid

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Dimension is one axis of the virtual map. Smaller is better on all of them.
type Dimension uint8

// The dimensions. The first three are the thesis'; the others are ours, and are
// measured only for jobs that name them.
const (
	Computation  Dimension = iota + 1 // x
	DataMoved                         // y
	Availability                      // z
	// QueueWait is the time until the earliest start, as a multiple of the run time; in
	// seconds in the seconds map.
	QueueWait
	Latency       // round trip to the submitter, in tenths of a second; in seconds in the seconds map
	Price         // what the task would cost, in the owners' own unit
	Distrust      // of the submitter in the site, 0 to 1, from its fault index
	lastDimension = Distrust
)

// dimension describes one: its name in job files and tables, and who knows its value.
type dimension struct {
	name      string
	submitter bool // the submitter knows, rather than the site
}

// dimensions is the one place in which a dimension is declared; its formula
// stands in pkg/index.
func dimensions() []dimension {
	return []dimension{
		Computation:  {name: "computation"},
		DataMoved:    {name: "data"},
		Availability: {name: "availability"},
		QueueWait:    {name: "wait"},
		Latency:      {name: "latency", submitter: true},
		Price:        {name: "price"},
		Distrust:     {name: "trust", submitter: true},
	}
}

// String is the dimension's name in job files.
func (d Dimension) String() string {
	if d < 1 || d > lastDimension {
		return fmt.Sprintf("dimension %d", uint8(d))
	}
	return dimensions()[d].name
}

// BySubmitter reports whether the submitter knows the value, rather than the
// site: how far the site is from it, and how it has fared with it.
func (d Dimension) BySubmitter() bool {
	return d >= 1 && d <= lastDimension && dimensions()[d].submitter
}

// DimensionNames lists the names of all dimensions, in their order.
func DimensionNames() []string {
	var names []string
	for _, d := range dimensions()[1:] {
		names = append(names, d.name)
	}
	return names
}

// ParseDimension reads a dimension's name.
func ParseDimension(name string) (Dimension, error) {
	at := slices.Index(DimensionNames(), name)
	if at < 0 {
		return 0, invalidf("dimension %q: want one of %s", name, strings.Join(DimensionNames(), ", "))
	}
	return Dimension(at + 1), nil
}

// Axis is a dimension that counts in a job's map. The weight multiplies the
// squared value: 0 ignores it, 1 is neutral. In the seconds map, where distance is
// in seconds, the weight of a dimension that is no time is in squared seconds.
type Axis struct {
	Dimension Dimension
	Weight    float64
}

// DefaultAxes are the thesis' three, with neutral weights.
func DefaultAxes() []Axis {
	return []Axis{{Computation, 1}, {DataMoved, 1}, {Availability, 1}}
}

// ValidateAxes reports the first axis that makes no sense. None at all means DefaultAxes.
func ValidateAxes(axes []Axis) error {
	var seen [lastDimension + 1]bool
	for _, a := range axes {
		switch {
		case a.Dimension < 1 || a.Dimension > lastDimension:
			return invalidf("map: %s is unknown", a.Dimension)
		case seen[a.Dimension]:
			return invalidf("map: %s stands there twice", a.Dimension)
		case !(a.Weight >= 0) || a.Weight > math.MaxFloat32:
			return invalidf("map: %s: want a weight of at least 0, have %v", a.Dimension, a.Weight)
		}
		seen[a.Dimension] = true
	}
	return nil
}

// Coordinate is a site's position on an axis beyond x, y and z.
type Coordinate struct {
	Dimension Dimension
	Value     float64 // at least 0
	Known     bool    // otherwise the term is left out of the distance, and that is said
}

// Validate reports a coordinate that makes no sense.
func (c Coordinate) Validate() error {
	if c.Dimension <= Availability || c.Dimension > lastDimension {
		return invalidf("offer: %s is no further coordinate", c.Dimension)
	}
	if !(c.Value >= 0) || math.IsInf(c.Value, 1) {
		return invalidf("offer: %s: want a finite number of at least 0, have %v", c.Dimension, c.Value)
	}
	return nil
}
