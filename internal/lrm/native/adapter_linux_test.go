package native_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	argAgent  = "__agent"
	guestPath = "/guest"
)

// The ways in which commands are enclosed: the sandbox, and whether with the
// control groups that this machine has or with what every machine has.
const (
	withBubblewrap  = "bubblewrap"
	bubblewrapAlone = "bubblewrap without groups"
	withGVisor      = "gvisor"
	gvisorAlone     = "gvisor without groups"
	withoutGroups   = " without groups"
)

func ways() []string { return []string{withBubblewrap, bubblewrapAlone, withGVisor, gvisorAlone} }

func bubblewrapWays() []string { return []string{withBubblewrap, bubblewrapAlone} }

// guest is the suite's program, built once for all tests of this binary.
var guest string

// TestMain plays the agent's binary too: it runs again as supervisor and runner.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervise.Arg:
			os.Exit(supervise.Main())
		case native.ArgRun:
			os.Exit(native.RunnerMain())
		case scratch.Arg:
			os.Exit(scratch.Trial(os.Args[2]))
		case argAgent:
			_ = enter()
			a, err := newAdapter(context.Background(), os.Args[2], os.Args[3])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(lrmtest.AgentMain(a))
		}
	}
	_ = enter() // where it cannot, commands are watched by looking
	os.Exit(runTests(m))
}

// enter goes where file systems can be mounted.
func enter() error {
	return scratch.Enter(context.Background(), os.TempDir(), []string{os.Args[0], scratch.Arg})
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lrm-native-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if guest, err = lrmtest.BuildGuest(dir, runtime.GOOS, runtime.GOARCH); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func newAdapter(ctx context.Context, record, way string) (*native.Adapter, error) {
	config, err := native.DefaultConfig(filepath.Dir(record))
	if err != nil {
		return nil, err
	}
	config.RecordPath, config.Processes = record, 64
	config.Sandbox, config.NoGroups = strings.CutSuffix(way, withoutGroups)
	config.Unbounded = config.NoGroups || scratch.Works(filepath.Dir(record)) != nil
	return native.New(ctx, config)
}

// need skips the test where commands cannot be run.
func need(t testing.TB, way string) *native.Adapter {
	t.Helper()
	a, err := newAdapter(t.Context(), filepath.Join(t.TempDir(), "runs.jsonl"), way)
	if err != nil {
		t.Fatal(err)
	}
	if s := a.Probe(t.Context()); len(s.Kinds) == 0 {
		t.Skip(strings.Join(s.Notes, "; "))
	}
	return a
}

// here is bubblewrap with control groups, or without where this user may make none, for tests of
// walls that are the same in both.
func here(t testing.TB) (way string, adapter *native.Adapter) {
	t.Helper()
	a, err := newAdapter(t.Context(), filepath.Join(t.TempDir(), "runs.jsonl"), withBubblewrap)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Probe(t.Context()).Kinds) > 0 {
		return withBubblewrap, a
	}
	return bubblewrapAlone, need(t, bubblewrapAlone)
}

func harness(way string) lrmtest.Harness {
	return lrmtest.Harness{
		Kind: grid.KindCommand, Prefix: []string{guestPath}, Home: "/work", System: true,
		Inputs: []lrm.Bind{{SandboxPath: guestPath, HostPath: guest}},
		New: func(t testing.TB, record string) lrm.Adapter {
			t.Helper()
			a, err := newAdapter(context.Background(), record, way)
			if err != nil {
				t.Fatal(err)
			}
			return a
		},
		OwnKernel: strings.HasPrefix(way, native.GVisor),
		Left:      native.GroupsLeft,
		Own:       []string{"etc", "warm"},
		Agent: func(record string) *exec.Cmd {
			return exec.Command(os.Args[0], argAgent, record, way)
		},
	}
}

func TestConformance(t *testing.T) {
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			need(t, way)
			lrmtest.Run(t, harness(way))
		})
	}
	// What the site has starts without a shell that bounds it.
	for _, way := range bubblewrapWays() {
		t.Run(way+" by a program of the system", func(t *testing.T) {
			need(t, way)
			h := harness(way)
			h.Prefix = append([]string{"/usr/bin/env"}, h.Prefix...)
			lrmtest.Run(t, h)
		})
		t.Run(way+" in series", func(t *testing.T) {
			need(t, way)
			h := harness(way)
			h.Series = "suite"
			lrmtest.Run(t, h)
		})
	}
}

func attempt(t testing.TB, args ...string) lrm.Attempt {
	t.Helper()
	a := lrmtest.NewAttempt(t, t.TempDir(), 1, args...)
	a.Task.Kind, a.Limits.DiskBytes = grid.KindCommand, 8<<20
	return a
}

// BenchmarkStart measures the start and end of the smallest command.
func BenchmarkStart(b *testing.B) {
	for _, way := range ways() {
		b.Run(way, func(b *testing.B) {
			adapter := need(b, way)
			for b.Loop() {
				r := lrmtest.Wait(b, lrmtest.Start(b, adapter, attempt(b, "true")))
				if r.Exit.Cause != grid.CauseExited || r.Exit.Code != 0 {
					b.Fatalf("exit = %+v", r.Exit)
				}
			}
		})
	}
}
