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

// Ban keeps a site out.
func (a *Agent) Ban(_ context.Context, peer, note string) (view.MemberRow, error) {
	return a.decide(view.MemberRow{Site: grid.SiteID(peer), Standing: "banned", Note: note})
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
func (a *Agent) Invite(_ context.Context, span time.Duration, uses int) (view.Invitation, error) {
	if span < time.Second || uses < 1 {
		return view.Invitation{}, fmt.Errorf("%w: want at least 1 s and 1 use", grid.ErrInvalid)
	}
	return view.Invitation{
		Token: "mrs1.test", Domain: "home", Expires: view.At(a.clock().Add(span)), Uses: uses,
		Notices: []view.Notice{},
	}, nil
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
