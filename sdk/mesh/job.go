package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Home is the directory in which commands start. Paths that do not begin with / are below it.
const Home = "/work"

// What a Job needs whose fields are 0.
const (
	usualCPUs    = 1
	usualMemory  = 128 << 20 // bytes
	usualDisk    = 64 << 20  // bytes
	usualRuntime = time.Minute
	answersIn    = time.Second // how long answers of sites are awaited
)

// Job is a program and what it needs. A field that is 0 or empty means what its comment says.
type Job struct {
	Name    string            // for people
	Command []string          // the program and its arguments; of a module its arguments
	Module  Data              // a WASM module that is run instead of a program
	Inputs  map[string]Data   // by their paths
	Outputs []string          // paths of what is kept
	Env     map[string]string // variables
	Count   uint32            // tasks, 1; {{index}} in Command and paths is the number of each

	CPUs    float64       // 1
	Memory  int64         // bytes, 128 MiB
	Disk    int64         // bytes, 64 MiB
	Runtime time.Duration // estimate, a minute

	// Change sets what has no field here, such as a deadline, before the job is submitted.
	Change func(*grid.Job)
}

// grid fills in what is left out.
func (j Job) grid() grid.Job {
	spec := grid.Spec{
		Name: j.Name, Kind: grid.KindCommand, Args: j.Command,
		Need: grid.Resources{
			MilliCPUs:   int64(math.Round(cmp.Or(j.CPUs, usualCPUs) * 1000)),
			MemoryBytes: cmp.Or(j.Memory, usualMemory),
			DiskBytes:   cmp.Or(j.Disk, usualDisk),
		},
		Runtime: cmp.Or(j.Runtime, usualRuntime),
		Weights: grid.DefaultWeights(),
	}
	if j.Module.CID != "" {
		spec.Kind, spec.Module = grid.KindWasm, input("/module.wasm", j.Module)
	}
	for _, at := range slices.Sorted(maps.Keys(j.Inputs)) {
		spec.Inputs = append(spec.Inputs, input(place(at), j.Inputs[at]))
	}
	for _, at := range j.Outputs {
		spec.Outputs = append(spec.Outputs, grid.Output{
			Path: place(at), To: strings.TrimLeft(at, "/"),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		spec.Env = append(spec.Env, grid.EnvVar{Name: name, Value: j.Env[name]})
	}
	job := grid.Job{Spec: spec, Count: max(j.Count, 1), TTL: answersIn}
	if j.Change != nil {
		j.Change(&job)
	}
	return job
}

func input(at string, data Data) grid.Input {
	return grid.Input{Path: at, CID: data.CID, Bytes: data.Bytes, Dir: data.Dir}
}

// place is a path inside the sandbox.
func place(at string) string {
	if path.IsAbs(at) {
		return path.Clean(at)
	}
	return path.Join(Home, at)
}

// Submit hands a job to the agent. When the connection breaks before the answer is here, the
// request is repeated, and makes no second job.
func (m *Mesh) Submit(ctx context.Context, job Job) (ID, error) {
	return m.client.Submit(ctx, job.grid())
}

// Job tells how a job is.
func (m *Mesh) Job(ctx context.Context, id ID) (Status, error) {
	detail, err := m.client.Job(ctx, id)
	return detail.Status, err
}

// Tasks are the tasks of a job, by their index.
func (m *Mesh) Tasks(ctx context.Context, id ID) ([]Task, error) {
	return m.client.AllTasks(ctx, id)
}

// Cancel ends a job.
func (m *Mesh) Cancel(ctx context.Context, id ID) error { return m.client.Cancel(ctx, id) }

// Failed is a job that ended otherwise than done.
type Failed struct{ Status Status }

func (f *Failed) Error() string {
	id := f.Status.ID
	return fmt.Sprintf("job %s: %s; submit why %s says more", id, f.Status.Phase, id)
}

// How a job is waited for: looks at it are as far apart as a pause that grows, and the agent may be
// away for patience.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
	patience   = time.Minute
)

// Wait waits for a job's end, also while the agent is restarted. The error is *Failed if the job is
// not done.
func (m *Mesh) Wait(ctx context.Context, id ID) (Status, error) {
	answered := time.Now()
	for pause := firstPause; ; pause = min(pause*3/2, lastPause) {
		status, err := m.Job(ctx, id)
		switch {
		case err == nil && status.Phase == view.PhaseDone:
			return status, nil
		case err == nil && status.Phase.Ended():
			return status, &Failed{Status: status}
		case err == nil:
			answered = time.Now()
		case !errors.Is(err, ErrUnreachable) || time.Since(answered) > patience:
			return status, fmt.Errorf("wait for job %s: %w", id, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return status, fmt.Errorf("wait for job %s: %w", id, ctx.Err())
		}
	}
}

// Log reads what a task of a job has printed so far, stdout or stderr. The caller closes it.
func (m *Mesh) Log(ctx context.Context, id ID, index uint32, stream string) (io.ReadCloser, error) {
	return m.client.TaskLog(ctx, grid.TaskID{Job: id, Index: index}, view.LogQuery{Stream: stream})
}

// Output opens what a task of a job has left at a path. The caller closes it.
func (m *Mesh) Output(ctx context.Context, id ID, index uint32, at string) (io.ReadCloser, error) {
	task, err := m.client.Tasks(ctx, id, index, 1)
	if err != nil {
		return nil, err
	}
	if len(task) == 0 {
		return nil, fmt.Errorf("output: %w: job %s has no task %d", ErrNotFound, id, index)
	}
	for _, left := range task[0].Outputs {
		if left.Path == place(at) {
			_, body, err := m.client.GetOutput(ctx, task[0].ID, left)
			return body, err
		}
	}
	return nil, fmt.Errorf("output: %w: job %s.%d has left no %s", ErrNotFound, id, index, at)
}
