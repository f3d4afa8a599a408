package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// breaks ends the connection before the answer.
func breaks(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// eventsText is a stream of events with these IDs.
func eventsText(ids ...string) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString("id: " + id + "\ndata: {\"id\":" + id + "}\n\n")
	}
	return b.String()
}

// TestEventsAreTakenUpAgain breaks the connection at several moments: each event comes once,
// the pauses between tries double from 0.2 s to 5 s, and begin anew once a connection was open.
func TestEventsAreTakenUpAgain(t *testing.T) {
	t.Parallel()
	answers := []string{
		"", "", "", eventsText("1", "2"), "", "", "", "", "", "", "", ": welcome\n\n", "",
		eventsText("3"),
	}
	try := 0
	var from []string
	agent, address := play(t, func(w http.ResponseWriter, r *http.Request) {
		from = append(from, r.Header.Get("Last-Event-ID"))
		text := answers[try]
		try++
		if text == "" {
			breaks(w, r)
		}
		w.Header().Set("Connection", "close") // a kept one would hold the virtual time
		_, _ = io.WriteString(w, text)
	})
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var seen []string
		err := connect(t, address, token).Events(t.Context(), 0, time.Minute, func(e view.Event) error {
			seen = append(seen, time.Since(begin).String())
			if e.ID == 3 {
				return client.ErrStop
			}
			return nil
		})
		// 0.2 + 0.4 + 0.8; then 0.2 + 0.4 + 0.8 + 1.6 + 3.2 + 5 + 5 + 5; then 0.2 + 0.4
		want := []string{"1.4s", "1.4s", "23.2s"}
		if diff := cmp.Diff(want, seen); err != nil || diff != "" {
			t.Errorf("events come at (-want +got): %v\n%s", err, diff)
		}
	})
	agent.take()
	want := strings.Fields(strings.Repeat("0 ", 4) + strings.Repeat("2 ", 10))
	if diff := cmp.Diff(want, from); diff != "" {
		t.Errorf("asked from (-want +got):\n%s", diff)
	}
}

// TestPatienceWithAnAgentThatIsGone looks at when Events gives up: at the first try after the
// patience is over.
func TestPatienceWithAnAgentThatIsGone(t *testing.T) {
	t.Parallel()
	never := func(view.Event) error { return errors.New("not expected") }
	for patience, want := range map[time.Duration]time.Duration{
		0:                       200 * time.Millisecond,
		600 * time.Millisecond:  1400 * time.Millisecond,
		601 * time.Millisecond:  1400 * time.Millisecond,
		599 * time.Millisecond:  600 * time.Millisecond,
		6200 * time.Millisecond: 11200 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			c := connect(t, "/nonexistent/s.sock", "")
			err := c.Events(t.Context(), 0, patience, never)
			if took := time.Since(begin); !errors.Is(err, client.ErrUnreachable) || took != want {
				t.Errorf("patience of %v: %v after %v, want %v", patience, err, took, want)
			}
		})
	}
}

// TestEventsEndWithTheContext ends it in a pause, and while events are awaited.
func TestEventsEndWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		err := connect(t, "/nonexistent/s.sock", "").Events(ctx, 0, time.Minute, nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 3*time.Second ||
			!strings.HasPrefix(err.Error(), "read events: ") {
			t.Errorf("in a pause: %v after %v", err, time.Since(begin))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, address := play(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	})
	err := connect(t, address, token).Events(ctx, 0, time.Minute, nil)
	if !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrUnreachable) {
		t.Errorf("while it waits: %v", err)
	}
}

