package fake_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestConformance(t *testing.T) {
	lrmtest.Run(t, lrmtest.Harness{
		Kind: grid.KindWasm, Scripted: true,
		New: func(testing.TB, string) lrm.Adapter { return fake.New(fake.Config{Script: guest}) },
	})
}

// guest plays the suite's program.
func guest(a lrm.Attempt) fake.Behaviour {
	verb, args := a.Task.Args[0], a.Task.Args[1:]
	switch verb {
	case "exit":
		code, _ := strconv.Atoi(args[0])
		return fake.Behaviour{Code: code}
	case "say":
		return fake.Behaviour{Stdout: said(a, args), Stderr: "on stderr\n"}
	case "cat":
		text, err := cat(a, args)
		if err != nil {
			return fake.Behaviour{Code: 1, Stderr: err.Error()}
		}
		return fake.Behaviour{Stdout: text}
	case "ls":
		return fake.Behaviour{Stdout: list(a, args[0])}
	case "put":
		return fake.Behaviour{Files: map[string]string{args[0]: args[1]}}
	case "tick":
		lines, _ := strconv.Atoi(args[0])
		return fake.Behaviour{Lines: lines, Run: time.Duration(lines) * 10 * time.Millisecond}
	case "hog":
		return fake.Behaviour{Memory: 1 << 40}
	case "flood":
		return fake.Behaviour{Endless: true}
	case "fill":
		return fake.Behaviour{Disk: 1 << 40}
	default:
		return fake.Behaviour{Run: -1, Stdout: "spinning\n"}
	}
}

func said(a lrm.Attempt, args []string) string {
	env := make(map[string]string)
	for _, e := range a.Task.Env {
		env[e.Name] = e.Value
	}
	return fmt.Sprintf(
		"args=%s\nGREETING=%s\nHOME=%s\nstdin=\"\"\n", strings.Join(args, "|"), env["GREETING"],
		env["HOME"],
	)
}

func hostPath(a lrm.Attempt, name string) string {
	for _, in := range a.Inputs {
		if rest, ok := strings.CutPrefix(name, in.SandboxPath); ok {
			return in.HostPath + rest
		}
	}
	return filepath.Join(a.WorkDir(), name)
}

func cat(a lrm.Attempt, names []string) (string, error) {
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(hostPath(a, name))
		if err != nil {
			return "", err
		}
		all.Write(text)
	}
	return all.String(), nil
}

func list(a lrm.Attempt, dir string) string {
	lines := []string{dir + "/"}
	for _, in := range a.Inputs {
		_ = filepath.WalkDir(in.HostPath, func(path string, d os.DirEntry, err error) error {
			line := in.SandboxPath + strings.TrimPrefix(path, in.HostPath)
			if err == nil && d.IsDir() {
				line += "/"
			}
			lines = append(lines, line)
			return err
		})
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func attempt(t *testing.T, now lrm.BootTime, args ...string) lrm.Attempt {
	t.Helper()
	dir := t.TempDir()
	id := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: 1}
	return lrm.Attempt{
		ID: id, Task: grid.Task{ID: id.Task, Args: args}, Dir: dir,
		RecordPath: filepath.Join(dir, "runs"),
		LeaseUntil: now.Add(time.Hour),
	}
}

func TestByArgs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zero := time.Now()
		now := func() lrm.BootTime { return lrm.BootTime(time.Since(zero)) }
		a := attempt(
			t, now(), "run=2s", "exit=3", "print=hello", "put=/out/x:content", "lines=4", "unknown",
		)
		a.OutputPaths = []string{"/out/x"}
		p, err := fake.New(fake.Config{Now: now}).Start(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Since(zero); got != 2*time.Second {
			t.Errorf("took %s, want 2s", got)
		}
		if r.Exit.Cause != grid.CauseExited || r.Exit.Code != 3 || r.Exit.Wall != 2*time.Second {
			t.Errorf("exit = %+v", r.Exit)
		}
		if len(r.Outputs) != 1 || r.Outputs[0].Bytes != 7 {
			t.Errorf("outputs = %+v", r.Outputs)
		}
		if got, want := r.Stdout.Bytes, int64(len("hello\n")+4*len("tick 0\n")); got != want {
			t.Errorf("stdout has %d bytes, want %d", got, want)
		}
	})
}

func TestFailStart(t *testing.T) {
	_, err := fake.New(fake.Config{}).Start(
		t.Context(), attempt(t, lrm.BootNow(), "fail-start=no luck"),
	)
	if err == nil || err.Error() != "no luck" {
		t.Errorf("Start: %v, want the script's error", err)
	}
	bad := attempt(t, lrm.BootNow())
	bad.ID.Token = 0
	if _, err := fake.New(fake.Config{}).Start(t.Context(), bad); !errors.Is(err, lrm.ErrAttempt) {
		t.Errorf("Start: %v, want ErrAttempt", err)
	}
}
