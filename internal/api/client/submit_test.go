package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// lossy passes requests on and ends the connection of the first submissions before the
// answer is through: without any answer, then within one.
func lossy(t *testing.T, address string, losses int32) (string, *atomic.Int32) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(target)
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = target.Host
		n := int32(0)
		if r.Method == http.MethodPost {
			n = posts.Add(1)
		}
		if n == 0 || n > losses {
			through.ServeHTTP(w, r)
			return
		}
		through.ServeHTTP(httptest.NewRecorder(), r)
		if n == 2 {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"id": "`))
		}
		panic(http.ErrAbortHandler)
	}))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	return server.URL, &posts
}

func TestASubmissionWhoseAnswerIsLostIsOneJob(t *testing.T) {
	t.Parallel()
	agent := apitest.New(clock)
	_, address := serve(t, agent)
	lossyAddress, posts := lossy(t, address, 2)
	c := connect(t, lossyAddress, token)
	id, err := c.Submit(t.Context(), job())
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := c.Jobs(t.Context(), all)
	if err != nil || len(jobs) != 1 || jobs[0].ID != id || posts.Load() != 3 {
		t.Errorf("%d requests made %d jobs, %v; want 3 and one, %s", posts.Load(), len(jobs), err, id)
	}
	again, err := c.Submit(t.Context(), job())
	if err != nil || again == id {
		t.Errorf("a second submission: %s, %v; want another job than %s", again, err, id)
	}
}

func TestKeysOfTheCaller(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, apitest.New(clock))
	c := connect(t, socket, "")
	id, err := c.SubmitAs(t.Context(), job(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.SubmitAs(t.Context(), job(), "mine"); err != nil || again != id {
		t.Errorf("again: %s, %v, want %s", again, err, id)
	}
	other := job()
	other.Spec.Name = "other"
	if _, err := c.SubmitAs(t.Context(), other, "mine"); !errors.Is(err, view.ErrConflict) {
		t.Errorf("another job: %v, want %v", err, view.ErrConflict)
	}
}

// Nobody to connect to is an answer: it is told immediately.
func TestNobodyIsToldImmediately(t *testing.T) {
	t.Parallel()
	c, start := connect(t, "/nonexistent/s.sock", ""), time.Now()
	_, err := c.Submit(t.Context(), job())
	if !errors.Is(err, client.ErrUnreachable) || time.Since(start) > 5*time.Second {
		t.Errorf("Submit = %v after %v, want %v immediately", err, time.Since(start),
			client.ErrUnreachable)
	}
}
