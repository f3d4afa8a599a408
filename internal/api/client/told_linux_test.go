package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// lines counts the connections of a server.
type lines struct {
	mu     sync.Mutex
	open   map[net.Conn]bool // guarded by mu
	opened int               // guarded by mu
	closed chan struct{}     // told when none is open
}

func (l *lines) note(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		l.opened++
		l.open[c] = true
	case http.StateClosed:
		delete(l.open, c)
		if len(l.open) == 0 {
			l.closed <- struct{}{}
		}
	case http.StateActive, http.StateIdle, http.StateHijacked:
	}
}

// counting serves answers and counts the connections.
func counting(t *testing.T, answer http.HandlerFunc) (*lines, string) {
	t.Helper()
	l := &lines{open: make(map[net.Conn]bool), closed: make(chan struct{}, 100)}
	server := httptest.NewUnstartedServer(answer)
	server.Config.ConnState = l.note
	server.Start()
	t.Cleanup(server.Close)
	return l, server.URL
}

// TestNoConnectionIsLeft closes the client after each kind of call: what was not read of an answer
// holds no connection, and answers that were read leave theirs to the next call.
func TestNoConnectionIsLeft(t *testing.T) {
	t.Parallel()
	much := strings.Repeat(" ", 1<<20)
	text := func(status int, text string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if len(header) > 0 {
				w.Header().Set(header[0], header[1])
			}
			always(status, text)(w, r)
		}
	}
	flowing := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, eventsText("1"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	ctx := t.Context()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		call   func(*client.Client) error
		fails  bool
	}{
		"more than is read": {text(200, `{}`+much), func(c *client.Client) error {
			_, err := c.Status(ctx)
			return err
		}, false},
		"what is not read": {text(202, much), func(c *client.Client) error {
			return c.Stop(ctx, false)
		}, false},
		"a long refusal": {text(409, much), func(c *client.Client) error { return c.Resume(ctx) }, true},
		"data without a size": {text(200, much), func(c *client.Client) error {
			_, body, err := c.GetData(ctx, "b")
			if body != nil {
				t.Error("there is a body beside the error")
			}
			return err
		}, true},
		"data that is looked at": {text(200, "", "Mrs-Bytes", "3"), func(c *client.Client) error {
			_, err := c.StatData(ctx, "b")
			return err
		}, false},
		"data that is let go": {text(200, much, "Mrs-Bytes", "3"), func(c *client.Client) error {
			_, body, err := c.GetData(ctx, "b")
			return errors.Join(err, body.Close())
		}, false},
		"events": {flowing, func(c *client.Client) error {
			return c.Events(ctx, 0, time.Minute, func(view.Event) error { return client.ErrStop })
		}, false},
	} {
		l, address := counting(t, c.answer)
		agent, err := client.New(address, token)
		if err != nil {
			t.Fatal(err)
		}
		if err = c.call(agent); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		agent.Close()
		select {
		case <-l.closed:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: a connection is open after the client was closed", name)
		}
	}
	l, address := counting(t, always(204, ""))
	agent := connect(t, address, token)
	for range 5 {
		if err := agent.Resume(ctx); err != nil {
			t.Error(err)
		}
	}
	l.mu.Lock()
	if l.opened != 1 {
		t.Errorf("five calls took %d connections, want one", l.opened)
	}
	l.mu.Unlock()
}

