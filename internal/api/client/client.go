// Package client speaks to an agent's API over its unix socket or over TCP with a
// bearer token. Errors are typed: ErrUnreachable when no agent answers, otherwise
// a *view.Problem, which errors.Is knows as view.ErrNotFound, view.ErrDenied,
// view.ErrConflict, view.ErrTooLarge, view.ErrBusy or grid.ErrInvalid.
//
//	client.go         Client: requests and their errors; jobs, sites, the agent itself
//	pages.go          lists that come page by page
//	submit.go         a job handed over, once
//	tes.go            tasks of GA4GH TES
//	data.go           files there and back, and what tasks print
//	events.go         events as they come
//	members.go        members, invitations, checks
//	fleet.go          other sites, looked at and paused from afar
//	links.go          linked domains
//	planning.go       reservations, and the site's plan
//	configuration.go  the agent's settings
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/socket"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ErrUnreachable says that no agent answers at the address.
var ErrUnreachable = errors.New("agent unreachable")

const (
	dialTimeout   = 5 * time.Second
	headerTimeout = 6 * time.Minute // a plan takes up to its TTL of 5 minutes
	maxAnswer     = 256 << 20       // bytes of one JSON answer
	apiPath       = "/api/v1"
)

// Client talks to one agent. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	base  string // URL up to /api/v1
	token string
	addr  string // for messages
}

// New makes a client of a socket (its path, or unix:PATH) or of http://HOST:PORT.
// It does not connect. The token is only sent over TCP.
func New(addr, token string) (*Client, error) {
	transport := &http.Transport{
		ResponseHeaderTimeout: headerTimeout, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
	}
	c := &Client{http: &http.Client{Transport: transport}, addr: addr}
	dialer := net.Dialer{Timeout: dialTimeout}
	if strings.HasPrefix(addr, "http://") {
		parsed, err := url.Parse(addr)
		if err != nil || parsed.Host == "" {
			return nil, fmt.Errorf("address %q: %w: want http://HOST:PORT", addr, grid.ErrInvalid)
		}
		transport.DialContext = dialer.DialContext
		c.base, c.token = "http://"+parsed.Host+apiPath, token
		return c, nil
	}
	path := strings.TrimPrefix(addr, "unix:")
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("address %q: %w: want the path of the agent's socket or http://HOST:PORT", addr, grid.ErrInvalid)
	}
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		if err := socket.Check(path); err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, "unix", path)
	}
	c.base = "http://localhost" + apiPath
	return c, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call is one request.
type call struct {
	method, path string
	root         bool // the path is not below /api/v1
	query        url.Values
	body         io.Reader
	kind         string // content type of the body
	header       map[string]string
}

// do sends a request and gives the answer with an open body, or the problem.
func (c *Client) do(ctx context.Context, in call) (*http.Response, error) {
	target := c.base + in.path
	if in.root {
		target = strings.TrimSuffix(c.base, apiPath) + in.path
	}
	if len(in.query) > 0 {
		target += "?" + in.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, in.method, target, in.body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if in.kind != "" {
		request.Header.Set("Content-Type", in.kind)
	}
	for name, value := range in.header {
		request.Header.Set(name, value)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if answer.StatusCode < http.StatusBadRequest {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }() // only read from
	return nil, readProblem(answer)
}

// unreachable tells failures of the line from those of the caller.
func (c *Client) unreachable(ctx context.Context, err error) error {
	var reading *sourceError
	switch {
	case errors.As(err, &reading):
		return fmt.Errorf("read what is to be sent: %w", reading.err)
	case ctx.Err() != nil:
		return fmt.Errorf("ask agent: %w", ctx.Err())
	default:
		return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.addr, err)
	}
}

// sourceError marks an error of an upload's source, which is not the agent's.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

type source struct{ io.Reader }

func (s source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &sourceError{err: err}
	}
	return n, err
}

