package wasm_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// attempt is an attempt to run the guest, or another module, under the limits of
// those who ask for none.
func attempt(t testing.TB, module string, args ...string) lrm.Attempt {
	t.Helper()
	a := lrmtest.NewAttempt(t, t.TempDir(), 1, args...)
	a.Task.Kind, a.ModulePath, a.Limits = grid.KindWasm, module, lrm.Limits{}
	return a
}

func start(t testing.TB, a lrm.Attempt) lrm.Process {
	t.Helper()
	return lrmtest.Start(t, harness().New(t, a.RecordPath), a)
}

func run(t testing.TB, a lrm.Attempt) lrm.Result {
	t.Helper()
	return lrmtest.Wait(t, start(t, a))
}

// module assembles a module of type, function, memory, export and code sections.
func module(sections ...string) []byte {
	return []byte("\x00asm\x01\x00\x00\x00" + strings.Join(sections, ""))
}

const (
	typeSection   = "\x01\x04\x01\x60\x00\x00" // one type: no parameters, no results
	funcSection   = "\x03\x02\x01\x00"         // one function of it
	exportSection = "\x07\x0a\x01\x06_start\x00\x00"
	emptyCode     = "\x0a\x04\x01\x02\x00\x0b"
)

func TestHandMadeModules(t *testing.T) {
	tests := []struct {
		name   string
		module []byte
		cause  grid.ExitCause
		code   int
		text   string
	}{
		{"returns", module(typeSection, funcSection, exportSection, emptyCode), grid.CauseExited, 0, ""},
		{
			"traps", module(typeSection, funcSection, exportSection, "\x0a\x05\x01\x03\x00\x00\x0b"),
			grid.CauseSignal, 6, "unreachable",
		},
		{
			"recurses", module(typeSection, funcSection, exportSection, "\x0a\x06\x01\x04\x00\x10\x00\x0b"),
			grid.CauseSignal, 6, "stack overflow",
		},
		{
			"wants too much in one step",
			module(typeSection, funcSection, "\x05\x04\x01\x00\xd0\x0f", exportSection, emptyCode),
			grid.CauseMemory, 0, "64.0 MiB",
		},
		{"is a library", module(typeSection, funcSection, emptyCode), grid.CauseBadWork, 0, "_start"},
		{
			"imports what there is not",
			module(
				typeSection, "\x02\x0b\x01\x03env\x03foo\x00\x00", funcSection, exportSection, emptyCode,
			),
			grid.CauseBadWork, 0, "env",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "m.wasm")
			if err := os.WriteFile(path, tt.module, 0o600); err != nil {
				t.Fatal(err)
			}
			a := attempt(t, path)
			a.Limits.MemoryBytes = 64 << 20
			exit := run(t, a).Exit
			if exit.Cause != tt.cause || exit.Code != tt.code || !strings.Contains(exit.Text, tt.text) {
				t.Errorf(
					"exit = %v %d %q, want %v %d %q", exit.Cause, exit.Code, exit.Text, tt.cause, tt.code, tt.text,
				)
			}
		})
	}
}

// A table takes memory of the runtime, which the guest's own limit does not see.
func TestTableBomb(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux bounds the runner's own memory")
	}
	if raceDetector {
		t.Skip("the race detector ends a runner without memory in its own way, with status 66")
	}
	path := filepath.Join(t.TempDir(), "m.wasm")
	bomb := module(typeSection, funcSection, "\x04\x04\x01\x70\x00\x00", exportSection,
		"\x0a\x10\x01\x0e\x00\xd0\x70\x41\xff\xff\xff\xff\x00\xfc\x0f\x00\x1a\x0b")
	if err := os.WriteFile(path, bomb, 0o600); err != nil {
		t.Fatal(err)
	}
	if exit := run(t, attempt(t, path)).Exit; exit.Cause != grid.CauseMemory {
		t.Errorf("exit = %+v, want out of memory", exit)
	}
}

func TestGuestIsDeterministic(t *testing.T) {
	t.Parallel()
	ofTask := func(index uint32) string {
		a := attempt(t, guest, "random")
		a.Task.ID.Index = index
		return lrmtest.Text(t, run(t, a).Stdout)
	}
	first, again, other := ofTask(0), ofTask(0), ofTask(1)
	if first != again {
		t.Errorf("two attempts of a task differ: %q and %q", first, again)
	}
	if first == other {
		t.Errorf("two tasks draw the same numbers: %q", first)
	}
}

func TestGuestClock(t *testing.T) {
	t.Parallel()
	began := time.Now()
	got, want := lrmtest.Text(t, run(t, attempt(t, guest, "clock")).Stdout), "2022 true\n"
	if got != want {
		t.Errorf("clock = %q, want %q", got, want)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("a sleep of 200 ms took %s", took)
	}
}

func TestNothingOutsideDir(t *testing.T) {
	t.Parallel()
	a := attempt(t, guest, "put", "/x", "text")
	a.OutputPaths = []string{"/x"}
	run(t, a)
	entries, err := os.ReadDir(filepath.Dir(a.Dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(a.Dir) && e.Name() != filepath.Base(a.RecordPath) {
			t.Errorf("%s stands beside the attempt's directory and the record", e.Name())
		}
	}
	if err := os.RemoveAll(a.Dir); err != nil {
		t.Errorf("what the attempt left cannot be removed: %v", err)
	}
}

// BenchmarkStart is the time from Start to the end of a program that does
// nothing, compiled code cached: two processes and the program's own start.
func BenchmarkStart(b *testing.B) {
	small := filepath.Join(b.TempDir(), "m.wasm")
	if err := os.WriteFile(
		small, module(typeSection, funcSection, exportSection, emptyCode), 0o600,
	); err != nil {
		b.Fatal(err)
	}
	for name, path := range map[string]string{"small": small, "go": guest} {
		b.Run(name, func(b *testing.B) {
			run(b, attempt(b, path, "exit", "0")) // fills the cache
			for b.Loop() {
				if r := run(b, attempt(b, path, "exit", "0")); r.Exit.Cause != grid.CauseExited {
					b.Fatalf("exit = %+v", r.Exit)
				}
			}
		})
	}
}
