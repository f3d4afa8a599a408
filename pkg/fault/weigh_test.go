package fault

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ledgerOf answers for what a submitter has counted: sites that are not in it were not tried.
func ledgerOf(index map[grid.SiteID]float64) func(grid.SiteID) Own {
	return func(site grid.SiteID) Own {
		v, tried := index[site]
		return Own{Index: v, Tried: tried}
	}
}

// said makes a testimony of all indices that are at least 0.
func said(by grid.SiteID, sites []grid.SiteID, index ...float64) Testimony {
	t := Testimony{By: by}
	for i, v := range index {
		if v >= 0 {
			t.Said = append(t.Said, Statement{About: sites[i], Index: v})
		}
	}
	return t
}

func sharedOf(all []Shared, site grid.SiteID) float64 {
	for _, s := range all {
		if s.Site == site {
			return s.Index
		}
	}
	return 0
}

func names(kind string, n int) []grid.SiteID {
	var all []grid.SiteID
	for i := range n {
		all = append(all, grid.SiteID(fmt.Sprintf("%s%02d", kind, i)))
	}
	return all
}

func drawTestimony(t *rapid.T, by grid.SiteID, sites []grid.SiteID, most float64) Testimony {
	one := Testimony{By: by}
	for _, site := range sites {
		if rapid.Bool().Draw(t, "tried") {
			index := rapid.Float64Range(0, most).Draw(t, "index")
			one.Said = append(one.Said, Statement{site, index})
		}
	}
	return one
}

func drawOwn(t *rapid.T, sites []grid.SiteID) map[grid.SiteID]float64 {
	own := map[grid.SiteID]float64{}
	for _, site := range sites {
		if rapid.Bool().Draw(t, "own") {
			own[site] = rapid.Float64Range(0, 20).Draw(t, "own index")
		}
	}
	return own
}