// TestWhatIsToldOfFailures holds each error against its whole text.
func TestWhatIsToldOfFailures(t *testing.T) {
	t.Parallel()
	told := func(name string, err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v, want %s", name, err, want)
		}
	}
	nobody := connect(t, "/nonexistent/s.sock", "")
	_, err := nobody.Sites(t.Context())
	told("nobody", err, `agent unreachable at /nonexistent/s.sock: Get `+
		`"http://localhost/api/v1/sites?limit=1000": dial unix /nonexistent/s.sock: connect: `+
		`no such file or directory`)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = nobody.Sites(over)
	told("cancelled", err, "ask agent: context canceled")
	told("cancelled events", nobody.Events(over, 0, time.Minute, nil), "read events: context canceled")
	_, err = nobody.SubmitAs(over, job(), "k")
	told("cancelled submission", err, "ask agent: context canceled")
	_, address := play(t, always(http.StatusOK, ""))
	agent := connect(t, address, token)
	_, err = agent.StatData(t.Context(), "b")
	told("no size", err, `read answer of agent: size "" is no number`)
	_, err = agent.Status(t.Context())
	told("no answer", err, "read answer of agent: EOF")
	for addr, want := range map[string]string{
		"s":       `address "s": invalid: want the path of the agent's socket or http://HOST:PORT`,
		"http://": `address "http://": invalid: want http://HOST:PORT`,
	} {
		c, wrong := client.New(addr, "")
		if told(addr, wrong, want); c != nil {
			t.Errorf("%s: there is a client beside the error", addr)
		}
	}
	mine := errors.New("mine")
	_, address = play(t, always(http.StatusOK, eventsText("1")))
	err = connect(t, address, token).Events(t.Context(), 0, time.Minute, func(view.Event) error {
		return mine
	})
	told("handled", err, "handle event: mine")
	_, address = play(t, always(http.StatusOK, "data: x\n\n"))
	err = connect(t, address, token).Events(t.Context(), 0, time.Minute, nil)
	told("no event", err,
		"handle event: read event: invalid character 'x' looking for beginning of value")
}

// TestProblemsAreBounded reads as much of a refusal as it may have, and leaves its status where
// there is more.
func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	const most, rest = 64 << 10, `{"detail":""}`
	for size, want := range map[int]int{most: most - len(rest), most + 1: 0} {
		text := `{"detail":"` + strings.Repeat("x", size-len(rest)) + `"}`
		_, address := play(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			always(http.StatusConflict, text)(w, r)
		})
		err := connect(t, address, token).Resume(t.Context())
		problem, is := errors.AsType[*view.Problem](err)
		if !is || problem.Status != http.StatusConflict || problem.Title != "Conflict" ||
			len(problem.Detail) != want {
			t.Errorf("a problem of %d bytes: %.100v", size, err)
		}
	}
	for size, want := range map[string]bool{"-1": false, "0": true, "x": false, "9": true} {
		_, address := play(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Mrs-Bytes", size)
		})
		ref, err := connect(t, address, token).StatData(t.Context(), "b")
		if (err == nil) != want || err != nil && ref != (view.DataRef{}) ||
			err == nil && ref.CID != grid.CID("b") {
			t.Errorf("a size of %s: %+v, %v", size, ref, err)
		}
	}
}

// TestAnAnswerThatBreaksOffIsAskedForAgain answers a submission with nothing, then with a half.
func TestAnAnswerThatBreaksOffIsAskedForAgain(t *testing.T) {
	t.Parallel()
	answers := []string{"", `{"id": "`, `{"id": "aaaabbbbccccdddd"}`}
	agent, address := play(t, func(w http.ResponseWriter, r *http.Request) {
		text := answers[0]
		answers = answers[1:]
		always(http.StatusCreated, text)(w, r)
	})
	id, err := connect(t, address, token).Submit(t.Context(), job())
	if asked := len(agent.take()); err != nil || id != "aaaabbbbccccdddd" || asked != 3 {
		t.Errorf("Submit = %q, %v after %d requests, want 3", id, err, asked)
	}
}

// TestDataThatIsRefused gets no data, and an address that is none no request.
func TestDataThatIsRefused(t *testing.T) {
	t.Parallel()
	_, address := play(t, always(http.StatusForbidden, ""))
	agent := connect(t, address, token)
	ref, body, err := agent.GetData(t.Context(), "b")
	if !errors.Is(err, view.ErrDenied) || body != nil || ref != (view.DataRef{}) {
		t.Errorf("GetData = %+v, %v, %v", ref, body, err)
	}
	if ref, err = agent.StatData(t.Context(), "b"); !errors.Is(err, view.ErrDenied) ||
		ref != (view.DataRef{}) {
		t.Errorf("StatData = %+v, %v", ref, err)
	}
	if body, err = agent.TaskLog(t.Context(), grid.TaskID{}, view.LogQuery{}); body != nil ||
		!errors.Is(err, view.ErrDenied) {
		t.Errorf("TaskLog = %v, %v", body, err)
	}
	const zone = "http://[fe80::1%25eth0]:1" // which no URL of a request may have
	if _, err = connect(t, zone, "").Sites(t.Context()); err == nil ||
		!strings.HasPrefix(err.Error(), "make request: ") {
		t.Errorf("a request to %s: %v", zone, err)
	}
}
