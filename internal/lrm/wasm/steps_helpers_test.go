package wasm

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestDir keeps what the tests of this binary share. TestMain sets it.
var TestDir string

// stepsGuest is the guest of steps, built once.
var stepsGuest = sync.OnceValues(func() (string, error) {
	return buildGo("steps.wasm", "./testdata/steps", "-buildmode=c-shared", "wasip1", "wasm")
})

func buildGo(name, source, mode, goos, goarch string) (string, error) {
	path := filepath.Join(TestDir, name)
	build := exec.Command("go", "build", "-trimpath", mode, "-o", path, source)
	build.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(errors.New(string(out)), err)
	}
	return path, nil
}

func stepsModule(t testing.TB) string {
	t.Helper()
	path, err := stepsGuest()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// stepsJob is the runner's order for a module of steps in a directory of its own, which goes on
// from a state unless that is nil.
func stepsJob(t testing.TB, module string, state []byte, args ...string) job {
	t.Helper()
	at := lrm.Attempt{
		Dir: t.TempDir(), ModulePath: module, OutputPaths: []string{"/out/x"},
		Task: grid.Task{
			ID: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: 7}, Kind: grid.KindWasm, Args: args,
		},
	}
	if state != nil {
		at.StatePath = filepath.Join(at.Dir, "laid-out")
		if err := os.WriteFile(at.StatePath, state, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := lrm.PrepareDir(at); err != nil {
		t.Fatal(err)
	}
	return job{
		Task: at.Task, Variables: at.Variables(), Module: module, WorkDir: at.WorkDir(),
		CacheDir: filepath.Join(TestDir, "cache"), MemoryBytes: 1 << 30, DiskBytes: 256 << 20,
		OutputBytes: 1 << 20, Saves: true,
	}
}

// inProcess begins a module of steps in this process.
func inProcess(t testing.TB, work job) (s *stepper, stdout, stderr *bytes.Buffer) {
	t.Helper()
	s, stdout, stderr = prepared(t, work)
	ctx := experimental.WithMemoryAllocator(t.Context(), s.guest.memory)
	if end := s.begin(ctx); end != nil {
		t.Fatalf("it ends before its first step: %+v", end)
	}
	return s, stdout, stderr
}

func prepared(t testing.TB, work job) (s *stepper, stdout, stderr *bytes.Buffer) {
	t.Helper()
	module, err := os.ReadFile(work.Module)
	if err != nil {
		t.Fatal(err)
	}
	j, err := newJail(work.WorkDir, work.Inputs, work.DiskBytes)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(work.CacheDir)
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(work, j)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	g.stdout, g.stderr, g.announce = stdout, stderr, func(bool) error { return nil }
	p, err := g.prepare(t.Context(), cache, module)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.rt.Close(t.Context()) })
	return newStepper(g, p), stdout, stderr
}

// steps does so many, or all that there are.
func (s *stepper) goOn(t testing.TB, n uint64) (end *supervise.Report) {
	t.Helper()
	for end == nil && s.steps < n {
		end = s.once(t.Context())
	}
	return end
}

// saved is the state of now.
func (s *stepper) saved(t testing.TB) []byte {
	t.Helper()
	if problem := newKeeper(s).save(); problem != "" {
		t.Fatal("it cannot be saved: ", problem)
	}
	return stateOf(t, s.guest.work)
}

func stateOf(t testing.TB, work job) []byte {
	t.Helper()
	all, err := os.ReadFile(filepath.Join(work.WorkDir, filepath.FromSlash(lrm.StateFile())))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// describeState reads how far a state is.
func describeState(t testing.TB, state []byte) description {
	t.Helper()
	d, err := readDescription(bytes.NewReader(state), int64(len(state)))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// child is a runner's process.
type child struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	report         *os.File
}

// startChild starts a runner's process for a job, by a command.
func startChild(t testing.TB, work job, command ...string) *child {
	t.Helper()
	text, err := json.Marshal(work)
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{report: read}
	c.cmd = exec.Command(command[0], command[1:]...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = bytes.NewReader(text), &c.stdout, &c.stderr
	c.cmd.ExtraFiles, c.cmd.Dir = []*os.File{write}, work.WorkDir
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		read.Close()
	})
	return c
}

// kill ends it by SIGKILL.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// wait gives its report.
func (c *child) wait(t testing.TB) supervise.Report {
	t.Helper()
	var report supervise.Report
	for from := json.NewDecoder(c.report); ; {
		var line struct {
			Preparing *bool
			supervise.Report
		}
		if err := from.Decode(&line); err != nil {
			t.Fatalf("no report: %v: %s", err, c.stderr.String())
		}
		if line.Preparing == nil {
			report = line.Report
			break
		}
	}
	_ = c.cmd.Wait()
	return report
}

// childPatience bounds what a child is waited for, on a busy machine and emulated.
const childPatience = time.Minute

// savedBy asks a child for a state, as the agent does, and waits for it.
func savedBy(t testing.TB, work job) []byte {
	t.Helper()
	states := lrm.StateDirIn(work.WorkDir)
	before := states.Look()
	if err := states.Ask(true); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(childPatience); lrm.SameState(states.Look(), before); {
		if time.Now().After(end) {
			t.Fatal("no state was saved: ", states.Problem())
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := states.Ask(false); err != nil {
		t.Fatal(err)
	}
	return stateOf(t, work)
}
