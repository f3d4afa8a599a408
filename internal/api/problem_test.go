package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logger logs to l, without the time.
func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// TestEveryErrorHasItsStatus holds the whole problem against the error of the agent. What is
// the agent's own fault is logged.
func TestEveryErrorHasItsStatus(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	again := "correct it and send the request again"
	wrapped := func(err error) error { return fmt.Errorf("so: %w", err) }
	for _, c := range []struct {
		err    error
		want   view.Problem
		logged string
	}{
		{wrapped(view.ErrNotFound), view.Problem{Status: 404, Detail: "check: so: not found"}, ""},
		{wrapped(view.ErrDenied), view.Problem{Status: 403, Detail: "check: so: denied"}, ""},
		{wrapped(view.ErrConflict), view.Problem{Status: 409, Detail: "check: so: conflict"}, ""},
		{wrapped(view.ErrTooLarge), view.Problem{Status: 413, Detail: "check: so: too large"}, ""},
		{
			wrapped(view.ErrBusy),
			view.Problem{Status: 503, Detail: "check: so: temporarily too busy"},
			`status=503 error="check: so: temporarily too busy"`,
		},
		{
			errors.New("odd"),
			view.Problem{Status: 500, Detail: "check: odd"},
			`status=500 error="check: odd"`,
		},
		{errors.Join(view.ErrConflict, view.ErrNotFound), view.Problem{
			Status: 404, Detail: "check: conflict\nnot found",
		}, ""},
		{wrapped(grid.ErrInvalid), view.Problem{
			Status: 400, Detail: "check: so: invalid", Remedy: again,
		}, ""},
		{fmt.Errorf("%w: %s: why", grid.ErrInvalid, long), view.Problem{
			Status: 400, Detail: "check: invalid: " + long + ": why", Remedy: again, Field: long,
		}, ""},
		{fmt.Errorf("%w: %sy: why", grid.ErrInvalid, long), view.Problem{
			Status: 400, Detail: "check: invalid: " + long + "y: why", Remedy: again,
		}, ""},
		{fmt.Errorf("%w: no field", grid.ErrInvalid), view.Problem{
			Status: 400, Detail: "check: invalid: no field", Remedy: again,
		}, ""},
		{wrapped(&view.Problem{Status: 418, Title: "Tea", Type: "urn:tea", Detail: "d"}), view.Problem{
			Status: 418, Title: "Tea", Type: "urn:tea", Detail: "d",
		}, ""},
	} {
		var log lines
		socket, _ := serve(t, &spy{err: c.err}, func(o *api.Options) { o.Logger = log.logger() })
		if c.want.Title == "" {
			c.want.Title, c.want.Type = http.StatusText(c.want.Status), "about:blank"
		}
		answer, body := request{method: "POST", path: "/check"}.send(t, socket)
		var got view.Problem
		if err := json.Unmarshal([]byte(body), &got); err != nil || got != c.want ||
			answer.StatusCode != c.want.Status {
			t.Errorf("%v: %d %s %v, want %+v", c.err, answer.StatusCode, body, err, c.want)
		}
		want := ""
		if c.logged != "" {
			want = `level=WARN msg="request failed" method=POST path=/api/v1/check ` + c.logged + "\n"
		}
		if log.String() != want {
			t.Errorf("%v is logged as %q, want %q", c.err, log.String(), want)
		}
	}
}

// TestKeysAreBounded tries keys at the bounds of what a key may be.
func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	agent := &spy{}
	socket, _ := serve(t, agent, nil)
	job := marshal(t, view.FromJob(sampleJob()))
	for key, status := range map[string]int{
		"":                       400,
		"k":                      201,
		"~":                      201,
		"a b":                    201, // a space at the end is not sent
		"\u00e4":                 400,
		strings.Repeat("x", 255): 201,
		strings.Repeat("x", 256): 400,
	} {
		answer, body := do(t, overSocket(socket), ask{
			method: "POST", url: "http://localhost/api/v1/jobs", kind: jsonType, body: job,
			header: map[string]string{"Idempotency-Key": key},
		})
		if answer.StatusCode != status {
			t.Errorf("key %.10q of %d bytes: %d %s, want %d", key, len(key), answer.StatusCode, body, status)
		}
	}
	agent.take()
	do(t, overSocket(socket), ask{
		method: "POST", url: "http://localhost/api/v1/jobs", kind: jsonType, body: job,
		header: map[string]string{"Idempotency-Key": "abc"},
	})
	want := "submit pi key:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if asked := agent.take(); asked != want {
		t.Errorf("the agent was asked %q, want %q: the key's SHA-256", asked, want)
	}
}
