package index

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What the rules of the package doc promise; internal/vectors compares the numbers.

// near allows a relative error of 1e-9; only an infinity is near an infinity.
func near(a, b float64) bool {
	size := max(math.Abs(a), math.Abs(b))
	return a == b || !math.IsInf(size, 0) && math.Abs(a-b) <= max(1e-12, 1e-9*size)
}

func TestPotentialRefusesWhatIsNoRate(t *testing.T) {
	if _, err := Potential("a", []Upload{{"b", math.NaN()}}); !errors.Is(err, argument.ErrInvalid) {
		t.Errorf("error = %v, want argument.ErrInvalid", err)
	}
}

func TestDistanceNeitherOverflowsNorVanishes(t *testing.T) {
	for _, c := range []struct {
		axes []float64
		want float64
	}{
		{nil, 0},
		{[]float64{3e200, 4e200}, 5e200},
		{[]float64{3e-200, 4e-200}, 5e-200},
		{[]float64{1, 1, 1, 1}, 2},
		{[]float64{math.Inf(1), 1}, math.Inf(1)},
		{[]float64{math.Copysign(0, -1)}, 0},
	} {
		got, err := Distance(c.axes...)
		if err != nil || got != c.want && math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("Distance(%v) = %v, %v, want %v", c.axes, got, err, c.want)
		}
	}
	if _, err := Distance(math.Inf(1), math.NaN()); !errors.Is(err, argument.ErrInvalid) {
		t.Errorf("Distance(Inf, NaN): error = %v, want argument.ErrInvalid", err)
	}
}

func offer(site grid.SiteID, id uint64, x, y, z, d float64) grid.Offer {
	return grid.Offer{Site: site, ID: id, Parts: grid.Parts{X: x, Y: y, Z: z, Distance: d}}
}

func TestRankOffers(t *testing.T) {
	offers := []grid.Offer{
		offer("far", 1, 0, 0, 0, 9),
		offer("nan", 1, 0, 0, 0, math.NaN()), offer("inf", 1, 0, math.Inf(1), 0, math.Inf(1)),
		offer("b", 1, 1, 0, 0, 1), offer("a", 2, 1, 0, 0, 1), offer("a", 1, 1, 0, 0, 1),
		offer("z", 1, 0, 0, 1, 1), offer("y", 1, 0, 1, 0, 1),
	}
	var places []int
	for i := range offers {
		places = append(places, i)
	}
	type key struct {
		site grid.SiteID
		id   uint64
	}
	var got []key
	for _, i := range RankOffers(places, func(i int) *grid.Offer { return &offers[i] }) {
		got = append(got, key{offers[i].Site, offers[i].ID})
	}
	want := []key{{"a", 1}, {"a", 2}, {"b", 1}, {"y", 1}, {"z", 1}, {"far", 1}}
	if !slices.Equal(got, want) {
		t.Errorf("RankOffers = %v, want %v", got, want)
	}
	if !slices.IsSorted(places) {
		t.Fatal("RankOffers changed its argument")
	}
}

func TestSoftMin(t *testing.T) {
	ranked := []grid.Offer{
		offer("a", 1, 1, 0, 0, 1), offer("b", 1, 1, 0, 0, 1.1), offer("c", 1, 1, 0, 0, 50),
	}
	counts := make([]int, 3)
	const draws = 10_000
	for i := range draws {
		counts[SoftMin(ranked, 3, float64(i)/draws)]++
	}
	share := 1 / (1 + math.Exp(-1)) // the first against the second, one scale further
	if got := float64(counts[0]) / draws; math.Abs(got-share) > 0.001 || counts[2] != 0 {
		t.Errorf("counts = %v, want a share of %.3f for the first and none for the last", counts, share)
	}
	for _, c := range []struct {
		ranked  []grid.Offer
		count   int
		uniform float64
		want    int
	}{
		{nil, 3, 0.5, -1},
		{ranked, 1, 0.99, 0},
		{ranked, 0, 0.99, 0},
		{ranked, 2, math.Nextafter(1, 0), 1},
		{ranked, 9, 0, 0},
		{ranked, 3, math.NaN(), 2},
		{[]grid.Offer{offer("a", 1, 0, 0, 0, 0), offer("b", 1, 0, 0, 0, 1)}, 2, 0.99, 0},
		{[]grid.Offer{offer("a", 1, 0, 0, 0, 0), offer("b", 1, 0, 0, 0, 0)}, 2, 0.5, 1},
	} {
		if got := SoftMin(c.ranked, c.count, c.uniform); got != c.want {
			t.Errorf("SoftMin(%d offers, %d, %v) = %d, want %d",
				len(c.ranked), c.count, c.uniform, got, c.want)
		}
	}
}
