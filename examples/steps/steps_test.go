package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/internal/lrm/wasm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestMain plays the agent's binary too: it runs again as supervisor and runner.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervise.Arg:
			os.Exit(supervise.Main())
		case wasm.ArgRun:
			os.Exit(wasm.RunnerMain())
		}
	}
	os.Exit(m.Run())
}

// "There are 168 primes below 1,000, 78,498 below 1,000,000 and 664,579 below 10,000,000."
func TestPrimesAreCounted(t *testing.T) {
	for limit, want := range map[int]int{
		0: 0, 2: 0, 3: 1, 1000: 168, 1_000_000: 78_498, 10_000_000: 664_579,
	} {
		s := &sieve{limit: limit}
		last := int32(1)
		for n := s.advance(); n != 0; n = s.advance() {
			if n < last || n > 100 {
				t.Errorf("%d %% after %d %%", n, last)
			}
			last = n
		}
		if s.count != want {
			t.Errorf("%d primes below %d, want %d", s.count, limit, want)
		}
	}
}

// waited bounds what is waited for on a busy machine.
const waited = 2 * time.Minute

// attempt is one to run the module, which goes on from a state if there is one.
func attempt(t *testing.T, module, state string, token grid.Token) lrm.Attempt {
	t.Helper()
	dir := t.TempDir()
	a := lrm.Attempt{
		ID:  grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: token},
		Dir: filepath.Join(dir, "attempt"), ModulePath: module, StatePath: state,
		RecordPath: filepath.Join(dir, "runs"), LeaseUntil: lrm.BootNow().Add(time.Hour),
	}
	a.Task = grid.Task{ID: a.ID.Task, Kind: grid.KindWasm, Args: []string{"30000000"}}
	if err := os.Mkdir(a.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return a
}

// The module is built as the documentation says, is stopped in the middle, and goes on from the
// state that it knows nothing of.
func TestItGoesOnAsAModule(t *testing.T) {
	if testing.Short() {
		t.Skip("it is compiled, and counts for some seconds")
	}
	dir := t.TempDir()
	module := filepath.Join(dir, "primes.wasm")
	build := exec.CommandContext(t.Context(),
		"go", "build", "-buildmode=c-shared", "-o", module, ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	config, err := wasm.DefaultConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := wasm.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waited)
	defer cancel()
	first := attempt(t, module, "", 1)
	p, err := adapter.Start(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	saved(ctx, t, first, state)
	if err = p.Stop("it moves"); err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait(ctx)
	if err != nil || r.Exit.Cause != grid.CauseStopped {
		t.Fatalf("it ended before it was stopped: %+v, %v", r.Exit, err)
	}
	second := attempt(t, module, state, 2)
	if p, err = adapter.Start(ctx, second); err != nil {
		t.Fatal(err)
	}
	r, err = p.Wait(ctx)
	if err != nil || r.Exit.Cause != grid.CauseExited || r.Exit.Code != 0 {
		t.Fatalf("%+v, %v", r.Exit, err)
	}
	text, err := os.ReadFile(r.Stdout.HostPath)
	if want := "1857859 primes below 30000000\n"; err != nil || string(text) != want {
		t.Errorf("it has printed %q, %v, want %q", text, err, want)
	}
}

// saved waits for a state in which something is done, and copies it.
func saved(ctx context.Context, t *testing.T, a lrm.Attempt, to string) {
	t.Helper()
	for states := a.StateDir(); ; time.Sleep(10 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("no state: ", states.Problem())
		}
		if err := states.Ask(true); err != nil || states.Percent() < 2 {
			if states.Look() != nil {
				_ = states.Ask(false) // the next wish is another one
			}
			continue
		}
		f, err := states.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var all bytes.Buffer
		if _, err = all.ReadFrom(f); err == nil {
			err = os.WriteFile(to, all.Bytes(), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(all.String(), "mrsstep1") {
			t.Error("this is no state of a module of steps")
		}
		return
	}
}
