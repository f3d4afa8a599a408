package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// tesTasks is the path of the tasks of GA4GH TES, which is not below that of the other requests.
const tesTasks = "/ga4gh/tes/v1/tasks"

// SubmitTES hands over a task of GA4GH TES as its document, and gives the task's ID. The request is
// not repeated: the specification has no key for it.
func (c *Client) SubmitTES(ctx context.Context, document json.RawMessage) (string, error) {
	task, err := ask[view.TESTask](ctx, c, call{
		method: http.MethodPost, root: true, path: tesTasks,
	}, document)
	return task.ID, err
}

// TESTask is a task of GA4GH TES with all that is known of it.
func (c *Client) TESTask(ctx context.Context, id string) (view.TESTask, error) {
	return ask[view.TESTask](ctx, c, call{
		method: http.MethodGet, root: true, path: tesTasks + "/" + url.PathEscape(id),
		query: url.Values{"view": {"FULL"}},
	}, nil)
}

// CancelTES ends a task of GA4GH TES.
func (c *Client) CancelTES(ctx context.Context, id string) error {
	_, err := ask[nothing](ctx, c, call{
		method: http.MethodPost, root: true, path: tesTasks + "/" + url.PathEscape(id) + ":cancel",
	}, nil)
	return err
}
