package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// ErrStop makes Events return nil.
var ErrStop = errors.New("stop reading events")

const (
	firstRetry   = 200 * time.Millisecond
	lastRetry    = 5 * time.Second
	maxEventLine = 1 << 20
)

// Events calls handle for each event after the given ID (of all that are kept with
// 0; with view.FromNow of those to come, after one of kind "now" when it listens)
// until the context ends or handle fails; ErrStop from handle ends it without an
// error. After a broken connection it continues with the next event; when the agent
// stays away for longer than patience it gives up with ErrUnreachable.
func (c *Client) Events(
	ctx context.Context, after uint64, patience time.Duration, handle func(view.Event) error,
) error {
	wait, lost := firstRetry, time.Now()
	for {
		last, err := c.readEvents(ctx, after, handle)
		var refused *view.Problem
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("read events: %w", ctx.Err())
		case errors.Is(err, ErrStop):
			return nil
		case errors.As(err, &refused), errors.Is(err, errHandle):
			return err
		}
		if last != after || err == nil {
			wait, lost = firstRetry, time.Now()
		}
		after = last
		if time.Since(lost) > patience {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, lastRetry)
	}
}

// errHandle marks an error of the caller's function.
var errHandle = errors.New("handle event")

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("read events: %w", ctx.Err())
	}
}

// readEvents reads one connection's events and gives the last ID it saw. A
// connection that was open and broke off is no error.
func (c *Client) readEvents(
	ctx context.Context, after uint64, handle func(view.Event) error,
) (uint64, error) {
	ask := call{
		method: http.MethodGet, path: "/events", header: map[string]string{"Accept": "text/event-stream"},
	}
	if after == view.FromNow {
		ask.query = url.Values{"now": {"true"}}
	} else {
		ask.header["Last-Event-ID"] = strconv.FormatUint(after, 10)
	}
	answer, err := c.do(ctx, ask)
	if err != nil {
		return after, err
	}
	defer func() { _ = answer.Body.Close() }() // only read from
	return scanEvents(answer.Body, after, handle)
}

func scanEvents(body io.Reader, after uint64, handle func(view.Event) error) (uint64, error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 4096), maxEventLine)
	var data strings.Builder
	for lines.Scan() {
		line := lines.Text()
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			data.WriteString(strings.TrimPrefix(text, " "))
			continue
		}
		if line != "" || data.Len() == 0 {
			continue
		}
		var event view.Event
		if err := json.Unmarshal([]byte(data.String()), &event); err != nil {
			return after, fmt.Errorf("%w: read event: %w", errHandle, err)
		}
		data.Reset()
		after = event.ID
		if err := handle(event); err != nil {
			return after, fmt.Errorf("%w: %w", errHandle, err)
		}
	}
	return after, nil // whatever ended the stream, it is taken up again
}
