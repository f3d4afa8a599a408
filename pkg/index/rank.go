package index

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Distance is the Euclidean distance of a point from the origin, in any number of
// dimensions. It is scaled, so that neither 1e200 overflows nor 1e-200 vanishes.
// A component that is no number or negative is an error, even beside an infinite
// one, which otherwise makes the distance infinite. Thesis, sections 3.1.4 (two
// dimensions) and 3.3.2 (three).
func Distance(axes ...float64) (float64, error) {
	largest := 0.0
	for _, v := range axes {
		if !(v >= 0) {
			return 0, fmt.Errorf("%w: distance: want components of at least 0, have %v",
				argument.ErrInvalid, v)
		}
		largest = max(largest, v)
	}
	if largest == 0 || math.IsInf(largest, 1) {
		return largest, nil
	}
	sum := 0.0
	for _, v := range axes {
		v /= largest
		sum += v * v
	}
	return largest * math.Sqrt(sum), nil
}

// EqualDistance is the largest difference of two distances that tie: sites that differ by less
// are equally near.
const EqualDistance = 1e-9

// RankOffers lists offers, or things that have one each, in the order in which they should be
// taken: ascending (distance, z, y, x, site, number). Those with parts that make no sense are
// dropped. The argument is left as it is.
func RankOffers[T any](offered []T, offer func(T) *grid.Offer) []T {
	ranked := make([]T, 0, len(offered))
	for _, o := range offered {
		if offer(o).Parts.Validate() == nil {
			ranked = append(ranked, o)
		}
	}
	slices.SortFunc(ranked, func(a, b T) int { return compareOffers(offer(a), offer(b)) })
	return ranked
}

func compareOffers(a, b *grid.Offer) int {
	p, q := &a.Parts, &b.Parts
	if c := cmp.Compare(p.Distance, q.Distance); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(p.Z, q.Z), cmp.Compare(p.Y, q.Y), cmp.Compare(p.X, q.X),
		cmp.Compare(a.Site, b.Site), cmp.Compare(a.ID, b.ID))
}

// softMinScale is the share of the lowest distance over which the weight of SoftMin falls
// to 1/e.
const softMinScale = 0.1

// SoftMin chooses among the best count of ranked offers by chance, so that submitters
// that see the same sites do not all choose the same one: offer i is taken with a weight
// of exp(-(d_i - d_1) / (0.1 d_1)), d_1 being the lowest distance. uniform is the
// caller's random number in [0, 1). The result is a place in ranked, or -1 if there is
// none. Where d_1 is 0, only offers at 0 are chosen from.
func SoftMin(ranked []grid.Offer, count int, uniform float64) int {
	count = min(max(count, 1), len(ranked))
	if count == 0 {
		return -1
	}
	least := ranked[0].Parts.Distance
	total := 0.0
	for _, o := range ranked[:count] {
		total += softWeight(o.Parts.Distance, least)
	}
	mark, last := uniform*total, 0
	for i, o := range ranked[:count] {
		w := softWeight(o.Parts.Distance, least)
		if mark < w {
			return i
		}
		if w > 0 {
			last = i
		}
		mark -= w
	}
	return last // rounding left a rest, or uniform was no number below 1
}

func softWeight(distance, least float64) float64 {
	if distance <= least {
		return 1
	}
	return math.Exp(-(distance - least) / (softMinScale * least)) // least 0: exp(-Inf) = 0
}
