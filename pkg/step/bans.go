package step

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// Bans holds the sites that are banned at a site: their messages are ignored there. The
// zero value bans none. Bans are no fact; a driver tells them after every Boot.
type Bans struct {
	banned map[grid.SiteID]struct{}
}

// Change takes the sites that are banned from now on, instead of those before. A site never
// bans itself: self is left out. It returns those that were not banned before, each
// once, in the order of the input; what they have here is to be ended.
func (b *Bans) Change(in BansChanged, self grid.SiteID) (newly []grid.SiteID) {
	before := b.banned
	b.banned = make(map[grid.SiteID]struct{}, len(in.Banned))
	for _, site := range in.Banned {
		if site == self || b.Has(site) {
			continue
		}
		b.banned[site] = struct{}{}
		if _, known := before[site]; !known {
			newly = append(newly, site)
		}
	}
	return newly
}

// Has reports whether a site is banned.
func (b *Bans) Has(site grid.SiteID) bool {
	_, banned := b.banned[site]
	return banned
}
