package member

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Why an invitation is not revoked.
var (
	ErrNoInvite      = errors.New("no open invitation has this ID or name")
	ErrSeveralInvite = errors.New("several open invitations match")
)

// maxNamed limits the invitations that an error names.
const maxNamed = 8

// Revoke makes an open invitation useless from now on, also for who is about to redeem it.
// It is meant by its ID, by the beginning of that, or by its name. Who has redeemed it stays a
// member. The error is ErrNoInvite or ErrSeveralInvite and names those that there are.
func (r *Registry) Revoke(which string) (Invite, error) {
	r.disk.Lock()
	defer r.disk.Unlock()
	now := r.cfg.Now()
	found := meant(r.invites, which, func(i invite) bool { return i.open(now) })
	switch len(found) {
	case 0:
		return Invite{}, r.noInvite(which, now)
	case 1:
		revoked, err := r.revoke(now, found)
		if err != nil {
			return Invite{}, err
		}
		return revoked[0], nil
	default:
		return Invite{}, fmt.Errorf("%w: %q may be %s; give more of the ID",
			ErrSeveralInvite, cut(which, maxInviteName), r.called(found))
	}
}

// RevokeAll revokes the invitations that are open, and returns them.
func (r *Registry) RevokeAll() ([]Invite, error) {
	return r.revokeWhere(func(invite) bool { return true })
}

// RevokeOf revokes the open invitations that the site has redeemed, and returns them: with one
// of them it could come back under another key.
func (r *Registry) RevokeOf(site grid.SiteID) ([]Invite, error) {
	return r.revokeWhere(func(i invite) bool { return slices.Contains(i.By, site) })
}

func (r *Registry) revokeWhere(is func(invite) bool) ([]Invite, error) {
	r.disk.Lock()
	defer r.disk.Unlock()
	return r.revokeOpen(is)
}

// revokeOpen revokes the open invitations for which is holds; the caller holds disk.
func (r *Registry) revokeOpen(is func(invite) bool) ([]Invite, error) {
	now := r.cfg.Now()
	var found []int
	for n, i := range r.invites {
		if i.open(now) && is(i) {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return r.revoke(now, found)
}

// revoke closes the invitations at these places, which are open; the caller holds disk.
func (r *Registry) revoke(now time.Time, at []int) ([]Invite, error) {
	invites := slices.Clone(r.invites)
	list := make([]Invite, 0, len(at))
	for _, n := range at {
		i := &invites[n]
		i.Revoked, i.Left, i.UsedMS = i.Left, 0, now.UnixMilli()
		list = append(list, i.public(now))
	}
	if err := r.keepInvites(invites); err != nil {
		return nil, fmt.Errorf("revoke: %w", err)
	}
	return list, nil
}

// meant are the places of the invitations that a text may mean, of those that is holds for. A
// whole ID means one alone.
func meant(invites []invite, text string, is func(invite) bool) []int {
	var found []int
	name := inviteName(text)
	if name == "" {
		return nil
	}
	for n, i := range invites {
		id := i.Hash[:idChars]
		switch {
		case !is(i):
		case id == text:
			return []int{n}
		case strings.HasPrefix(id, text) || i.Name == name:
			found = append(found, n)
		}
	}
	return found
}

// noInvite says why nothing can be revoked, and what can.
func (r *Registry) noInvite(which string, now time.Time) error {
	open := meant(r.invites, which, func(invite) bool { return true })
	if len(open) == 1 {
		i := r.invites[open[0]]
		return fmt.Errorf("%w: %s is closed already: %s", ErrNoInvite, i.called(), i.refusal(now))
	}
	open = open[:0]
	for n, i := range r.invites {
		if i.open(now) {
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return fmt.Errorf("%w: %q; none is open", ErrNoInvite, cut(which, maxInviteName))
	}
	return fmt.Errorf("%w: %q; open are %s", ErrNoInvite, cut(which, maxInviteName), r.called(open))
}

// called is the invitation as people are told of it.
func (i invite) called() string {
	if i.Name == "" {
		return i.Hash[:idChars]
	}
	return i.Hash[:idChars] + " (" + i.Name + ")"
}

// called names the invitations at these places.
func (r *Registry) called(at []int) string {
	var names []string
	for _, n := range at[:min(len(at), maxNamed)] {
		names = append(names, r.invites[n].called())
	}
	text := strings.Join(names, ", ")
	if further := len(at) - len(names); further > 0 {
		text += fmt.Sprintf(" and %d more", further)
	}
	return text
}
