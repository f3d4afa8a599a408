package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/domain"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Controller shows who the domain's controller is, nil where the domain has no key.
func (a *Agent) Controller(ctx context.Context) (*view.Controller, error) {
	owner := a.domainSite()
	if owner == "" {
		return nil, nil //nolint:nilnil // such a domain has no controller
	}
	now, members, term := a.heeding.controller()
	v := view.Controller{
		Acting: now.Site, Here: now.Site == a.mesh.Self(), Term: term,
		Members: []view.GroupMember{},
	}
	for _, site := range members {
		v.Members = append(v.Members, a.groupMember(site))
	}
	slices.SortFunc(v.Members, func(a, b view.GroupMember) int {
		return cmp.Compare(a.Site, b.Site)
	})
	c := a.groups.controlOf(owner)
	var err error
	if c != nil && a.groups.runs(c.group) {
		err = c.ask(ctx, func() { c.fill(&v) })
	}
	if errors.Is(err, errEnded) {
		err = nil // it was dismissed meanwhile
	}
	if v.Acting == "" {
		v.Why = a.whyUncontrolled(v, c != nil)
	}
	return &v, err
}

// fill adds what only members of the group know.
func (c *control) fill(v *view.Controller) {
	conf := c.member.Members()
	v.Founder, v.Facts = c.seat(), c.member.TableBytes()
	v.Changing = len(conf.Outgoing)+len(conf.Learners) > 0 || c.target() != nil
	if c.running != nil {
		fillBookings(v, c.running.Status())
	}
	if c.holds() {
		v.Refusals = c.refusals()
	} else if v.Founder != "" && !c.a.around.has(v.Founder) {
		v.Notice = "the site with the domain's key is away: until it is back no member can be " +
			"replaced, and with one more lost there is no controller"
	}
}

// fillBookings adds what the controller watches.
func fillBookings(v *view.Controller, status domain.Status) {
	for _, s := range status.Sites {
		v.Bookings += s.Bookings
		if s.Bookings > 0 {
			v.Sites++
		}
		f := view.ControlFailed{
			Site: s.Site, Since: view.At(s.Failed), Bookings: s.Bookings,
			Leaving: s.Leaving, Stuck: s.Stuck,
		}
		if !s.Short.IsZero() {
			f.Since, f.Partly = view.At(s.Short), true
		}
		if !s.Failed.IsZero() || f.Partly {
			v.Failed = append(v.Failed, f)
		}
	}
}

func (a *Agent) groupMember(site grid.SiteID) view.GroupMember {
	peer, connected := a.around.peer(site)
	return view.GroupMember{
		Site: site, Name: peer.Name, Away: !connected && site != a.mesh.Self(),
	}
}

// whyUncontrolled says why there is no controller.
func (a *Agent) whyUncontrolled(v view.Controller, member bool) string {
	away := slices.ContainsFunc(v.Members, func(m view.GroupMember) bool { return m.Away })
	switch holds := a.members.Holds(); {
	case len(v.Members) > 0 && away:
		return "of the three members of the domain's group two must be there"
	case len(v.Members) > 0:
		return "the members of the domain's group agree on the one that acts"
	case holds && !a.cfg.Controller.Found:
		return "this site has the domain's key, and its owner wants none (controller.found: false)"
	case holds:
		return "two other members are needed that accept it (controller.accept: domain)"
	case member:
		return "the site with the domain's key has not found two members yet"
	default:
		return "the site with the domain's key has founded none, or cannot be reached"
	}
}
