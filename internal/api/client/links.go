package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Links lists the domains that the agent's is linked with, and the open invitations to further
// links.
func (c *Client) Links(ctx context.Context) (view.Links, error) {
	return ask[view.Links](ctx, c, call{method: http.MethodGet, path: "/links"}, nil)
}

// Neighbours lists the linked domains that the agent's jobs may run in.
func (c *Client) Neighbours(ctx context.Context) ([]view.NeighbourRow, error) {
	in := call{method: http.MethodGet, path: "/neighbours"}
	return ask[[]view.NeighbourRow](ctx, c, in, nil)
}

// InviteDomain makes an invitation to a link, for a domain of that name or, without one, for any.
func (c *Client) InviteDomain(
	ctx context.Context, name grid.DomainID, span time.Duration,
) (view.LinkInvitation, error) {
	body := map[string]any{"for_seconds": span.Seconds()}
	if name != "" {
		body["name"] = name
	}
	in := call{method: http.MethodPost, path: "/link-invites"}
	return ask[view.LinkInvitation](ctx, c, in, body)
}

// WithdrawInvite makes an invitation to a link useless.
func (c *Client) WithdrawInvite(ctx context.Context, id string) error {
	in := call{method: http.MethodDelete, path: "/link-invites/" + url.PathEscape(id)}
	_, err := ask[nothing](ctx, c, in, nil)
	return err
}

// JoinDomain links the agent's domain with the one whose token it is.
func (c *Client) JoinDomain(ctx context.Context, token string) (view.LinkRow, error) {
	in := call{method: http.MethodPost, path: "/links"}
	return ask[view.LinkRow](ctx, c, in, map[string]string{"token": token})
}

// SetLinkPolicy changes what was decided about a linked domain.
func (c *Client) SetLinkPolicy(
	ctx context.Context, name grid.DomainID, change view.PolicyChange,
) (view.LinkRow, error) {
	path := "/links/" + url.PathEscape(string(name)) + "/policy"
	return ask[view.LinkRow](ctx, c, call{method: http.MethodPost, path: path}, change)
}

// Unlink ends the link with a domain.
func (c *Client) Unlink(ctx context.Context, name grid.DomainID) error {
	in := call{method: http.MethodDelete, path: "/links/" + url.PathEscape(string(name))}
	_, err := ask[nothing](ctx, c, in, nil)
	return err
}

// RotateKey gives the agent's domain a new key; where from is the one that was replaced last,
// nothing more is done. An empty from is the present key.
func (c *Client) RotateKey(ctx context.Context, from grid.DomainKey) (view.Rotation, error) {
	body := map[string]any{}
	if from != "" {
		body["from"] = from
	}
	in := call{method: http.MethodPost, path: "/domain-key/rotate"}
	return ask[view.Rotation](ctx, c, in, body)
}
