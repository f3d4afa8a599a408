package broker

import (
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// Chance decides between sites whose distances differ by no more than index.EqualDistance: none
// of them is shown as if it were nearer.
func TestSitesEquallyNearShareARank(t *testing.T) {
	t.Parallel()
	var answers []Answer
	for _, distance := range []float64{.5, .5 + index.EqualDistance/2, .6, .6, .7} {
		answers = append(answers, Answer{
			Offer: &grid.Offer{Parts: grid.Parts{Distance: distance}},
		})
	}
	answers = append(answers, Answer{Refusal: grid.Refusal{Reason: grid.ReasonMemory}})
	if got, want := ranks(answers), []int{1, 1, 3, 3, 5, 0}; !slices.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
}
