package tes_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/tes"
)

// Over TCP tasks want the bearer token, as everything of the agent's interface does; their errors
// are problems there.
func TestTheLockOfTheDoor(t *testing.T) {
	t.Parallel()
	agent := apitest.New(time.Now)
	server, err := api.New(agent, api.Options{
		Listen: "127.0.0.1:0", Token: "secret", Tasks: tes.New(agent, tes.Config{Dir: t.TempDir()}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		path, authorization string
		want                int
	}{
		{"/ga4gh/tes/v1/service-info", "Bearer secret", http.StatusOK},
		{"/v1/tasks", "Bearer secret", http.StatusOK},
		{"/v1/tasks/x", "Bearer secret", http.StatusNotFound},
		{"/v1/tasks", "", http.StatusUnauthorized},
		{"/v1/tasks", "Bearer other", http.StatusUnauthorized},
		{"/v1/tasks", "Basic Og==", http.StatusUnauthorized},
	} {
		r, err := http.NewRequestWithContext(
			t.Context(), http.MethodGet, "http://"+server.Addr().String()+c.path, nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", c.authorization)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		kind := answer.Header.Get("Content-Type")
		if answer.StatusCode != c.want ||
			(c.want != http.StatusOK) != (kind == "application/problem+json") {
			t.Errorf("%s with %q: %d %s, want %d",
				c.path, c.authorization, answer.StatusCode, kind, c.want)
		}
	}
}