func readProblem(answer *http.Response) error {
	problem := &view.Problem{Status: answer.StatusCode, Title: http.StatusText(answer.StatusCode)}
	data, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err == nil && strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") {
		_ = json.Unmarshal(data, problem) // what cannot be read leaves the status
	}
	problem.Status = answer.StatusCode
	return problem
}

// ask sends an optional JSON body and reads an optional JSON answer.
func ask[T any](ctx context.Context, c *Client, in call, body any) (T, error) {
	var out T
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return out, fmt.Errorf("write request: %w", err)
		}
		in.body, in.kind = bytes.NewReader(data), "application/json"
	}
	answer, err := c.do(ctx, in)
	if err != nil {
		return out, err
	}
	defer func() { _ = answer.Body.Close() }() // only read from
	if answer.StatusCode == http.StatusNoContent || answer.StatusCode == http.StatusAccepted {
		return out, nil
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&out); err != nil {
		return out, fmt.Errorf("read answer of agent: %w", err)
	}
	return out, nil
}

type nothing struct{}

// Jobs lists the agent's own submissions, newest first, page by page; a limit of 0 is none.
func (c *Client) Jobs(ctx context.Context, q view.JobQuery) ([]view.JobView, error) {
	var all []view.JobView
	for {
		want := pageRows
		if q.Limit > 0 {
			want = min(pageRows, q.Limit-len(all))
		}
		query := url.Values{"limit": {strconv.Itoa(want)}}
		set := func(name, value string) {
			if value != "" {
				query.Set(name, value)
			}
		}
		set("before", string(q.Before))
		set("prefix", q.Prefix)
		if !q.Since.IsZero() {
			set("since", q.Since.Format(time.RFC3339Nano))
		}
		jobs, err := ask[[]view.JobView](
			ctx, c, call{method: http.MethodGet, path: "/jobs", query: query}, nil,
		)
		if err != nil {
			return nil, err
		}
		all = append(all, jobs...)
		if len(jobs) < want || len(all) == q.Limit || q.Prefix != "" {
			return all, nil
		}
		q.Before = jobs[len(jobs)-1].ID
	}
}

// Forget drops what the agent knows of a job that has ended, and its outputs.
func (c *Client) Forget(ctx context.Context, id grid.JobID) error {
	_, err := ask[nothing](ctx, c, call{
		method: http.MethodPost, path: "/jobs/" + url.PathEscape(string(id)) + "/forget",
	}, nil)
	return err
}

// ForgetEnded drops all jobs that ended before a time, and returns how many those were.
func (c *Client) ForgetEnded(ctx context.Context, before time.Time) (int, error) {
	answer, err := ask[struct {
		Jobs int `json:"jobs"`
	}](ctx, c, call{
		method: http.MethodDelete, path: "/jobs",
		query: url.Values{"ended_before": {before.Format(time.RFC3339Nano)}},
	}, nil)
	return answer.Jobs, err
}

// Job is one of them in full.
func (c *Client) Job(ctx context.Context, id grid.JobID) (view.JobDetail, error) {
	return ask[view.JobDetail](
		ctx, c, call{method: http.MethodGet, path: "/jobs/" + url.PathEscape(string(id))}, nil,
	)
}

// Tasks gives up to limit tasks from an index on.
func (c *Client) Tasks(
	ctx context.Context, id grid.JobID, from uint32, limit int,
) ([]view.TaskView, error) {
	query := url.Values{"from": {strconv.FormatUint(uint64(from), 10)}, "limit": {strconv.Itoa(limit)}}
	return ask[[]view.TaskView](ctx, c, call{
		method: http.MethodGet, path: "/jobs/" + url.PathEscape(string(id)) + "/tasks", query: query,
	}, nil)
}

// AllTasks gives every task of a job, page by page.
func (c *Client) AllTasks(ctx context.Context, id grid.JobID) ([]view.TaskView, error) {
	var all []view.TaskView
	for {
		tasks, err := c.Tasks(ctx, id, uint32(len(all)), pageRows)
		if err != nil {
			return nil, err
		}
		all = append(all, tasks...)
		if len(tasks) < pageRows || len(all) >= grid.MaxTasks {
			return all, nil
		}
	}
}

