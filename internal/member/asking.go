package member

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxAsked limits the sites that wait to be admitted with one invitation.
const maxAsked = 32

// asked is a site that waits to be admitted, on disk.
type asked struct {
	Site    grid.SiteID `json:"site"`
	Name    string      `json:"name,omitempty"` // as it calls itself
	SinceMS int64       `json:"since_ms"`
}

func validateAsked(waiting []asked) error {
	if len(waiting) > maxAsked {
		return fmt.Errorf("%d sites wait, want at most %d", len(waiting), maxAsked)
	}
	for _, a := range waiting {
		if err := a.Site.Validate(); err != nil {
			return fmt.Errorf("asked by: %w", err)
		}
	}
	return nil
}

// Pending is a site that came with an invitation whose sites are admitted by hand, and was
// neither admitted nor banned yet.
type Pending struct {
	Site   grid.SiteID
	Name   string // as it calls itself: nobody has vouched for it
	Since  time.Time
	Invite Invite // with which it came; open
}

// askedBy notes that a site waits, and tells it so; the caller holds disk. at is the place of
// the invitation, which is open.
func (r *Registry) askedBy(site grid.SiteID, name string, at int) protocol.JoinAnswer {
	waiting := r.invites[at].Asked
	known := func(a asked) bool { return a.Site == site }
	if !slices.ContainsFunc(waiting, known) {
		if len(waiting) >= maxAsked {
			return refuse(protocol.JoinCrowded, "ask the inviter to admit or ban those that wait")
		}
		invites := slices.Clone(r.invites)
		invites[at].Asked = append(slices.Clip(waiting), asked{
			Site: site, Name: inviteName(name), SinceMS: r.cfg.Now().UnixMilli(),
		})
		if err := r.keepInvites(invites); err != nil {
			return refuse(protocol.JoinBroken, err.Error())
		}
	}
	return refuse(protocol.JoinPending, fmt.Sprintf(
		"the inviter runs siteagent admit %s; then join again with the same token", site))
}

// Waiting lists the sites that wait to be admitted, the first one of the oldest invitation first.
// A site that came with several invitations is listed once.
func (r *Registry) Waiting() []Pending {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.cfg.Now()
	var list []Pending
	seen := make(map[grid.SiteID]bool)
	for _, i := range r.invites {
		if !i.open(now) {
			continue
		}
		for _, a := range i.Asked {
			if !seen[a.Site] {
				seen[a.Site] = true
				list = append(list, Pending{
					Site: a.Site, Name: a.Name, Since: time.UnixMilli(a.SinceMS),
					Invite: i.public(now),
				})
			}
		}
	}
	return list
}

// answered takes a site from those that wait, since it was decided about; an admission costs the
// invitation with which it came a use. The caller holds disk.
func (r *Registry) answered(site grid.SiteID, admitted bool) error {
	now := r.cfg.Now()
	invites := slices.Clone(r.invites)
	waited := false
	for n, i := range invites {
		at := slices.IndexFunc(i.Asked, func(a asked) bool { return a.Site == site })
		if at < 0 {
			continue
		}
		i.Asked = slices.Delete(slices.Clone(i.Asked), at, at+1)
		if admitted && !waited && i.open(now) {
			i = i.usedBy(site, now)
		}
		invites[n], waited = i, true
	}
	if !waited {
		return nil
	}
	return r.keepInvites(invites)
}
