package tes_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/tes"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// scripted is an agent in memory, some of whose answers a test chooses.
type scripted struct {
	*apitest.Agent

	mu      sync.Mutex
	fail    error // of Submit, until it is taken back; guarded by mu
	submits []string
}

// Submit implements tes.Backend.
func (s *scripted) Submit(ctx context.Context, job grid.Job, key string) (grid.JobID, error) {
	s.mu.Lock()
	err := s.fail
	s.submits = append(s.submits, key)
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	return s.Agent.Submit(ctx, job, key)
}

func (s *scripted) failWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// desk is the operations over an agent in memory, within the bubble of a test.
type desk struct {
	agent *scripted
	cfg   tes.Config
	mux   chi.Router
	end   func() // stops following tasks, and returns when nothing of it is left
}

func newDesk(t *testing.T, change func(*tes.Config)) *desk {
	t.Helper()
	cfg := tes.Config{
		Dir: filepath.Join(t.TempDir(), "tasks"), Files: []string{t.TempDir()},
		Images: []string{"*"}, Name: "gateway", Domain: "home",
	}
	if change != nil {
		change(&cfg)
	}
	d := &desk{agent: &scripted{Agent: apitest.New(time.Now)}, cfg: cfg}
	d.start(t)
	return d
}

// start begins to follow tasks, as an agent that starts does.
func (d *desk) start(t *testing.T) {
	t.Helper()
	tasks := tes.New(d.agent, d.cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); tasks.Run(ctx) }()
	d.end = sync.OnceFunc(func() { cancel(); <-done })
	d.mux = chi.NewRouter()
	tasks.Mount(d.mux, func(w http.ResponseWriter, _ *http.Request, err error) {
		problem, ok := errors.AsType[*view.Problem](err)
		if !ok {
			problem = &view.Problem{Status: http.StatusInternalServerError, Detail: err.Error()}
		}
		w.WriteHeader(problem.Status)
		if err := json.NewEncoder(w).Encode(problem); err != nil {
			t.Error(err)
		}
	})
}

func (d *desk) ask(t *testing.T, method, path string, body any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, "/v1"+path, bytes.NewReader(text))
	d.mux.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

func (d *desk) create(t *testing.T, request any) string {
	t.Helper()
	status, text := d.ask(t, http.MethodPost, "/tasks", request)
	var made tes.TesCreateTaskResponse
	if err := json.Unmarshal(text, &made); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	return made.Id
}

// full lets everything happen that can, and returns a task in full.
func (d *desk) full(t *testing.T, id string) (task tes.TesTask) {
	t.Helper()
	synctest.Wait()
	status, text := d.ask(t, http.MethodGet, "/tasks/"+id+"?view=FULL", nil)
	if err := json.Unmarshal(text, &task); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	return task
}

func (d *desk) want(t *testing.T, id string, want tes.TesState) tes.TesTask {
	t.Helper()
	got := d.full(t, id)
	if *got.State != want {
		t.Errorf("the task is %s, want %s: %s", *got.State, want, dump(got))
	}
	return got
}

func (d *desk) cancel(t *testing.T, id string) {
	t.Helper()
	status, text := d.ask(t, http.MethodPost, "/tasks/"+id+":cancel", nil)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
}

// job is the newest job that the agent has got.
func (d *desk) job(t *testing.T) grid.JobID {
	t.Helper()
	synctest.Wait()
	jobs, err := d.agent.Jobs(t.Context(), view.JobQuery{Limit: 1})
	if err != nil || len(jobs) == 0 {
		t.Fatalf("no job: %v", err)
	}
	return jobs[0].ID
}

// phase moves the newest job's task on.
func (d *desk) phase(t *testing.T, phase view.Phase, change func(*view.TaskView)) {
	t.Helper()
	d.agent.Set(d.job(t), 0, func(v *view.TaskView) {
		v.Phase = phase
		if change != nil {
			change(v)
		}
	})
}

// archive is a tar of files, by name and text.
func archive(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: files[i], Size: int64(len(files[i+1])), Mode: 0o600,
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// done lets the newest job's task end well, with what it has left: path and content of each, as a
// directory where the path ends with a slash.
func (d *desk) done(t *testing.T, left ...string) {
	t.Helper()
	notes := d.agent.Store(archive(t, "0.code", "0\n", "0.stdout", "printed"), true)
	outputs := []view.OutputView{{Path: "/.tes/log", CID: notes.CID, Dir: true}}
	for i := 0; i+1 < len(left); i += 2 {
		name, dir := strings.CutSuffix(left[i], "/")
		ref := d.agent.Store([]byte(left[i+1]), dir)
		outputs = append(outputs, view.OutputView{Path: name, CID: ref.CID, Dir: dir})
	}
	d.phase(t, view.PhaseDone, func(v *view.TaskView) { v.Outputs = outputs })
}
