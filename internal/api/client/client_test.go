package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// all asks for all jobs.
var all view.JobQuery

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

const token = "0123456789abcdef"

func serve(t *testing.T, agent api.Backend) (string, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mrs") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s.sock")
	server, err := api.New(agent, api.Options{Socket: socket, Listen: "127.0.0.1:0", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := server.Listen(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	return socket, "http://" + server.Addr().String()
}

func connect(t *testing.T, addr, token string) *client.Client {
	t.Helper()
	c, err := client.New(addr, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func job() grid.Job {
	return grid.Job{
		Spec: grid.Spec{
			Name: "j", Kind: grid.KindWasm, Module: grid.Input{CID: "bm", Bytes: 1}, Runtime: time.Second,
			Need: grid.Resources{MilliCPUs: 1000}, Weights: grid.DefaultWeights(),
		},
		Count: 1500, TTL: time.Second,
	}
}

func TestThroughBothDoors(t *testing.T) {
	t.Parallel()
	agent := apitest.New(clock)
	socket, address := serve(t, agent)
	for _, c := range []*client.Client{
		connect(t, socket, ""), connect(t, "unix:"+socket, ""), connect(t, address, token),
	} {
		id, err := c.Submit(t.Context(), job())
		if err != nil {
			t.Fatal(err)
		}
		detail, err := c.Job(t.Context(), id)
		if err != nil || detail.Status.Count != 1500 {
			t.Fatalf("Job = %+v, %v", detail, err)
		}
		back, err := detail.Spec.Job()
		if diff := cmp.Diff(job(), back); err != nil || diff != "" {
			t.Errorf("spec came back (-want +got): %s %v", diff, err)
		}
		tasks, err := c.AllTasks(t.Context(), id)
		if err != nil || len(tasks) != 1500 || tasks[1499].Index != 1499 {
			t.Errorf("AllTasks: %d, %v", len(tasks), err)
		}
		checkData(t, c)
		if err := errors.Join(
			c.Cancel(t.Context(), id), c.Pause(t.Context(), time.Hour), c.Resume(t.Context()),
		); err != nil {
			t.Error(err)
		}
		if jobs, err := c.Jobs(t.Context(), all); err != nil || jobs[0].Phase != view.PhaseCancelled {
			t.Errorf("Jobs = %+v, %v", jobs, err)
		}
	}
}

func checkData(t *testing.T, c *client.Client) {
	t.Helper()
	ref, err := c.PutData(t.Context(), true, strings.NewReader("a tar"))
	if err != nil || !ref.Dir || ref.Bytes != 5 {
		t.Fatalf("PutData = %+v, %v", ref, err)
	}
	if stat, wrong := c.StatData(t.Context(), ref.CID); wrong != nil || stat != ref {
		t.Errorf("StatData = %+v, %v, want %+v", stat, wrong, ref)
	}
	got, body, err := c.GetData(t.Context(), ref.CID)
	if err != nil || got != ref {
		t.Fatalf("GetData = %+v, %v", got, err)
	}
	defer body.Close()
	if data, err := io.ReadAll(body); err != nil || string(data) != "a tar" {
		t.Errorf("content %q, %v", data, err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, os.ErrPermission }

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	socket, address := serve(t, apitest.New(clock))
	c := connect(t, socket, "")
	if _, err := c.Job(t.Context(), "aaaaaaaaaaaaaaaa"); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("unknown job: %v", err)
	}
	if _, err := c.StatData(t.Context(), "bnone"); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("unknown data: %v", err)
	}
	if _, err := c.Submit(t.Context(), grid.Job{}); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("empty job: %v", err)
	}
	if _, err := connect(t, address, "wrong").Jobs(t.Context(), all); !errors.Is(err, view.ErrDenied) {
		t.Errorf("wrong token: %v", err)
	}
	nobody := connect(t, "/nonexistent/s.sock", "")
	if _, err := nobody.Jobs(t.Context(), all); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("no agent: %v", err)
	}
	if _, err := c.PutData(t.Context(), false, failing{}); !errors.Is(err, os.ErrPermission) ||
		errors.Is(err, client.ErrUnreachable) {
		t.Errorf("source fails: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Jobs(canceled, all); !errors.Is(err, context.Canceled) ||
		errors.Is(err, client.ErrUnreachable) {
		t.Errorf("cancelled: %v", err)
	}
	for _, addr := range []string{"", "relative.sock", "http://", "https://x"} {
		if _, err := client.New(addr, ""); err == nil {
			t.Errorf("New took %q", addr)
		}
	}
}

// TestEventsResume breaks the stream after every event.
func TestEventsResume(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := r.Header.Get("Last-Event-ID")
		asked = append(asked, last)
		next := map[string]string{"4": "5", "5": "6"}[last]
		_, _ = io.WriteString(w, ": hello\n\n"+
			"id: "+next+"\nevent: x\ndata: {\"id\":"+next+",\n"+
			"data: \"kind\":\"x\",\"time\":\"2026-01-02T03:04:05Z\"}\n\n"+
			"id: 99\ndata: {\"id\":99")
	}))
	defer server.Close()
	var seen []uint64
	err := connect(t, server.URL, token).Events(t.Context(), 4, time.Second, func(e view.Event) error {
		seen = append(seen, e.ID)
		if e.ID == 6 {
			return client.ErrStop
		}
		return nil
	})
	if diff := cmp.Diff([]uint64{5, 6}, seen); err != nil || diff != "" {
		t.Errorf("events %v (asked from %v): %s %v", seen, asked, diff, err)
	}
}

// What was before does not come, and nothing is missed from then on.
func TestEventsFromNow(t *testing.T) {
	t.Parallel()
	agent := apitest.New(clock)
	for range 3 {
		agent.Append(view.Event{Kind: "old"})
	}
	socket, _ := serve(t, agent)
	var kinds []string
	err := connect(t, socket, "").Events(t.Context(), view.FromNow, time.Minute,
		func(e view.Event) error {
			kinds = append(kinds, e.Kind)
			if e.Kind == "new" {
				return client.ErrStop
			}
			agent.Append(view.Event{Kind: "new"})
			return nil
		})
	if diff := cmp.Diff([]string{"now", "new"}, kinds); err != nil || diff != "" {
		t.Errorf("events: %v\n%s", err, diff)
	}
}

func TestEventsGiveUp(t *testing.T) {
	t.Parallel()
	never := func(view.Event) error { return errors.New("not expected") }
	err := connect(t, "/nonexistent/s.sock", "").Events(t.Context(), 0, time.Millisecond, never)
	if !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("no agent: %v", err)
	}
	agent := apitest.New(clock)
	agent.Append(view.Event{Kind: "x"})
	socket, address := serve(t, agent)
	if err := connect(t, address, "wrong").Events(
		t.Context(), 0, time.Minute, never,
	); !errors.Is(err, view.ErrDenied) {
		t.Errorf("wrong token: %v", err)
	}
	mine := errors.New("mine")
	if err := connect(t, socket, "").Events(t.Context(), 0, time.Minute, func(view.Event) error {
		return mine
	}); !errors.Is(err, mine) {
		t.Errorf("handle failed: %v", err)
	}
}
