package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Members lists who takes part, who is kept out, and which invitations are open.
func (c *Client) Members(ctx context.Context) (view.Members, error) {
	var newest view.Members
	sites, err := everyPage(func(query url.Values) ([]view.MemberRow, error) {
		var err error
		in := call{method: http.MethodGet, path: "/members", query: query}
		newest, err = ask[view.Members](ctx, c, in, nil)
		return newest.Sites, err
	}, func(row view.MemberRow) grid.SiteID { return row.Site })
	newest.Sites = sites
	return newest, err
}

// Admit makes a site, by its ID or name, a member, and takes back a ban.
func (c *Client) Admit(ctx context.Context, peer, note string) (view.MemberRow, error) {
	return c.decide(ctx, peer, "admit", map[string]any{"note": note})
}

// Ban keeps a site, by its ID or name, out. The invitations by which it came are revoked if they
// are still open, unless keep says to leave them.
func (c *Client) Ban(
	ctx context.Context, peer, note string, keep bool,
) (view.MemberRow, error) {
	body := map[string]any{"note": note}
	if keep {
		body["keep_invitation"] = true
	}
	return c.decide(ctx, peer, "ban", body)
}

func (c *Client) decide(
	ctx context.Context, peer, what string, body map[string]any,
) (view.MemberRow, error) {
	path := "/members/" + url.PathEscape(peer) + "/" + what
	return ask[view.MemberRow](ctx, c, call{method: http.MethodPost, path: path}, body)
}

// Invite makes an invitation.
func (c *Client) Invite(ctx context.Context, terms view.InviteTerms) (view.Invitation, error) {
	body := map[string]any{"for_seconds": terms.Span.Seconds(), "uses": terms.Uses}
	if terms.Name != "" {
		body["name"] = terms.Name
	}
	if terms.Ask { // left out where it is not wanted: agents of before do not know it
		body["ask"] = true
	}
	return ask[view.Invitation](ctx, c, call{method: http.MethodPost, path: "/invites"}, body)
}

// Invites lists the invitations that were made there, the oldest first, closed ones included.
func (c *Client) Invites(ctx context.Context) ([]view.InviteRow, error) {
	return listed(ctx, c, "/invites", func(row view.InviteRow) string { return row.ID })
}

// Revoke makes an open invitation useless; it is named by its ID, the beginning of that, or its
// name.
func (c *Client) Revoke(ctx context.Context, which string) (view.InviteRow, error) {
	in := call{method: http.MethodDelete, path: "/invites/" + url.PathEscape(which)}
	return ask[view.InviteRow](ctx, c, in, nil)
}

// RevokeAll makes all open invitations useless, and returns them.
func (c *Client) RevokeAll(ctx context.Context) ([]view.InviteRow, error) {
	return ask[[]view.InviteRow](ctx, c, call{method: http.MethodDelete, path: "/invites"}, nil)
}

// Listen lets the agent listen for other sites on further addresses, until it ends.
func (c *Client) Listen(ctx context.Context, addrs []string) error {
	_, err := ask[nothing](
		ctx, c, call{method: http.MethodPost, path: "/listen"}, map[string]any{"addresses": addrs},
	)
	return err
}

// Check lets another site say whether this agent's offers arrive there.
func (c *Client) Check(ctx context.Context) (view.CheckResult, error) {
	return ask[view.CheckResult](ctx, c, call{method: http.MethodPost, path: "/check"}, nil)
}
