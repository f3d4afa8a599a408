package client

import (
	"context"
	"net/http"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Reservations lists the agent's own reservations, newest first.
func (c *Client) Reservations(ctx context.Context) ([]view.Reservation, error) {
	return listed(
		ctx, c, "/reservations", func(row view.Reservation) grid.JobID { return row.ID },
	)
}

// Planning says in what order those that wait in the site's plan move up.
func (c *Client) Planning(ctx context.Context) (view.Planning, error) {
	return ask[view.Planning](ctx, c, call{method: http.MethodGet, path: "/planning"}, nil)
}

// SetPlanning changes that order until the agent ends.
func (c *Client) SetPlanning(ctx context.Context, p view.Planning) (view.Planning, error) {
	return ask[view.Planning](ctx, c, call{method: http.MethodPut, path: "/planning"}, p)
}
