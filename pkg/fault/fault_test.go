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
	var l Ledger
	l.Missed("failed", 1)
	candidates := []Candidate{
		{"failed", 0, 0},
		{"near", 1, 0.5},
		{"safe", 2, 0.1},
		{"nan", math.NaN(), 0.1},
		{"twin", 1, 0.5},
		{"doubtful", 0, math.NaN()},
	}
	for order, want := range map[Order][]grid.SiteID{
		OrderPaper: {"doubtful", "near", "twin", "safe", "nan", "failed"},
		OrderIndex: {"safe", "nan", "near", "twin", "doubtful", "failed"},
		OrderRisk:  {"safe", "nan", "failed", "near", "twin", "doubtful"},
	} {
		var got []grid.SiteID
		ranked := slices.Clone(candidates)
		l.Rank(order, ranked)
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
		index   int64
		z, want float64
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
		{math.MaxInt64, 0, 1},
	} {
		if got := Risk(c.index, c.z); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Risk(%d, %v) = %v, want %v", c.index, c.z, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		index := rapid.Int64Range(0, 1<<40).Draw(t, "index")
		z := rapid.Float64Range(0, 1).Draw(t, "z")
		risk := Risk(index, z)
		if risk < z-1e-12 || risk > 1 || Risk(index+1, z) < risk {
			t.Fatalf("Risk(%d, %v) = %v: at least z, at most 1, and not lower with a fault more",
				index, z, risk)
		}
	})
}

// Risks that differ by less than a hundredth are guesses: the nearer site is taken.
func TestLikeRisksGoByDistance(t *testing.T) {
	var l Ledger
	ranked := []Candidate{{"far", 2, .0001}, {"near", 1, .0002}, {"risky", 0, .02}}
	l.Rank(OrderRisk, ranked)
	if ranked[0].Site != "near" || ranked[2].Site != "risky" {
		t.Errorf("order %v, want near, far, risky", ranked)
	}
}

func among(sites ...grid.SiteID) func(grid.SiteID) bool {
	return func(site grid.SiteID) bool { return slices.Contains(sites, site) }
}

func TestWeights(t *testing.T) {
	var l Ledger
	l.Missed("a", 3)
	l.Missed("a", 0)
	l.Missed("a", -7)
	if got := l.Index("a"); got != 3 {
		t.Errorf("index = %d, want 3: weights below 1 count nothing", got)
	}
	l.Missed("a", math.MaxInt64)
	l.Missed("a", math.MaxInt64)
	if got := l.Index("a"); got != math.MaxInt64 {
		t.Errorf("index = %d, want the largest there is", got)
	}
}

// A site that is forgotten is as one that was never counted, and no other is touched.
func TestForgottenSites(t *testing.T) {
	var l Ledger
	l.Missed("a", 3)
	l.Missed("b", 2)
	l.Forget("a")
	l.Forget("never counted")
	if l.Index("a") != 0 || l.Index("b") != 2 || !slices.Equal(l.Sites(), []grid.SiteID{"b"}) {
		t.Errorf("sites %v, index %d and %d", l.Sites(), l.Index("a"), l.Index("b"))
	}
}

// Against a map: every index, the entries in order, and nothing shared.
func TestLedgerAgainstAMap(t *testing.T) {
	sites := []grid.SiteID{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		var l Ledger
		twin := map[grid.SiteID]int64{}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			site := rapid.SampledFrom(sites).Draw(t, "site")
			if rapid.Bool().Draw(t, "missed") {
				weight := rapid.Int64Range(1, 3).Draw(t, "weight")
				l.Missed(site, weight)
				twin[site] += weight
			} else {
				l.Succeeded(site)
				twin[site] = max(twin[site]-1, 0)
			}
		}
		var want []entry
		for _, site := range sites {
			if twin[site] != 0 {
				want = append(want, entry{site, twin[site]})
			}
		}
		got := l.list()
		if !slices.Equal(got, want) {
			t.Fatalf("entries = %v, want %v", got, want)
		}
		copied := l.clone()
		for i := range got {
			got[i].Index = -1
		}
		l.Missed("a", 1)
		if !slices.Equal(copied.list(), want) {
			t.Errorf("the copy became %v, want %v", copied.list(), want)
		}
	})
}

// list is a copy of what there is to keep, ascending by site.
func (l *Ledger) list() []entry { return slices.Clone(l.entries) }

// clone is a ledger that shares nothing with this one.
func (l *Ledger) clone() Ledger {
	return Ledger{entries: slices.Clone(l.entries)}
}
