package tes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/scripttest"
	"github.com/mrsmesh/mrsmesh/internal/tes"
)

// live is a real agent whose tasks are asked for over HTTP, and the directory that they may use.
type live struct {
	mesh   *localmesh.Mesh
	client *http.Client
	files  string
	spec   *openapi3.T

	once    sync.Once
	wholeID string // set by once
}

// patience bounds the time of a task that has nothing to wait for.
const patience = 30 * time.Second

// startAgent starts an agent that runs commands, for images whose names begin with "any".
func startAgent(t *testing.T) *live {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an agent")
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed")
	}
	spec, err := openapi3.NewLoader().LoadFromFile("tes-1.1.yaml")
	if err != nil {
		t.Fatal(err)
	}
	place, err := localmesh.MakePlace("mrs-tes-")
	if err != nil {
		t.Fatal(err)
	}
	files := place.File("files")
	if err = os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	binary, err := place.Build(t.Context(), "siteagent", "cmd/siteagent", nil)
	if err != nil {
		t.Fatal(err)
	}
	gift := localmesh.Gift{Name: "gateway", Cores: 32, GFLOPS: 64, Memory: 64 << 10}
	mesh := localmesh.New(place, binary, "home", []localmesh.Gift{gift}, func(c *config.Agent) {
		c.Kinds, c.Ceilings.DiskBytes = config.Default("", os.LookupEnv).Kinds, 1<<40
		c.Kinds = append(c.Kinds, c.Kinds[0]+1) // commands as well
		c.Commands = scripttest.Commands()
		c.TES.Files, c.TES.Images = []string{files}, []string{"any*"}
		c.TES.Mounts = []string{filepath.Join(files, "mounts")}
	})
	l := &live{mesh: mesh, files: files, spec: spec}
	t.Cleanup(func() {
		if err := mesh.Stop(context.Background()); err != nil {
			t.Error(mesh.Explain(err))
		}
		if err := place.Remove(); err != nil {
			t.Error(err)
		}
	})
	if err := mesh.Start(t.Context(), localmesh.NewScreen(io.Discard, false)); err != nil {
		t.Fatal(mesh.Explain(err))
	}
	l.client = clientOf(mesh.Submitter().Config.API.Socket)
	return l
}

// clientOf speaks HTTP to a socket.
func clientOf(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
}

const base = "/ga4gh/tes/v1"

// ask sends a request, whose body may be nil, and returns the answer's status and body.
func (l *live) ask(t *testing.T, method, path string, body []byte, header ...string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(
		t.Context(), method, "http://agent"+path, bytes.NewReader(body),
	)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := l.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := "application/json"
	if answer.StatusCode >= http.StatusBadRequest {
		want = "application/problem+json"
	}
	if got := answer.Header.Get("Content-Type"); got != want {
		t.Errorf("%s %s: content type %q, want %q: %s", method, path, got, want, text)
	}
	return answer.StatusCode, text
}

// get asks for a path and wants an answer of a schema of the specification without further keys.
func (l *live) get(t *testing.T, path, schema string, into any) {
	t.Helper()
	status, text := l.ask(t, http.MethodGet, path, nil)
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, status, text)
	}
	l.strict(t, path, schema, text, into)
}

// strict holds an answer against a schema, and reads it.
func (l *live) strict(t *testing.T, path, schema string, text []byte, into any) {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v: %s", path, err, text)
	}
	if err := l.spec.Components.Schemas[schema].Value.VisitJSON(value); err != nil {
		t.Errorf("%s is no %s: %v", path, schema, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v: %s", path, err, text)
	}
}

// idle is a task that no site can run, which costs nothing.
func idle(more ...any) task {
	return runs("true", append([]any{"resources", task{"cpu_cores": 1000}}, more...)...)
}

// post creates a task and returns the status and the answer.
func (l *live) post(t *testing.T, request any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return l.ask(t, http.MethodPost, base+"/tasks", text)
}

// create wants a task to be taken.
func (l *live) create(t *testing.T, request any) string {
	t.Helper()
	status, text := l.post(t, request)
	if status != http.StatusOK {
		t.Fatalf("create: %d %s", status, text)
	}
	var made tes.TesCreateTaskResponse
	l.strict(t, "the answer to create", "tesCreateTaskResponse", text, &made)
	return made.Id
}

// full is a task in the view FULL.
func (l *live) full(t *testing.T, id string) (task tes.TesTask) {
	t.Helper()
	l.get(t, base+"/tasks/"+id+"?view=FULL", "tesTask", &task)
	return task
}

// state is a task's state in the view MINIMAL, which has nothing but it and the ID.
func (l *live) state(t *testing.T, id string) tes.TesState {
	t.Helper()
	status, text := l.ask(t, http.MethodGet, base+"/tasks/"+id, nil)
	var m map[string]string
	if err := json.Unmarshal(text, &m); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	if len(m) != 2 || m["id"] != id {
		t.Errorf("MINIMAL is %s, want id and state alone", text)
	}
	return tes.TesState(m["state"])
}

// await waits until a task is in one of some states, and returns it in full.
func (l *live) await(t *testing.T, id string, states ...tes.TesState) tes.TesTask {
	t.Helper()
	err := localmesh.Await(t.Context(), patience, fmt.Sprint("task ", id, " to be ", states),
		func(context.Context) (bool, error) {
			now := l.state(t, id)
			if slices.Contains(states, now) {
				return true, nil
			}
			if now == tes.COMPLETE || strings.HasSuffix(string(now), "ERROR") {
				return false, fmt.Errorf("it is %s: %s", now, dump(l.full(t, id)))
			}
			return false, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return l.full(t, id)
}

// put writes a file below the directory that tasks may use, and returns its address.
func (l *live) put(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(l.files, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return l.url(name)
}

func (l *live) url(name string) string { return "file://" + filepath.Join(l.files, name) }

// read reads a file that a task has written.
func (l *live) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.files, name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
