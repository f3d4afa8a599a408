package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// Members lists who takes part, who is kept out, and which invitations are open.
func (c *Client) Members(ctx context.Context) (view.Members, error) {
	return ask[view.Members](ctx, c, call{method: http.MethodGet, path: "/members"}, nil)
}

// Admit makes a site, by its ID or name, a member, and takes back a ban.
func (c *Client) Admit(ctx context.Context, peer, note string) (view.MemberRow, error) {
	return c.decide(ctx, peer, "admit", note)
}

// Ban keeps a site, by its ID or name, out.
func (c *Client) Ban(ctx context.Context, peer, note string) (view.MemberRow, error) {
	return c.decide(ctx, peer, "ban", note)
}

func (c *Client) decide(ctx context.Context, peer, what, note string) (view.MemberRow, error) {
	path := "/members/" + url.PathEscape(peer) + "/" + what
	return ask[view.MemberRow](
		ctx, c, call{method: http.MethodPost, path: path}, map[string]string{"note": note},
	)
}

// Invite makes an invitation that so many sites may redeem for so long.
func (c *Client) Invite(
	ctx context.Context, span time.Duration, uses int,
) (view.Invitation, error) {
	body := map[string]any{"for_seconds": span.Seconds(), "uses": uses}
	return ask[view.Invitation](ctx, c, call{method: http.MethodPost, path: "/invites"}, body)
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
