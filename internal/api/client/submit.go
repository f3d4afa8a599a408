package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A submission whose answer was lost is repeated for repeatFor, with a pause in between: an
// agent that was restarted is back by then.
const (
	repeatFor   = 15 * time.Second
	repeatPause = 200 * time.Millisecond
)

// Submit hands a job over, whose data was stored before. The request has a random key: when
// the connection breaks before the answer is here, it is repeated, and makes no second job.
func (c *Client) Submit(ctx context.Context, job grid.Job) (grid.JobID, error) {
	return c.SubmitAs(ctx, job, rand.Text())
}

// SubmitAs is Submit with a key of the caller's, which names the request: the same request with
// the same key is answered with the same job for as long as that is kept, and another request
// with that key is refused with view.ErrConflict.
func (c *Client) SubmitAs(ctx context.Context, job grid.Job, key string) (grid.JobID, error) {
	id, err := c.submitOnce(ctx, job, key)
	if isUnsent(err) {
		return "", err
	}
	for end := time.Now().Add(repeatFor); isBroken(err) && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("submit again: %w", ctx.Err())
		case <-time.After(repeatPause):
		}
		id, err = c.submitOnce(ctx, job, key)
	}
	return id, err
}

func (c *Client) submitOnce(ctx context.Context, job grid.Job, key string) (grid.JobID, error) {
	ref, err := ask[struct {
		ID grid.JobID `json:"id"`
	}](ctx, c, call{
		method: http.MethodPost, path: "/jobs", header: map[string]string{"Idempotency-Key": key},
	}, view.FromJob(job))
	return ref.ID, err
}

// isBroken reports whether the connection ended before the whole answer was here.
func isBroken(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF)
}

// isUnsent reports whether a request never left: there was nobody to connect to.
func isUnsent(err error) bool {
	dial, is := errors.AsType[*net.OpError](err)
	return is && dial.Op == "dial"
}
