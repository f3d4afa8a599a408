package fibr

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// "+1 when the answer does not come in time, -1 on success": credit has no end.
func TestPaperCreditHidesFailures(t *testing.T) {
	l := New(math.MinInt64)
	for range 100 {
		l.Succeeded("busy")
	}
	for range 99 {
		l.Missed("busy")
	}
	candidates := []fault.Candidate{{Site: "fresh", Distance: 1}, {Site: "busy", Distance: 2}}
	if site, found := l.Least(candidates, nil); !found || site != "busy" || l.Index("busy") != -1 {
		t.Errorf("least = %s, %t with an index of %d, want the site that failed 99 times",
			site, found, l.Index("busy"))
	}
	if site, _ := l.Least(candidates, []grid.SiteID{"busy"}); site != "fresh" {
		t.Errorf("least without busy = %s", site)
	}
	if _, found := l.Least(nil, nil); found {
		t.Error("somebody is chosen of nobody")
	}
}

// With a floor of 0 it is the ledger that the machines use.
func TestFloorOfZeroIsTheLedgerInUse(t *testing.T) {
	sites := []grid.SiteID{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		l, used := New(0), fault.Ledger{}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			site := rapid.SampledFrom(sites).Draw(t, "site")
			if rapid.Bool().Draw(t, "missed") {
				l.Missed(site)
				used.Missed(site, fault.Silent, time.Time{})
			} else {
				l.Succeeded(site)
				used.Succeeded(site, time.Time{})
			}
		}
		var candidates []fault.Candidate
		for _, site := range sites {
			index := used.Index(site, time.Time{})
			if float64(l.Index(site)) != index {
				t.Errorf("index of %s is %d, in use %v", site, l.Index(site), index)
			}
			distance := float64(rapid.IntRange(0, 2).Draw(t, "distance"))
			candidates = append(candidates, fault.Candidate{
				Site: site, Index: index, Distance: distance,
			})
		}
		excluded := rapid.SliceOf(rapid.SampledFrom(sites)).Draw(t, "excluded")
		got, found := l.Least(candidates, excluded)
		fault.Rank(fault.OrderPaper, candidates)
		want, some := fault.Least(candidates, func(site grid.SiteID) bool {
			return slices.Contains(excluded, site)
		})
		if got != want || found != some {
			t.Errorf("least = %s, %t, in use %s, %t", got, found, want, some)
		}
	})
}
