package play

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// realms are the domains of a scenario with links; without any all its sites are of one.
func realms(s scenario.Scenario) []sim.Realm {
	if len(s.Links) == 0 {
		return nil
	}
	var all []sim.Realm
	for _, site := range s.Sites {
		at := slices.IndexFunc(all, func(r sim.Realm) bool { return r.Name == site.Domain })
		if at < 0 {
			at = len(all)
			all = append(all, sim.Realm{Name: site.Domain})
		}
		all[at].Members = append(all[at].Members, grid.SiteID(site.Name))
	}
	for i := range all {
		for _, k := range s.Links {
			other := k.B
			switch all[i].Name {
			case k.B:
				other = k.A
			case k.A:
			default:
				continue
			}
			all[i].Hops = max(all[i].Hops, k.Hops)
			all[i].Links = append(all[i].Links, step.Link{
				Name: other, Give: k.Give, Take: 100, Tasks: k.Tasks, Beside: k.Beside,
				Kinds: []grid.WorkKind{grid.KindWasm, grid.KindCommand},
			})
		}
	}
	return all
}

// tear cuts the borders that are cut in a scenario, and mends them.
func (p *simulation) tear() {
	for _, k := range p.s.Links {
		if k.Cut > 0 {
			p.w.At(k.Cut, func() { p.w.CutBorder(k.A, k.B) })
		}
		if k.For > 0 {
			p.w.At(k.Cut+k.For, func() { p.w.MendBorder(k.A, k.B) })
		}
	}
}

// favours says what each domain has used at the others, by their receipts.
func (p *simulation) favours() []string {
	var lines []string
	for _, r := range realms(p.s) {
		for _, l := range p.w.Links(r.Members[0]) {
			if l.Given > 0 {
				lines = append(lines, fmt.Sprintf("domain %s has used %.0f core-seconds at %s",
					l.Link.Name, l.Given, r.Name))
			}
		}
	}
	return lines
}
