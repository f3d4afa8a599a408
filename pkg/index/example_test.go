package index_test

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// A site measures how far it is from a job: x for computation, y for data, z for the risk
// that it leaves.
func ExampleMeasure() {
	need := grid.Resources{MilliCPUs: 1_000, MemoryBytes: 1 << 30, MFLOPS: 2_000}
	req := grid.Requirement{
		Kind: grid.KindWasm, Need: need, Runtime: 100 * time.Second, Map: grid.MapThesis,
		Weights: grid.Weights{C: 1, M: 1, F: 1, P: 1},
		Sources: []grid.DataSource{{Bytes: 25_000_000}},
	}
	site := index.Site{
		Capability: grid.Capability{
			Total:      grid.Resources{MilliCPUs: 4_000, MemoryBytes: 4 << 30, MFLOPS: 4_000},
			CoreMFLOPS: 1_000, Kinds: []grid.WorkKind{grid.KindWasm},
		},
		Sources: []index.Access{{Bytes: 25_000_000, DownBps: 10_000_000, UpBps: 100_000_000}},
		Up:      0.9, // stays until the task's end with 90 %
	}
	site.Free = site.Capability.Total
	parts, _, _ := index.Measure(req, site)
	fmt.Printf("x %.2f: a core gives half of the computation\n", parts.X)
	fmt.Printf("y %.2f: the data take 20 s of 100 s\n", parts.Y)
	fmt.Printf("z %.2f: the site leaves with 10 %%\n", parts.Z)
	fmt.Printf("distance %.3f\n", parts.Distance)

	site.Capability.Total.MemoryBytes = 1 << 29
	_, refusal, ok := index.Measure(req, site)
	fmt.Println(ok, refusal.Reason, refusal.Never)
	// Output:
	// x 0.50: a core gives half of the computation
	// y 0.20: the data take 20 s of 100 s
	// z 0.10: the site leaves with 10 %
	// distance 0.548
	// false too little memory true
}

// The submitter orders offers by their distance.
func ExampleRankOffers() {
	offers := []*grid.Offer{
		{Site: "far", ID: 1, Parts: grid.Parts{X: 3, Y: 4, Distance: 5}},
		{Site: "near", ID: 1, Parts: grid.Parts{Z: 0.5, Distance: 0.5}},
		{Site: "b", ID: 2, Parts: grid.Parts{X: 1, Distance: 1}},
		{Site: "a", ID: 7, Parts: grid.Parts{X: 1, Distance: 1}},
	}
	for _, o := range index.RankOffers(offers, func(o *grid.Offer) *grid.Offer { return o }) {
		fmt.Println(o.Site, o.Parts.Distance)
	}
	// Output:
	// near 0.5
	// a 1
	// b 1
	// far 5
}