// Cancel withdraws a job.
func (c *Client) Cancel(ctx context.Context, id grid.JobID) error {
	return c.order(ctx, id, "cancel")
}

// Hold keeps a job that has not begun from being placed.
func (c *Client) Hold(ctx context.Context, id grid.JobID) error { return c.order(ctx, id, "hold") }

// Release lets a held job go on.
func (c *Client) Release(ctx context.Context, id grid.JobID) error {
	return c.order(ctx, id, "release")
}

// order has something done with a job.
func (c *Client) order(ctx context.Context, id grid.JobID, verb string) error {
	path := "/jobs/" + url.PathEscape(string(id)) + "/" + verb
	_, err := ask[nothing](ctx, c, call{method: http.MethodPost, path: path}, nil)
	return err
}

// Migrate begins to move running tasks of a job to other sites.
func (c *Client) Migrate(ctx context.Context, id grid.JobID, r view.MoveRequest) error {
	path := "/jobs/" + url.PathEscape(string(id)) + "/migrate"
	_, err := ask[nothing](ctx, c, call{method: http.MethodPost, path: path}, r)
	return err
}

// Plan announces a job, shows the offers and dispatches nothing.
func (c *Client) Plan(ctx context.Context, job grid.Job) (view.OfferTable, error) {
	return ask[view.OfferTable](
		ctx, c, call{method: http.MethodPost, path: "/plan"}, view.FromJob(job),
	)
}

// Offers returns how the sites answered the last announcement of a job.
func (c *Client) Offers(ctx context.Context, id grid.JobID) (view.OfferTable, error) {
	return ask[view.OfferTable](
		ctx, c, call{method: http.MethodGet, path: "/jobs/" + url.PathEscape(string(id)) + "/offers"},
		nil,
	)
}

// Sites lists the sites the agent knows.
func (c *Client) Sites(ctx context.Context) ([]view.SiteRow, error) {
	return listed(ctx, c, "/sites", func(row view.SiteRow) grid.SiteID { return row.ID })
}

// Status is the agent's state.
func (c *Client) Status(ctx context.Context) (view.AgentStatus, error) {
	return ask[view.AgentStatus](ctx, c, call{method: http.MethodGet, path: "/status"}, nil)
}

// Given lists what the site gave, by day.
func (c *Client) Given(ctx context.Context) ([]view.GivenDay, error) {
	return ask[[]view.GivenDay](ctx, c, call{method: http.MethodGet, path: "/given"}, nil)
}

// Pause makes the site refuse new work for that long; 0 = until Resume.
func (c *Client) Pause(ctx context.Context, span time.Duration) error {
	_, err := ask[nothing](
		ctx, c, call{method: http.MethodPost, path: "/pause"},
		pauseBody(view.PauseOrder{Span: span}),
	)
	return err
}

// Leave is Pause, and jobs that can go on elsewhere move there when their state is saved. The
// others are stopped after stopAfter; 0 = they go on.
func (c *Client) Leave(ctx context.Context, span, stopAfter time.Duration) error {
	_, err := ask[nothing](
		ctx, c, call{method: http.MethodPost, path: "/pause"},
		pauseBody(view.PauseOrder{Span: span, Leave: true, StopAfter: stopAfter}),
	)
	return err
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context) error {
	_, err := ask[nothing](ctx, c, call{method: http.MethodPost, path: "/resume"}, nil)
	return err
}

// Recover goes on with the own jobs without their standbys, which are named and lost for good.
func (c *Client) Recover(ctx context.Context, without []grid.SiteID) error {
	_, err := ask[nothing](
		ctx, c, call{method: http.MethodPost, path: "/recover"},
		map[string][]grid.SiteID{"without": without},
	)
	return err
}

// Stop ends the agent, after its tasks or now.
func (c *Client) Stop(ctx context.Context, now bool) error {
	_, err := ask[nothing](
		ctx, c, call{method: http.MethodPost, path: "/stop"}, map[string]bool{"now": now},
	)
	return err
}
