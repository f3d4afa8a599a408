package fault

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestOrders(t *testing.T) {
	candidates := []Candidate{
		{"failed", 1, 0, 0},
		{"near", 0, 1, 0.5},
		{"safe", 0, 2, 0.1},
		{"nan", 0, math.NaN(), 0.1},
		{"twin", 0, 1, 0.5},
		{"doubtful", 0, 0, math.NaN()},
	}
	for order, want := range map[Order][]grid.SiteID{
		OrderPaper: {"doubtful", "near", "twin", "safe", "nan", "failed"},
		OrderIndex: {"safe", "nan", "near", "twin", "doubtful", "failed"},
		OrderRisk:  {"safe", "nan", "failed", "near", "twin", "doubtful"},
	} {
		var got []grid.SiteID
		ranked := slices.Clone(candidates)
		Rank(order, ranked)
		for _, c := range ranked {
			got = append(got, c.Site)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order %d: -want +got:\n%s", order, diff)
		}
		if least, ok := Least(ranked, among()); !ok || least != want[0] {
			t.Errorf("order %d: least = %q, %v, want %q", order, least, ok, want[0])
		}
		if least, ok := Least(ranked, among(want[:5]...)); !ok || least != want[5] {
			t.Errorf("order %d: the last site is still better than none, have %q, %v",
				order, least, ok)
		}
	}
	if site, ok := Least(candidates[:1], among("failed")); ok {
		t.Errorf("Least with all sites excluded = %q", site)
	}
}

// The risk joins what a site says of itself with what it has failed here.
func TestRisk(t *testing.T) {
	for _, c := range []struct {
		index, z, want float64
	}{
		{0, 0, 0},
		{0, .25, .25},
		{8, 0, .5},
		{8, .5, .75},
		{24, 0, .75},
		{-3, .5, .5},
		{0, math.NaN(), 1},
		{0, 7, 1},
		{0, -1, 0},
		{math.Inf(1), 0, 1},
		{math.NaN(), .5, .5},
	} {
		if got := Risk(c.index, c.z); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Risk(%v, %v) = %v, want %v", c.index, c.z, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		index := rapid.Float64Range(0, 1<<40).Draw(t, "index")
		z := rapid.Float64Range(0, 1).Draw(t, "z")
		risk := Risk(index, z)
		if risk < z-1e-12 || risk > 1 || Risk(index+1, z) < risk {
			t.Fatalf("Risk(%v, %v) = %v: at least z, at most 1, and not lower with a fault more",
				index, z, risk)
		}
	})
}

// Risks that differ by less than a hundredth are guesses: the nearer site is taken.
func TestLikeRisksGoByDistance(t *testing.T) {
	ranked := []Candidate{{"far", 0, 2, .0001}, {"near", 0, 1, .0002}, {"risky", 0, 0, .02}}
	Rank(OrderRisk, ranked)
	if ranked[0].Site != "near" || ranked[2].Site != "risky" {
		t.Errorf("order %v, want near, far, risky", ranked)
	}
}

func among(sites ...grid.SiteID) func(grid.SiteID) bool {
	return func(site grid.SiteID) bool { return slices.Contains(sites, site) }
}

// Faults of the same number are alike, however long ago they were.
func TestIndicesAreComparedInWholeFaults(t *testing.T) {
	for _, order := range []Order{OrderIndex, OrderPaper} {
		ranked := []Candidate{{"far", .8, 2, 0}, {"near", 1, 1, 0}, {"worse", 1.6, 0, 0}}
		Rank(order, ranked)
		if ranked[0].Site != "near" || ranked[2].Site != "worse" {
			t.Errorf("order %d: %v, want near, far, worse", order, ranked)
		}
	}
}
