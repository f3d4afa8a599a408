package apitest

import (
	"context"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Members lists this site and those that were decided about.
func (a *Agent) Members(context.Context) (view.Members, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	own := view.MemberRow{
		Site: a.state.Site, Name: a.state.Name, Standing: "self", Member: true, Connected: true,
	}
	return view.Members{
		Domain: a.state.Domain, Holder: true, Sites: append([]view.MemberRow{own}, a.rows...),
		Invites: []view.OpenInvitation{},
	}, nil
}

// Admit makes a site a member.
func (a *Agent) Admit(_ context.Context, peer, note string) (view.MemberRow, error) {
	return a.decide(view.MemberRow{
		Site: grid.SiteID(peer), Standing: "roster", Member: true, Note: note,
	})
}

// Ban keeps a site out. Unless keep says otherwise, all invitations are revoked: as if it had come
// by each of them.
func (a *Agent) Ban(ctx context.Context, peer, note string, keep bool) (view.MemberRow, error) {
	row, err := a.decide(view.MemberRow{Site: grid.SiteID(peer), Standing: "banned", Note: note})
	if err == nil && !keep {
		row.Revoked, err = a.RevokeAll(ctx)
	}
	return row, err
}

func (a *Agent) decide(row view.MemberRow) (view.MemberRow, error) {
	if err := row.Site.Validate(); err != nil {
		return row, fmt.Errorf("%w: %w", view.ErrNotFound, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.rows {
		if a.rows[i].Site == row.Site {
			a.rows[i] = row
			return row, nil
		}
	}
	a.rows = append(a.rows, row)
	return row, nil
}

// Invite makes an invitation that nobody could redeem.
func (a *Agent) Invite(_ context.Context, terms view.InviteTerms) (view.Invitation, error) {
	name, span, uses := terms.Name, terms.Span, terms.Uses
	if span < time.Second || uses < 1 {
		return view.Invitation{}, fmt.Errorf("%w: want at least 1 s and 1 use", grid.ErrInvalid)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock()
	row := view.InviteRow{
		ID: fmt.Sprint("test", len(a.invites)), Name: name, State: "open", Created: view.At(now),
		Expires: view.At(now.Add(span)), Left: uses, Uses: uses, By: []view.InvitedSite{},
		Ask: terms.Ask,
	}
	a.invites = append(a.invites, row)
	return view.Invitation{
		ID: row.ID, Token: "mrs1.test", Name: name, Domain: "home", Expires: row.Expires,
		Uses: uses, Notices: []view.Notice{},
	}, nil
}

// Invites lists those that were made.
func (a *Agent) Invites(context.Context) ([]view.InviteRow, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]view.InviteRow{}, a.invites...), nil
}

// Revoke knows them by their whole IDs.
func (a *Agent) Revoke(_ context.Context, which string) (view.InviteRow, error) {
	rows := a.revoke(func(row view.InviteRow) bool { return row.ID == which })
	if len(rows) == 0 {
		return view.InviteRow{}, fmt.Errorf("%w: invitation %s", view.ErrNotFound, which)
	}
	return rows[0], nil
}

// RevokeAll closes those that are open.
func (a *Agent) RevokeAll(context.Context) ([]view.InviteRow, error) {
	return a.revoke(func(view.InviteRow) bool { return true }), nil
}

func (a *Agent) revoke(is func(view.InviteRow) bool) []view.InviteRow {
	a.mu.Lock()
	defer a.mu.Unlock()
	revoked := []view.InviteRow{}
	for i, row := range a.invites {
		if row.State == "open" && is(row) {
			a.invites[i].State, a.invites[i].Left = "revoked", 0
			revoked = append(revoked, a.invites[i])
		}
	}
	return revoked
}

// Listen takes any addresses.
func (a *Agent) Listen(_ context.Context, addrs []string) error {
	if len(addrs) == 0 {
		return fmt.Errorf("%w: no address", grid.ErrInvalid)
	}
	return nil
}

// Check says that nobody is there.
func (a *Agent) Check(context.Context) (view.CheckResult, error) {
	return view.CheckResult{Reason: "no other site is connected"}, nil
}
