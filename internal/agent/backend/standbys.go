package backend

import (
	"context"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// fillStandbys adds who goes on with whose jobs. A group of this agent alone is none to speak of,
// unless the owner wants standbys.
func (b *Backend) fillStandbys(ctx context.Context, s *view.AgentStatus, n names) error {
	groups, err := b.agent.Groups(ctx)
	if err != nil {
		return err
	}
	self := b.mesh.Self()
	for _, g := range groups {
		if g.Owner == self && len(g.Members) <= 1 && b.cfg.Standbys.Count == 0 {
			continue
		}
		g.OwnerName = n[g.Owner]
		for i := range g.Members {
			g.Members[i].Name = n[g.Members[i].Site]
		}
		s.Standbys = append(s.Standbys, g)
		if g.Owner == self {
			s.Notices = append(s.Notices, standbyNotices(g, b.cfg.Standbys.Count, s.Peers)...)
		}
	}
	return nil
}

// fillController adds who the controller of the domain is.
func (b *Backend) fillController(ctx context.Context, s *view.AgentStatus, n names) error {
	c, err := b.agent.Controller(ctx)
	if err != nil || c == nil {
		return err
	}
	for i := range c.Members {
		c.Members[i].Name = n[c.Members[i].Site]
	}
	for i := range c.Failed {
		c.Failed[i].Name = n[c.Failed[i].Site]
	}
	c.ActingName, c.FounderName = n[c.Acting], n[c.Founder]
	s.Controller = c
	return nil
}

// standbyNotices say where the owner's wish for standbys is not met.
func standbyNotices(g view.Group, wanted, peers int) []view.Notice {
	var away []string
	for _, m := range g.Members {
		if m.Away {
			away = append(away, orSite(m))
		}
	}
	names := strings.Join(away, ", ")
	switch {
	case len(g.Members) > 1 && 2*len(away) > len(g.Members):
		return []view.Notice{{
			Text: "no agent acts for your jobs",
			Cause: "a majority of this agent and its standbys is needed, and " + names +
				" are away",
			Action: "wait for one of them; if both are lost for good, see submit recover --help",
		}}
	case len(away) > 0:
		return []view.Notice{{
			Text:   "a standby is away: " + names,
			Cause:  "your jobs go on, but if one more agent of the group is lost they stop",
			Action: "nothing: another site is asked when it has been away for a minute",
		}}
	case wanted > 0 && len(g.Members) == 1 && peers > 0:
		return []view.Notice{{
			Text: "nobody stands by for your jobs yet: if this machine is lost they stop",
			Cause: "two other sites are needed that accept it (standby.accept: domain); " +
				"the log says who has refused, and why",
			Action: "nothing: sites are asked as they come",
		}}
	}
	return nil
}

func orSite(m view.GroupMember) string {
	if m.Name != "" {
		return m.Name
	}
	return string(m.Site)
}