// TestHowEventsAreRead holds streams against what is made of them.
func TestHowEventsAreRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1_000_000)
	for text, want := range map[string][]string{
		"":                                         nil,
		": a comment\n\n\n":                        nil,
		"data: {\"kind\":\"a\"}\n\n":               {"a"},
		"data:{\"kind\":\"a\"}\n\n":                {"a"},
		"data:{\"kind\":\ndata: \"a\"}\n\n":        {"a"},
		"data:{\"kind\":\"a\"}\nid: 1\n\n":         {"a"},
		"data:{\"kind\":\"a\"}\n":                  nil,
		"data:{\"kind\":\"a\"}\n\n: b\n\n\n":       {"a"},
		"data:{\"kind\":\"" + long + "\"}\n\n":     {long},
		"data:{\"kind\":\"a\",\ndata:\"x\":1}\n\n": {"a"},
	} {
		first := true
		_, address := play(t, func(w http.ResponseWriter, _ *http.Request) {
			if first {
				_, _ = io.WriteString(w, text)
			} else {
				_, _ = io.WriteString(w, "data: {\"kind\":\"end\"}\n\n")
			}
			first = false
		})
		var kinds []string
		err := connect(t, address, token).Events(t.Context(), 0, time.Minute, func(e view.Event) error {
			if e.Kind == "end" {
				return client.ErrStop
			}
			kinds = append(kinds, e.Kind)
			return nil
		})
		if diff := cmp.Diff(want, kinds); err != nil || diff != "" {
			t.Errorf("%.60q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	_, address := play(t, always(http.StatusOK, "data: {\n\n"))
	err := connect(t, address, token).Events(t.Context(), 0, time.Minute, nil)
	if err == nil || !strings.Contains(err.Error(), "read event: ") {
		t.Errorf("an event that is none: %v", err)
	}
}

// TestHowEventsAreAskedFor holds the request against where the events are to begin.
func TestHowEventsAreAskedFor(t *testing.T) {
	t.Parallel()
	for after, want := range map[uint64]string{
		0: "/api/v1/events text/event-stream 0", 12: "/api/v1/events text/event-stream 12",
		view.FromNow: "/api/v1/events?now=true text/event-stream ",
	} {
		_, address := play(t, func(w http.ResponseWriter, r *http.Request) {
			h := r.Header
			got := r.RequestURI + " " + h.Get("Accept") + " " + h.Get("Last-Event-ID")
			if got != want {
				t.Errorf("after %d: asked %q, want %q", after, got, want)
			}
			_, _ = io.WriteString(w, eventsText("8"))
		})
		if err := connect(t, address, token).Events(
			t.Context(), after, time.Minute, func(view.Event) error { return client.ErrStop },
		); err != nil {
			t.Error(err)
		}
	}
}

// TestASubmissionIsRepeated for 15 s with a pause of 0.2 s, always with the same key.
func TestASubmissionIsRepeated(t *testing.T) {
	t.Parallel()
	keys := make(map[string]int)
	agent, address := play(t, func(w http.ResponseWriter, r *http.Request) {
		keys[r.Header.Get("Idempotency-Key")]++
		breaks(w, r)
	})
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		id, err := connect(t, address, token).SubmitAs(t.Context(), job(), "mine")
		took := time.Since(begin)
		if id != "" || !errors.Is(err, client.ErrUnreachable) || took != 15*time.Second {
			t.Errorf("Submit = %q, %v after %v, want 15 s", id, err, took)
		}
	})
	agent.take()
	if diff := cmp.Diff(map[string]int{"mine": 76}, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := connect(t, address, token).Submit(ctx, job())
		if took := time.Since(begin); took != 1500*time.Millisecond ||
			!errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "submit again: ") {
			t.Errorf("Submit = %v after %v, want 1.5 s", err, took)
		}
	})
	agent.take()
	if len(keys) != 2 || keys[""] > 0 {
		t.Errorf("the keys were %v, want a random one besides", keys)
	}
}

// TestARefusedSubmissionIsNotRepeated gets an answer, which is the end of it.
func TestARefusedSubmissionIsNotRepeated(t *testing.T) {
	t.Parallel()
	agent, address := play(t, always(http.StatusServiceUnavailable, ""))
	if _, err := connect(t, address, token).Submit(t.Context(), job()); !errors.Is(err, view.ErrBusy) {
		t.Errorf("Submit = %v, want %v", err, view.ErrBusy)
	}
	if n := len(agent.take()); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
}

// TestAnUploadWhoseSourceFails tells the source's error and not the agent's.
func TestAnUploadWhoseSourceFails(t *testing.T) {
	t.Parallel()
	_, address := play(t, always(http.StatusCreated, `{}`))
	c := connect(t, address, token)
	half := io.MultiReader(bytes.NewReader([]byte("half")), failing{})
	_, first := c.PutData(t.Context(), true, half)
	_, second := c.PutExecutable(t.Context(), failing{})
	for _, err := range []error{first, second} {
		if err == nil || err.Error() != "read what is to be sent: permission denied" {
			t.Errorf("the error is %v", err)
		}
	}
}
