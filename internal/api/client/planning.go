package client

import (
	"context"
	"net/http"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// Reservations lists the agent's own reservations, newest first.
func (c *Client) Reservations(ctx context.Context) ([]view.Reservation, error) {
	return ask[[]view.Reservation](ctx, c, call{method: http.MethodGet, path: "/reservations"}, nil)
}

// Planning says in what order those that wait in the site's plan move up.
func (c *Client) Planning(ctx context.Context) (view.Planning, error) {
	return ask[view.Planning](ctx, c, call{method: http.MethodGet, path: "/planning"}, nil)
}

// SetPlanning changes that order until the agent ends.
func (c *Client) SetPlanning(ctx context.Context, p view.Planning) (view.Planning, error) {
	return ask[view.Planning](ctx, c, call{method: http.MethodPut, path: "/planning"}, p)
}