// The twin cuts each author's word into very many equal votes and follows the rules as they are
// written, without sorting claims or sharing anything.
func twinShared(site grid.SiteID, all []Testimony, own func(grid.SiteID) Own) float64 {
	const votesOfOne = 20_000
	type vote struct {
		doubt float64
		tried bool
	}
	var votes []vote
	for _, t := range all {
		if t.By == site {
			continue
		}
		sum, n, agreed, compared, tried, about := 0., 1., 1., 2., false, 0.
		for _, s := range t.Said {
			if s.About == t.By {
				continue
			}
			sum, n = sum+s.Index, n+1
			if s.About == site {
				tried, about = true, s.Index
			}
			if here := own(s.About); here.Tried {
				agreed += 1 - math.Abs(s.Index/(8+s.Index)-here.Index/(8+here.Index))
				compared++
			}
		}
		excess := math.Max(about-sum/n, 0)
		agreed /= compared
		worth := 8 / (8 + own(t.By).Index) * agreed * agreed
		v := vote{excess / (8 + excess), tried}
		if !tried {
			v.doubt = 0
		}
		for range int(math.Round(worth * votesOfOne)) {
			votes = append(votes, v)
		}
	}
	slices.SortStableFunc(votes, func(a, b vote) int {
		if a.tried != b.tried { // who has not tried it is cut last
			if a.tried {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.doubt, a.doubt)
	})
	votes = votes[len(votes)/3:]
	doubts, tried := 0., 0.
	for _, v := range votes {
		if v.tried {
			doubts, tried = doubts+v.doubt, tried+1
		}
	}
	return 8 * doubts / (votesOfOne + tried)
}

func TestWeighAgainstItsTwin(t *testing.T) {
	sites, authors := names("s", 5), names("s", 6) // the first five may speak of each other
	rapid.Check(t, func(t *rapid.T) {
		var all []Testimony
		for _, by := range authors[:rapid.IntRange(0, len(authors)).Draw(t, "authors")] {
			all = append(all, drawTestimony(t, by, sites, 30))
		}
		own := ledgerOf(drawOwn(t, authors))
		got := Weigh(all, own)
		if !slices.IsSortedFunc(got, func(a, b Shared) int { return cmp.Compare(a.Site, b.Site) }) {
			t.Fatalf("out of order: %v", got)
		}
		for _, site := range sites {
			want := twinShared(site, all, own)
			if index := sharedOf(got, site); math.Abs(index-want) > .003+negligible {
				t.Fatalf("%s: %v, the twin says %v", site, index, want)
			}
		}
	})
}

// Whatever is said, all together are worth at most maxShared, and one author half of it, also
// if others speak: with that author and without.
func TestWhatOthersSayIsBounded(t *testing.T) {
	sites, authors := names("s", 6), names("a", 8)
	rapid.Check(t, func(t *rapid.T) {
		var all []Testimony
		for _, by := range authors[:rapid.IntRange(1, len(authors)).Draw(t, "authors")] {
			all = append(all, drawTestimony(t, by, sites, maxIndex))
		}
		own := ledgerOf(drawOwn(t, slices.Concat(sites, authors)))
		with, without := Weigh(all, own), Weigh(all[1:], own)
		for _, site := range sites {
			p, q := sharedOf(with, site), sharedOf(without, site)
			if !(p >= 0 && p <= maxShared) {
				t.Fatalf("%s: %v", site, p)
			}
			if p-q > maxShared/2 {
				t.Fatalf("%s: one author is worth %v - %v", site, p, q)
			}
		}
	})
}

// Liars that have less than a third of the weight cannot make a site look worse than some honest
// author says, however they agree with each other.
func TestAColludingMinorityIsHeldByTheOthers(t *testing.T) {
	sites := names("s", 6)
	rapid.Check(t, func(t *rapid.T) {
		honest, lies := []Testimony{}, []Testimony{}
		for _, by := range names("h", rapid.IntRange(3, 9).Draw(t, "honest")) {
			honest = append(honest, drawTestimony(t, by, sites, 10))
		}
		for _, by := range names("l", rapid.IntRange(1, 4).Draw(t, "liars")) {
			lies = append(lies, drawTestimony(t, by, sites, maxIndex))
		}
		own := ledgerOf(drawOwn(t, slices.Concat(sites, names("h", 9), names("l", 4))))
		good, bad := 0., 0.
		for _, one := range honest {
			good += weight(one, own)
		}
		for _, one := range lies {
			bad += weight(one, own)
		}
		if bad > good/2 {
			t.Skip("drawn anew: nothing is said of liars that weigh more than half of the honest")
		}
		got := Weigh(append(lies, honest...), own)
		for _, site := range sites {
			worst := 0.
			for _, one := range honest {
				for _, c := range one.claims(1) {
					if c.about == site {
						worst = max(worst, c.doubt)
					}
				}
			}
			if index := sharedOf(got, site); index > maxShared*worst+1e-9 {
				t.Fatalf("%s: %v, honest authors say at most %v", site, index, maxShared*worst)
			}
		}
	})
}

// Each further rule, by an example in which nothing else holds it.
func TestRulesOfWeighing(t *testing.T) {
	sites := names("s", 4)
	nothing := ledgerOf(nil)
	honest := said("h", sites, 0, 0, 0, 9)

	one := sharedOf(Weigh([]Testimony{honest}, nothing), sites[3])
	if !(one > .3 && one < maxShared/2) {
		t.Errorf("what one author says is worth %v", one)
	}
	all := said("l", sites, 9, 9, 9, 9)
	for _, s := range Weigh([]Testimony{all}, nothing) {
		if s.Index > one/2 {
			t.Errorf("one that accuses all sites: %+v, and one of them %v", s, one)
		}
	}
	// an author that says what was seen here is worth more than one that says something else
	seen := ledgerOf(map[grid.SiteID]float64{sites[0]: 0, sites[1]: 0})
	liar := said("l", sites, 90, 90, 0, 9)
	if good, bad := weight(honest, seen), weight(liar, seen); bad > good/4 {
		t.Errorf("a liar has weight %v, an honest author %v", bad, good)
	}
	// one that serves badly is worth less
	bad := ledgerOf(map[grid.SiteID]float64{"h": 8})
	if got, want := weight(honest, bad), weight(honest, nothing)/2; got != want {
		t.Errorf("an author that is trusted half as a site has weight %v, want %v", got, want)
	}
	// nobody speaks for itself
	self := said(sites[3], sites, 0, 0, 0, 9)
	if got := Weigh([]Testimony{self}, nothing); len(got) != 0 {
		t.Errorf("of itself an author says %v", got)
	}
	// one liar among three that have tried the site changes nothing
	three := []Testimony{said("a", sites, 0, 0, 0, 0), said("b", sites, 0, 0, 0, 0), honest}
	if got := Weigh(three, nothing); len(got) != 0 {
		t.Errorf("one of three: %v", got)
	}
	if got := Weigh(nil, nothing); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
}
