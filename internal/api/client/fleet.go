package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Fleet lists the members of the domain with what each says of itself.
func (c *Client) Fleet(ctx context.Context) ([]view.FleetRow, error) {
	return listed(ctx, c, "/fleet", func(row view.FleetRow) grid.SiteID { return row.Site })
}

// StatusAt is the state of another site, by its ID or name, whose owner allows it.
func (c *Client) StatusAt(ctx context.Context, site string) (view.AgentStatus, error) {
	return steer(ctx, c, http.MethodGet, site, "status", nil)
}

// PauseAt pauses that site, and returns its state then.
func (c *Client) PauseAt(
	ctx context.Context, site string, p view.PauseOrder,
) (view.AgentStatus, error) {
	return steer(ctx, c, http.MethodPost, site, "pause", pauseBody(p))
}

// ResumeAt ends a pause of that site which was ordered from afar, and returns its state then.
func (c *Client) ResumeAt(ctx context.Context, site string) (view.AgentStatus, error) {
	return steer(ctx, c, http.MethodPost, site, "resume", nil)
}

func steer(
	ctx context.Context, c *Client, method, site, what string, body any,
) (view.AgentStatus, error) {
	path := "/members/" + url.PathEscape(site) + "/" + what
	return ask[view.AgentStatus](ctx, c, call{method: method, path: path}, body)
}

// pauseBody asks for a pause. Without Leave, agents of before know it.
func pauseBody(p view.PauseOrder) map[string]any {
	body := map[string]any{"for_seconds": p.Span.Seconds()}
	if p.Leave {
		body["after_checkpoint"] = true
		body["stop_after_seconds"] = p.StopAfter.Seconds()
	}
	return body
}
