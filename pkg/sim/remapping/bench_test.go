package remapping

import (
	"strconv"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/remap"
)

// BenchmarkPlay plays a run of the experiment vrm: 20,000 slots, with the threshold that is best.
func BenchmarkPlay(b *testing.B) {
	p := remap.Policy{Weight: 2, Share: .775}
	for _, lead := range []float64{300, 1000} {
		b.Run(strconv.Itoa(int(lead)), func(b *testing.B) {
			for seed := uint64(0); b.Loop(); seed++ {
				if _, err := Play(Paper(lead), p, seed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
