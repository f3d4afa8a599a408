package agent

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/data/intake"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// intakeBench is a bench whose agent takes in large content by a script, to which the command of
// the process is passed; times counts how often one was started.
func intakeBench(t *testing.T, script string) (b *bench, times func() int) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil || intake.Command("x") == nil {
		t.Skipf("on %s the agent takes in all content itself, or there is no shell: %v",
			runtime.GOOS, err)
	}
	marks := filepath.Join(t.TempDir(), "marks")
	b = newBench(t, fake.New(fake.Config{}))
	command := []string{"sh", "-c", "echo x >>'" + marks + "'; " + script, "sh"}
	b.intake = intake.New(append(command, intake.Command(os.Args[0])...))
	return b, func() int {
		text, err := os.ReadFile(marks)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return bytes.Count(text, []byte("x"))
	}
}

// bigFile is a file that is just large enough for a process.
func bigFile(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "large")
	content := bytes.Repeat([]byte("0123456789abcdef"), intakeFrom/16)
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// Large outputs are taken in by a process, under the name that they would have without it; small
// ones are not.
func TestLargeOutputsAreTakenInByAProcess(t *testing.T) {
	t.Parallel()
	b, times := intakeBench(t, `exec "$@"`)
	dir := t.TempDir()
	large := bigFile(t, dir)
	small := filepath.Join(t.TempDir(), "small")
	if err := os.WriteFile(small, []byte("small"), 0o600); err != nil {
		t.Fatal(err)
	}
	key, _ := b.jobKeys(secretName, b.Self())
	for _, tt := range []struct {
		path  string
		dir   bool
		key   grid.JobKey
		times int
	}{
		{small, false, "", 0},
		{filepath.Dir(small), true, "", 0},
		{large, false, "", 1},
		{dir, true, "", 2},
		{large, false, key, 3},
		{dir, true, key, 4},
	} {
		got, err := b.addPath(t.Context(), tt.key, tt.path, tt.dir)
		if err != nil || times() != tt.times {
			t.Fatalf("%s: %v, by process %d; want %d", tt.path, err, times(), tt.times)
		}
		by := b.intake
		b.intake = nil
		want, err := b.addPath(t.Context(), tt.key, tt.path, tt.dir)
		b.intake = by
		if tt.key != "" { // each time encrypted anew
			got.CID, want.CID = "", ""
		}
		if err != nil || got != want {
			t.Errorf("%s: taken in as %+v, without a process as %+v, %v", tt.path, got, want, err)
		}
	}
}

// A process that fails costs no attempt its outputs: the agent takes them in itself.
func TestNoOutputIsLostWithAProcess(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"killed":   "read order; kill -KILL $$",
		"silent":   "exit 0",
		"confused": "echo what",
	} {
		b, times := intakeBench(t, script)
		exit, err := b.work.keep(testAttempt, &work{}, lrm.Result{
			Exit:    grid.Exit{Cause: grid.CauseExited},
			Outputs: []lrm.File{{SandboxPath: "/o", HostPath: bigFile(t, t.TempDir())}},
		})
		if err != nil || exit.Cause != grid.CauseExited || len(exit.Outputs) != 1 || times() != 1 {
			t.Errorf("%s: %+v, %v, after %d processes", name, exit, err, times())
		} else if !b.data.Has(exit.Outputs[0].CID) {
			t.Errorf("%s: the output is not held", name)
		}
	}
}

// A full disk that the process meets is waited for as one that the agent meets, and what is wrong
// with an output is not tried again.
func TestWhatAProcessMeets(t *testing.T) {
	t.Parallel()
	fails := func(kind string) string {
		return `read order; echo '{"Failure":{"Kind":"` + kind + `","Text":"as told"}}'; read end`
	}
	b, times := intakeBench(t, fails("disk full"))
	result := lrm.Result{
		Exit:    grid.Exit{Cause: grid.CauseExited},
		Outputs: []lrm.File{{SandboxPath: "/o", HostPath: bigFile(t, t.TempDir())}},
	}
	if _, err := b.work.keep(testAttempt, &work{}, result); !errors.Is(err, data.ErrDiskFull) {
		t.Errorf("on a full disk: %v after %d processes", err, times())
	}
	b, times = intakeBench(t, fails("too large"))
	exit, err := b.work.keep(testAttempt, &work{}, result)
	if err != nil || exit.Cause != grid.CauseData || times() != 1 ||
		!strings.Contains(exit.Text, "its outputs cannot be stored: add data: as told") {
		t.Errorf("too large: %+v, %v, after %d processes", exit, err, times())
	}
}
