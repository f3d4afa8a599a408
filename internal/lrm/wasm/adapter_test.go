package wasm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/internal/lrm/wasm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	argAgent = "__agent"
	argWall  = "__wall"
)

// shared is the directory in which the tests of this binary keep the guest and
// compiled modules.
var shared, guest string

// coldRun holds the events of the first run of the guest, with an empty cache.
var coldRun []lrm.EventKind

// TestMain plays the agent's binary too: it runs again as supervisor and runner.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervise.Arg:
			os.Exit(supervise.Main())
		case wasm.ArgRun:
			os.Exit(wasm.RunnerMain())
		case argWall:
			if err := behindWall(os.Args[2], os.Args[3]); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			os.Exit(0)
		case argAgent:
			a, err := newAdapter(os.Args[2], os.Args[3])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(lrmtest.AgentMain(a))
		}
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lrm-wasm-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared, wasm.TestDir = dir, dir
	guest, err = lrmtest.BuildGuest(dir, "wasip1", "wasm")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := warmUp(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// warmUp has the guest compiled once, rather than by each parallel test.
func warmUp(dir string) error {
	a, err := newAdapter(filepath.Join(dir, "cache"), filepath.Join(dir, "runs"))
	if err != nil {
		return err
	}
	at := lrm.Attempt{
		ID:         grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: 1},
		Dir:        filepath.Join(dir, "warm"),
		ModulePath: guest, RecordPath: filepath.Join(dir, "runs"),
		LeaseUntil: lrm.BootNow().Add(time.Hour),
	}
	at.Task.Args = []string{"exit", "0"}
	if err = os.Mkdir(at.Dir, 0o700); err != nil {
		return err
	}
	p, err := a.Start(context.Background(), at)
	if err != nil {
		return err
	}
	r, err := p.Wait(context.Background())
	for e := range p.Events() {
		coldRun = append(coldRun, e.Kind)
	}
	if err == nil && r.Exit.Cause != grid.CauseExited {
		err = fmt.Errorf("warm up: %v: %s", r.Exit.Cause, r.Exit.Text)
	}
	return err
}

func newAdapter(cache, record string) (*wasm.Adapter, error) {
	config, err := wasm.DefaultConfig(filepath.Dir(record))
	if err != nil {
		return nil, err
	}
	config.CacheDir, config.RecordPath = cache, record
	return wasm.New(config)
}

func harness() lrmtest.Harness {
	cache := filepath.Join(shared, "cache")
	return lrmtest.Harness{
		Kind: grid.KindWasm, Module: guest,
		New: func(t testing.TB, record string) lrm.Adapter {
			t.Helper()
			a, err := newAdapter(cache, record)
			if err != nil {
				t.Fatal(err)
			}
			return a
		},
		Agent: func(record string) *exec.Cmd { return exec.Command(os.Args[0], argAgent, cache, record) },
	}
}

func TestConformance(t *testing.T) { lrmtest.Run(t, harness()) }
