package step

import (
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestBansChange(t *testing.T) {
	const self = grid.SiteID("self")
	var b Bans
	for _, step := range []struct {
		banned, newly, has []grid.SiteID
	}{
		{banned: nil},
		{banned: []grid.SiteID{"b", "a"}, newly: []grid.SiteID{"b", "a"}, has: []grid.SiteID{"a", "b"}},
		{banned: []grid.SiteID{"a", "b"}, has: []grid.SiteID{"a", "b"}}, // said again
		{banned: []grid.SiteID{"b", "c"}, newly: []grid.SiteID{"c"}, has: []grid.SiteID{"b", "c"}},
		{banned: []grid.SiteID{"a", self, "a"}, newly: []grid.SiteID{"a"}, has: []grid.SiteID{"a"}},
		{banned: nil},
		{banned: []grid.SiteID{"a"}, newly: []grid.SiteID{"a"}, has: []grid.SiteID{"a"}}, // a second time
	} {
		newly := b.Change(BansChanged{Banned: step.banned}, self)
		if !slices.Equal(newly, step.newly) {
			t.Errorf("Change(%v) = %v, want %v", step.banned, newly, step.newly)
		}
		for _, site := range []grid.SiteID{"a", "b", "c", self} {
			if got, want := b.Has(site), slices.Contains(step.has, site); got != want {
				t.Errorf("after Change(%v): Has(%s) = %v, want %v", step.banned, site, got, want)
			}
		}
	}
}
