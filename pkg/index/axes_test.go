package index

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// allAxes draws some of the dimensions with weights.
func allAxes(t *rapid.T) []grid.Axis {
	var axes []grid.Axis
	for d := grid.Computation; d <= grid.Distrust; d++ {
		if rapid.Bool().Draw(t, d.String()) {
			axes = append(axes, grid.Axis{Dimension: d, Weight: rapid.Float64Range(0, 5).Draw(t, "weight")})
		}
	}
	return axes
}

func TestDefaultAxesAreTheThesis(t *testing.T) {
	for _, kind := range []grid.MapKind{grid.MapThesis, grid.MapSeconds} {
		req, site := need(), plenty()
		req.Map, site.Up, site.Wait = kind, 0.8, 3*time.Second
		bare, _, _ := Measure(req, site)
		req.Axes = grid.DefaultAxes()
		named, _, ok := Measure(req, site)
		if !ok || !near(bare.Distance, named.Distance) || len(named.Further) != 0 {
			t.Errorf("%v map: %v without axes, %v with the default ones",
				kind, bare.Distance, named.Distance)
		}
	}
}

func TestFurtherDimensions(t *testing.T) {
	req, site := need(), plenty()
	req.Need.MilliCPUs, site.Sources = 2000, nil
	site.Wait, site.Priced, site.Price = 50*time.Second, true, 3.6
	req.Axes = []grid.Axis{
		{Dimension: grid.QueueWait, Weight: 4},
		{Dimension: grid.Price, Weight: 1},
		{Dimension: grid.Latency, Weight: 1},
	}
	got, _, ok := Measure(req, site)
	// Half a run time of waiting; 2 cores for 100 s at 3.6 an hour cost 0.2.
	want := []grid.Coordinate{
		{Dimension: grid.QueueWait, Value: 0.5, Known: true},
		{Dimension: grid.Price, Value: 0.2, Known: true},
	}
	if !ok || len(got.Further) != 2 || !near(got.Further[1].Value, 0.2) || got.Further[0] != want[0] {
		t.Fatalf("further coordinates = %+v, want %+v", got.Further, want)
	}
	if d := math.Sqrt(4*0.25 + 0.04); !near(got.Distance, d) {
		t.Errorf("distance at the site = %v, want %v: latency is the submitter's", got.Distance, d)
	}
	all := Complete(got, req, Standing{RoundTrip: 200 * time.Millisecond, RoundTripKnown: true})
	if d := math.Sqrt(4*0.25 + 0.04 + 4); !near(all.Distance, d) || len(all.Further) != 3 ||
		len(got.Further) != 2 {
		t.Errorf("distance at the submitter = %v with %v, want %v", all.Distance, all.Further, d)
	}
	site.Priced = false
	if got, _, _ = Measure(req, site); got.Further[1].Known || !near(got.Distance, 1) {
		t.Errorf("no price named: %+v at %v, want it left out and said", got.Further[1], got.Distance)
	}
	all = Complete(got, req, Standing{})
	if all.Further[2].Known || !near(all.Distance, got.Distance) {
		t.Errorf("no round trip measured: %+v, want it left out and said", all.Further[2])
	}
}

func TestDistrustGrowsWithTheFaultIndex(t *testing.T) {
	req := grid.Requirement{Axes: []grid.Axis{{Dimension: grid.Distrust, Weight: 1}}}
	for faults, want := range map[float64]float64{-5: 0, 0: 0, .25: .2, 1: 0.5, 3: 0.75, 1e300: 1} {
		if p := Complete(grid.Parts{}, req, Standing{FaultIndex: faults}); !near(p.Distance, want) {
			t.Errorf("fault index %v: distance %v, want %v", faults, p.Distance, want)
		}
	}
}

func TestUnknownPotentialIsSaid(t *testing.T) {
	req, site := need(), plenty()
	if p, _, _ := Measure(req, site); p.PotentialUnknown {
		t.Error("the source names its potential, and it is called unknown")
	}
	req.Sources[0].PotentialBps = 0
	site.PotentialBps = 0
	if p, _, _ := Measure(req, site); !p.PotentialUnknown || p.X != 0 {
		t.Errorf("x = %v, unknown %v; want the term left out and said", p.X, p.PotentialUnknown)
	}
	req.Sources = nil
	if p, _, _ := Measure(req, site); p.PotentialUnknown {
		t.Error("there is no data, and its potential is called unknown")
	}
}

