package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Config says where the adapter finds and keeps things.
type Config struct {
	// Supervisor is the command whose body is supervise.Main, usually the agent's
	// own executable with a hidden argument.
	Supervisor []string
	// Runner is the command whose body is RunnerMain, in the same way.
	Runner []string
	// CacheDir keeps compiled modules, shared by all attempts. Programs never see
	// it. It may be emptied at any time while no attempt starts.
	CacheDir string
	// CacheBytes bounds the cache; the oldest modules go when an adapter is made. 0
	// means 1 GiB.
	CacheBytes int64
	// Idle gives programs the processor only when nobody else wants it.
	Idle bool
	// Interpret runs programs by the interpreter also where there is a compiler, about 50 times
	// slower. What they compute is the same.
	Interpret bool
	// RecordPath is the run record of earlier agents, the same file as in Attempts.
	RecordPath string
}

// ArgRun is the hidden argument with which an executable runs itself again as a
// runner: main calls RunnerMain then, before anything else.
const ArgRun = "__run-wasm"

// DefaultConfig runs this executable again, with supervise.Arg or ArgRun as its
// only argument. Cache and record stand in dir.
func DefaultConfig(dir string) (Config, error) {
	self, err := os.Executable()
	if err != nil {
		return Config{}, fmt.Errorf("find own executable: %w", err)
	}
	return Config{
		Supervisor: []string{self, supervise.Arg}, Runner: []string{self, ArgRun},
		CacheDir: filepath.Join(dir, "wasm-cache"), RecordPath: filepath.Join(dir, "runs.jsonl"),
	}, nil
}

// Validate reports the first field that is missing.
func (c Config) Validate() error {
	switch {
	case len(c.Supervisor) == 0 || len(c.Runner) == 0:
		return errors.New("wasm: supervisor and runner: want commands")
	case c.CacheBytes < 0:
		return errors.New("wasm: cache bytes: want at least 0")
	case !filepath.IsAbs(c.CacheDir) || !filepath.IsAbs(c.RecordPath):
		return errors.New("wasm: cache dir and record path: want absolute paths")
	default:
		return nil
	}
}

// Adapter implements lrm.Adapter.
type Adapter struct {
	config      Config
	supervisors *supervise.Pool
}

// New makes an adapter and its cache directory, or prunes the one there is.
func New(config Config) (*Adapter, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(config.CacheDir, 0o700); err != nil {
		return nil, fmt.Errorf("make wasm cache: %w", err)
	}
	limit := config.CacheBytes
	if limit == 0 {
		limit = defaultCacheBytes
	}
	if err := pruneCache(config.CacheDir, limit); err != nil {
		return nil, err
	}
	return &Adapter{config: config, supervisors: supervise.NewPool(config.Supervisor).Hasten()}, nil
}

// Probe implements lrm.Adapter.
func (a *Adapter) Probe(context.Context) lrm.Support {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" || runtime.GOOS == "js" {
		return lrm.Support{Notes: []string{supervise.ErrUnsupported.Error()}}
	}
	support := lrm.Support{
		Kinds: []grid.WorkKind{grid.KindWasm}, Freeze: true, Notes: wallNotes(), Walls: walls(),
	}
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		support.Notes = append(
			support.Notes,
			"no compiler for "+runtime.GOARCH+": programs are interpreted, about 50 times slower",
		)
	}
	return support
}

// job is the runner's order.
type job struct {
	Task        grid.Task
	Variables   [][2]string // that the sandbox adds to the task's own
	Module      string
	Inputs      []lrm.Bind
	WorkDir     string
	CacheDir    string
	MemoryBytes int64
	DiskBytes   int64
	OutputBytes int64 // of each stream
	Saves       bool  // states of a module of steps are saved
	Interpret   bool
}

// Start implements lrm.Adapter.
func (a *Adapter) Start(ctx context.Context, at lrm.Attempt) (lrm.Process, error) {
	if err := at.Validate(); err != nil {
		return nil, err
	}
	if err := lrm.PrepareDir(at); err != nil {
		return nil, fmt.Errorf("prepare sandbox: %w", err)
	}
	limits := at.Limits.OrDefault()
	work := job{
		Task: at.Task, Variables: at.Variables(), Module: at.ModulePath, Inputs: at.Inputs,
		WorkDir:     at.WorkDir(),
		CacheDir:    a.config.CacheDir,
		MemoryBytes: limits.MemoryBytes, DiskBytes: limits.DiskBytes,
		OutputBytes: limits.OutputBytes, Saves: lrm.CanSave(at.Task), Interpret: a.config.Interpret,
	}
	stdin, err := json.Marshal(work)
	if err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	spec := supervise.Spec{
		Attempt: at.ID, Runner: a.config.Runner, Env: runnerEnv(at.Task), Stdin: stdin, Dir: at.WorkDir(),
		Stdout: at.StdoutPath(), Stderr: at.StderrPath(), Limits: limits,
		LeaseUntil: at.LeaseUntil, RecordPath: at.RecordPath, Reports: true,
		Idle: a.config.Idle, MeterCPU: true, Farewell: at.Farewell,
	}
	return a.supervisors.Start(ctx, at.Dir, spec, supervise.Hooks{
		Finish: func(end supervise.Ending, _ bool) lrm.Result { return finish(at, end) },
	})
}

// runnerEnv holds nothing of the agent's environment. The Go scheduler gets as
// many threads as the task has cores, and one for the runner's own work.
func runnerEnv(task grid.Task) []string {
	const milli = 1000
	cores := max((task.Need.MilliCPUs+milli-1)/milli, 1)
	env := []string{"GOMAXPROCS=" + strconv.FormatInt(min(cores+1, int64(runtime.NumCPU())+1), 10)}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return env
}

// outOfMemory is printed by the Go runtime when it cannot go on.
const outOfMemory = "fatal error: runtime: out of memory"

// finish makes the result of an attempt's end.
func finish(at lrm.Attempt, end supervise.Ending) lrm.Result {
	if end.Broken && mentions(at.StderrPath(), outOfMemory) {
		// Only a module that is made so gets here: with tables or functions that
		// take more than all its memory. Another site would fare no better.
		end.Cause, end.Text = grid.CauseMemory, "the runtime itself ran out of memory over this module"
	}
	exit, outputs := lrm.EndWith(at, grid.Exit{
		Cause: end.Cause, Code: end.Code, Text: end.Text, Wall: end.Wall,
	})
	return lrm.Result{
		Exit: exit, Outputs: outputs, Stdout: lrm.StreamFile(at.StdoutPath()),
		Stderr: lrm.StreamFile(at.StderrPath()),
	}
}

// mentions reports whether a file that Limits bound holds the words.
func mentions(path, words string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(text), words)
}

// Recover implements lrm.Adapter.
func (a *Adapter) Recover(ctx context.Context) error {
	return supervise.Recover(ctx, a.config.RecordPath)
}
