package client

import (
	"context"
	"net/http"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// Configuration says of each of the agent's settings where it comes from.
func (c *Client) Configuration(ctx context.Context) (view.Configuration, error) {
	return ask[view.Configuration](ctx, c, call{method: http.MethodGet, path: "/configuration"}, nil)
}

// Reload makes the agent read its configuration again. A mistake in the file is told
// in the answer's Problem; the old settings stay.
func (c *Client) Reload(ctx context.Context) (view.Configuration, error) {
	return ask[view.Configuration](
		ctx, c, call{method: http.MethodPost, path: "/configuration/reload"}, nil,
	)
}

// PageLink makes a link that opens the agent's page in a browser, once.
func (c *Client) PageLink(ctx context.Context, guest bool) (view.PageLink, error) {
	return ask[view.PageLink](
		ctx, c, call{method: http.MethodPost, path: "/page-links"}, map[string]bool{"guest": guest},
	)
}