// The distance is the weighted Euclidean one, computed here the dumb way, and
// each axis can only add to it.
func TestAxesAgainstTheDumbTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, site := need(), plenty()
		req.Map = rapid.SampledFrom([]grid.MapKind{grid.MapThesis, grid.MapSeconds}).Draw(t, "map")
		site.Up = rapid.Float64Range(0, 1).Draw(t, "up")
		site.Wait = time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "wait"))
		site.Priced, site.Price = rapid.Bool().Draw(t, "priced"),
			rapid.Float64Range(0, 100).Draw(t, "price")
		standing := Standing{
			RoundTrip:      time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "rtt")),
			RoundTripKnown: rapid.Bool().Draw(t, "measured"),
			FaultIndex:     rapid.Float64Range(0, 9).Draw(t, "faults"),
		}
		axes := allAxes(t)
		if len(axes) == 0 {
			return
		}
		req.Axes = axes
		measure := func() grid.Parts {
			p, refusal, ok := Measure(req, site)
			if !ok {
				t.Fatalf("refused: %+v", refusal)
			}
			return Complete(p, req, standing)
		}
		p := measure()
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, a := range axes {
			v := valueOn(a.Dimension, &p, req.Map)
			sum += a.Weight * v * v
		}
		if !near(p.Distance, math.Sqrt(sum)) {
			t.Errorf("distance %v, want %v", p.Distance, math.Sqrt(sum))
		}
		req.Axes = rapid.Permutation(axes).Draw(t, "shuffled")
		if q := measure(); !near(q.Distance, p.Distance) {
			t.Errorf("the order of the axes matters: %v and %v", p.Distance, q.Distance)
		}
		req.Axes = axes[:len(axes)-1]
		if q := measure(); len(req.Axes) > 0 && q.Distance > p.Distance*(1+1e-9) {
			t.Errorf("an axis less makes it farther: %v and %v", p.Distance, q.Distance)
		}
	})
}

func TestBehindNamesTheWorstAxis(t *testing.T) {
	req := grid.Requirement{
		Axes: []grid.Axis{{Dimension: grid.DataMoved, Weight: 1}, {Dimension: grid.Price, Weight: 4}},
	}
	nearest := grid.Parts{
		Y: 1, Further: []grid.Coordinate{{Dimension: grid.Price, Value: 1, Known: true}},
		Distance: 2,
	}
	p := grid.Parts{
		Y: 2, Further: []grid.Coordinate{{Dimension: grid.Price, Value: 2, Known: true}},
		Distance: 4,
	}
	want := Lag{Dimension: grid.Price, Value: 2, Nearest: 1}
	if diff := cmp.Diff(want, Behind(p, nearest, req)); diff != "" {
		t.Errorf("Behind (-want +got):\n%s", diff)
	}
	if got := Behind(nearest, nearest, req); got.Dimension != 0 {
		t.Errorf("behind itself on %v", got.Dimension)
	}
	req.Axes = nil
	if got := Behind(p, nearest, req); got.Dimension != grid.DataMoved {
		t.Errorf("on the thesis' axes behind on %v, want data", got.Dimension)
	}
}

func TestEveryDimensionHasAFormula(t *testing.T) {
	req, site := need(), plenty()
	site.Priced, site.Price, site.Up, site.Wait, site.Free.MFLOPS = true, 1, 0.5, time.Minute, 500
	for i, name := range grid.DimensionNames() {
		d := grid.Dimension(i + 1)
		req.Axes = []grid.Axis{{Dimension: d, Weight: 1}}
		p, _, _ := Measure(req, site)
		p = Complete(p, req, Standing{RoundTrip: time.Second, RoundTripKnown: true, FaultIndex: 1})
		if p.Distance == 0 {
			t.Errorf("%s adds nothing to the distance", name)
		}
		unknown := slices.ContainsFunc(p.Further, func(c grid.Coordinate) bool { return !c.Known })
		if d > grid.Availability && (len(p.Further) != 1 || unknown) {
			t.Errorf("%s: further coordinates %+v", name, p.Further)
		}
	}
}

func BenchmarkAxes(b *testing.B) {
	for _, n := range []int{3, 5, 7} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			req, site := need(), plenty()
			for d := range n {
				req.Axes = append(req.Axes, grid.Axis{Dimension: grid.Dimension(d + 1), Weight: 1})
			}
			site.Priced, site.Price = true, 1
			b.ReportAllocs()
			for b.Loop() {
				if _, _, ok := Measure(req, site); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}
