package fault

import (
	"cmp"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What others say of a site is worth something, because a submitter that is new has seen nothing,
// and little, because it may be wrong, or a lie. Four rules keep it small:
//
//  1. What counts of a statement is by how much it lies above the mean of what its author says. One
//     that accuses all sites has said nothing.
//  2. An author has weight as a site that has served well here, and by how far its statements agree
//     with what was counted here.
//  3. The third of the weight that accuses a site most does not count. A minority below that cannot
//     make a site look worse than some other author says.
//  4. All together are never worth more than maxShared faults, and one author at most half of it.

// maxShared is the largest fault index that all others together can give a site: as much as takes
// away half of the trust in it.
const maxShared = halfTrust

// The further numbers of the rules.
const (
	unheard   = 1.     // the weight of what nobody has said: that a site has no faults
	trimmed   = 1. / 3 // the part of the weight that does not count, where it accuses most
	meanPrior = 1      // sites without faults that each author is presumed to know besides
)

// Statement holds what an author has counted of a site.
type Statement struct {
	About grid.SiteID
	Index float64 // now, as it has faded since; 0 to maxIndex
}

// Testimony is all that an author says, ascending by site. A site of which it says nothing it has
// not tried.
type Testimony struct {
	By   grid.SiteID
	Said []Statement
}

// Own holds what was counted here of a site.
type Own struct {
	Index float64 // now
	Tried bool    // whether any attempt of it was counted
}

// Shared holds what others say of a site, as it counts.
type Shared struct {
	Site  grid.SiteID
	Index float64 // to be added to what was counted here; above 0, at most maxShared
	Says  int     // authors that say that they have tried the site
}

// Weigh works out what testimonies are worth to a submitter, whose own ledger is asked by own.
// There is one testimony of each author, and none of the submitter itself. What an author says of
// itself does not count. The result is ascending by site, without those whose index is 0.
func Weigh(all []Testimony, own func(grid.SiteID) Own) []Shared {
	var claims []claim
	authors := make([]author, 0, len(all))
	for _, t := range all {
		a := author{by: t.By, weight: weight(t, own)}
		authors = append(authors, a)
		claims = append(claims, t.claims(a.weight)...)
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.about, b.about), cmp.Compare(b.doubt, a.doubt),
			cmp.Compare(a.by, b.by))
	})
	var shared []Shared
	for len(claims) > 0 {
		site := claims[0].about
		n := slices.IndexFunc(claims, func(c claim) bool { return c.about != site })
		if n < 0 {
			n = len(claims)
		}
		if index := maxShared * joined(claims[:n], heard(authors, site)); index >= negligible {
			shared = append(shared, Shared{Site: site, Index: index, Says: n})
		}
		claims = claims[n:]
	}
	return shared
}

type author struct {
	by     grid.SiteID
	weight float64
}

// claim is a statement as it counts.
type claim struct {
	about, by grid.SiteID
	doubt     float64 // 0 to 1
	weight    float64 // of its author
}

// heard is the weight of all that may speak of a site.
func heard(authors []author, site grid.SiteID) float64 {
	sum := 0.
	for _, a := range authors {
		if a.by != site {
			sum += a.weight
		}
	}
	return sum
}

// claims are the statements of a testimony, each by how much it lies above their mean.
func (t Testimony) claims(weight float64) []claim {
	mean := t.mean()
	claims := make([]claim, 0, len(t.Said))
	for _, s := range t.Said {
		if s.About != t.By {
			claims = append(claims, claim{s.About, t.By, doubt(s.Index - mean), weight})
		}
	}
	return claims
}

func (t Testimony) mean() float64 {
	sum, n := 0., meanPrior
	for _, s := range t.Said {
		if s.About != t.By {
			sum, n = sum+s.Index, n+1
		}
	}
	return sum / float64(n)
}

// weight holds what an author's word is worth, above 0 to 1: what it is trusted as a site, times
// the square of how far its statements agree with what was counted here, 1/2 before there is
// anything to compare.
func weight(t Testimony, own func(grid.SiteID) Own) float64 {
	agreed, n := 1., 2.
	for _, s := range t.Said {
		if here := own(s.About); here.Tried && s.About != t.By {
			agreed, n = agreed+1-abs(doubt(s.Index)-doubt(here.Index)), n+1
		}
	}
	agreed /= n
	return (1 - doubt(own(t.By).Index)) * agreed * agreed
}

// joined is the doubt that all claims about one site leave together, 0 to 1. They descend by
// doubt; of all is the weight of all authors, with those that say nothing of the site.
func joined(claims []claim, of float64) float64 {
	cut := of * trimmed
	doubts, weights := 0., 0.
	for _, c := range claims {
		left := max(c.weight-cut, 0)
		cut = max(cut-c.weight, 0)
		doubts, weights = doubts+left*c.doubt, weights+left
	}
	return doubts / (unheard + weights)
}

func abs(v float64) float64 { return max(v, -v) }
