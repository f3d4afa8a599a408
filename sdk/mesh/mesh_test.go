package mesh_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/sdk/mesh"
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// open serves an agent of the API's tests, which keeps jobs and runs none, and opens the way to it.
// Real agents are in cmd/submit's script countwords.
func open(t *testing.T) *mesh.Mesh {
	t.Helper()
	const token = "0123456789abcdef"
	server, err := api.New(apitest.New(now), api.Options{Listen: "127.0.0.1:0", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err = server.Listen(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	m, err := mesh.OpenAt("http://"+server.Addr().String(), token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return m
}

// A job is submitted as its fields say, and what is left out has a default.
func TestAJobIsSubmitted(t *testing.T) {
	t.Parallel()
	m := open(t)
	text, err := m.PutText(t.Context(), "one two")
	if err != nil || text.Bytes != 7 {
		t.Fatalf("put: %+v, %v", text, err)
	}
	var seen grid.Job
	id, err := m.Submit(t.Context(), mesh.Job{
		Name: "count", Command: []string{"wc", "-w", "text"},
		Inputs:  map[string]mesh.Data{"text": text, "/data/again": text},
		Outputs: []string{"count", "/data/more"}, Env: map[string]string{"LANG": "C", "A": "b"},
		Count: 3, CPUs: .5, Change: func(j *grid.Job) { j.Retries, seen = 2, *j },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := grid.Job{
		Count: 3, TTL: time.Second,
		Spec: grid.Spec{
			Name: "count", Kind: grid.KindCommand, Args: []string{"wc", "-w", "text"},
			Env: []grid.EnvVar{{Name: "A", Value: "b"}, {Name: "LANG", Value: "C"}},
			Inputs: []grid.Input{
				{Path: "/data/again", CID: text.CID, Bytes: 7},
				{Path: "/work/text", CID: text.CID, Bytes: 7},
			},
			Outputs: []grid.Output{
				{Path: "/work/count", To: "count"}, {Path: "/data/more", To: "data/more"},
			},
			Need:    grid.Resources{MilliCPUs: 500, MemoryBytes: 128 << 20, DiskBytes: 64 << 20},
			Runtime: time.Minute, Weights: grid.DefaultWeights(),
		},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	status, err := m.Job(t.Context(), id)
	if err != nil || status.Name != "count" || status.Count != 3 {
		t.Errorf("status %+v, %v", status, err)
	}
	if tasks, err := m.Tasks(t.Context(), id); err != nil || len(tasks) != 3 {
		t.Errorf("%d tasks, %v", len(tasks), err)
	}
}

// What is stored comes back, and a file keeps its x bit.
func TestFilesThereAndBack(t *testing.T) {
	t.Parallel()
	m := open(t)
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	data, err := m.PutFile(t.Context(), program)
	if err != nil || !data.Executable {
		t.Fatalf("%+v, %v", data, err)
	}
	body, err := m.Get(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil || string(text) != "#!/bin/sh\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := m.PutFile(t.Context(), filepath.Dir(program)); !errors.Is(err, mesh.ErrInvalid) {
		t.Errorf("a directory: %v", err)
	}
}

// Waiting ends with the job, whatever its end, and with the context.
func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	m := open(t)
	id, err := m.Submit(t.Context(), mesh.Job{Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err = m.Wait(short, id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waited for a millisecond: %v", err)
	}
	if err = m.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	_, err = m.Wait(t.Context(), id)
	failed, is := errors.AsType[*mesh.Failed](err)
	if !is || !failed.Status.Phase.Ended() || !strings.Contains(err.Error(), string(id)) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err = m.Wait(t.Context(), "aaaaaaaaaaaaaaaa"); !errors.Is(err, mesh.ErrNotFound) {
		t.Errorf("no such job: %v", err)
	}
	if _, err := m.Output(t.Context(), id, 7, "x"); !errors.Is(err, mesh.ErrNotFound) {
		t.Errorf("no such task: %v", err)
	}
	if _, err := m.Output(t.Context(), id, 0, "x"); !errors.Is(err, mesh.ErrNotFound) {
		t.Errorf("no such output: %v", err)
	}
	if _, err := m.Submit(t.Context(), mesh.Job{}); !errors.Is(err, mesh.ErrInvalid) {
		t.Errorf("no command: %v", err)
	}
}
