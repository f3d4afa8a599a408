package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// TestARepeatedRequestMakesNoSecondJob posts the same and another job under one key, and
// under keys that cannot be one.
func TestARepeatedRequestMakesNoSecondJob(t *testing.T) {
	t.Parallel()
	agent := apitest.New(clock)
	socket, _ := serve(t, agent, nil)
	client := overSocket(socket)
	other := sampleJob()
	other.Spec.Args = []string{"other"}
	post := func(body, key string) (int, string) {
		t.Helper()
		answer, text := do(t, client, ask{
			method: http.MethodPost, url: "http://localhost/api/v1/jobs", kind: "application/json",
			body: body, header: map[string]string{"Idempotency-Key": key},
		})
		return answer.StatusCode, string(text)
	}
	same, another := marshal(t, view.FromJob(sampleJob())), marshal(t, view.FromJob(other))
	code, first := post(same, "a key")
	if code != http.StatusCreated {
		t.Fatalf("POST /jobs: %d %s", code, first)
	}
	if code, again := post(same, "a key"); code != http.StatusCreated || again != first {
		t.Errorf("the same request again: %d %s, want 201 %s", code, again, first)
	}
	if code, text := post(same, "another key"); code != http.StatusCreated || text == first {
		t.Errorf("the same job under another key: %d %s, want a second job", code, text)
	}
	if code, text := post(another, "a key"); code != http.StatusConflict {
		t.Errorf("another job under the key: %d %s, want 409", code, text)
	}
	for _, key := range []string{strings.Repeat("x", 256), "schlüssel"} {
		code, text := post(same, key)
		var problem view.Problem
		if err := json.Unmarshal([]byte(text), &problem); err != nil || code != http.StatusBadRequest ||
			!strings.Contains(problem.Detail, "Idempotency-Key") {
			t.Errorf("key %.10q: %d %s, want 400 that names the header", key, code, text)
		}
	}
}
