package apitest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Links lists those that were made.
func (a *Agent) Links(context.Context) (view.Links, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return view.Links{
		Domain: a.state.Domain, Holder: true, Links: append([]view.LinkRow{}, a.links...),
		Invites: []view.LinkInvite{}, Ended: []view.EndedLink{},
	}, nil
}

// linkToken is the one token that an agent in memory gives and takes.
const linkToken = "mrslink1.test"

// InviteDomain makes an invitation.
func (a *Agent) InviteDomain(
	_ context.Context, name grid.DomainID, span time.Duration,
) (view.LinkInvitation, error) {
	if span < time.Second {
		return view.LinkInvitation{}, fmt.Errorf("%w: want at least 1 s", grid.ErrInvalid)
	}
	return view.LinkInvitation{
		ID: "test", Token: linkToken, Domain: "home", Name: name,
		Expires: view.At(a.clock().Add(span)), Notices: []view.Notice{},
	}, nil
}

// WithdrawInvite knows of the one that InviteDomain makes.
func (a *Agent) WithdrawInvite(_ context.Context, id string) error {
	if id != "test" {
		return fmt.Errorf("%w: invitation %s", view.ErrNotFound, id)
	}
	return nil
}

// Neighbours lists those that were linked, as if all could be reached.
func (a *Agent) Neighbours(context.Context) ([]view.NeighbourRow, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rows := []view.NeighbourRow{}
	for _, l := range a.links {
		rows = append(rows, view.NeighbourRow{Name: l.Name, Domain: l.Domain, Reachable: true})
	}
	return rows, nil
}

// JoinDomain links with a domain that is called far.
func (a *Agent) JoinDomain(_ context.Context, token string) (view.LinkRow, error) {
	if token != linkToken {
		return view.LinkRow{}, fmt.Errorf("%w: nobody knows the token", view.ErrConflict)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	row := view.LinkRow{
		Name: "far", Domain: "far", Key: "k", Why: "nobody is near", Since: view.At(a.clock()),
		Policy: view.LinkPolicy{Kinds: []string{"wasm"}, Tasks: 1},
	}
	a.links = append(a.links, row)
	return row, nil
}

// SetLinkPolicy changes how much is given; nothing else is looked at.
func (a *Agent) SetLinkPolicy(
	_ context.Context, name grid.DomainID, change view.PolicyChange,
) (view.LinkRow, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.links {
		if a.links[i].Name == name {
			if change.Give != nil {
				a.links[i].Policy.Give = *change.Give
			}
			return a.links[i], nil
		}
	}
	return view.LinkRow{}, fmt.Errorf("%w: link with %s", view.ErrNotFound, name)
}

// Unlink forgets a link.
func (a *Agent) Unlink(_ context.Context, name grid.DomainID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.links {
		if a.links[i].Name == name {
			a.links = slices.Delete(a.links, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("%w: link with %s", view.ErrNotFound, name)
}

// RotateKey says that a key was replaced, the one that was named or k.
func (a *Agent) RotateKey(_ context.Context, from grid.DomainKey) (view.Rotation, error) {
	return view.Rotation{
		Domain: "lab", Former: cmp.Or(from, "k"), Key: "l", Number: 1, Made: view.At(a.clock()),
	}, nil
}
