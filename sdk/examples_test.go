package sdk_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The examples save a state when it is wanted, and go on from it when they have been killed: what
// is added to the state meanwhile is in the result.
func TestExamplesGoOnFromTheirStates(t *testing.T) {
	bin := t.TempDir()
	for name, c := range map[string]struct {
		needs string
		build []string
		run   []string
		last  int
	}{
		"shell":  {"sh", nil, []string{"sh", "examples/sum.sh"}, 500_000},
		"Python": {"python3", nil, []string{"python3", "examples/sum.py"}, 20_000_000},
		"C": {
			"cc",
			[]string{"cc", "-O2", "-Wall", "-Werror", "-o", bin + "/c", "examples/sum.c"},
			[]string{bin + "/c"},
			4_000_000_000,
		},
		"Go": {
			"go",
			[]string{"go", "build", "-o", bin + "/go", "./examples/sum"},
			[]string{bin + "/go"},
			4_000_000_000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skip(err)
			}
			if len(c.build) > 0 {
				build := exec.Command(c.build[0], c.build[1:]...)
				if out, err := build.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			i, sum := savedBeforeItsEnd(t, c.run, c.last)
			if want := i * (i + 1) / 2; i == 0 || i >= c.last || sum != want {
				t.Fatalf("it saved %d, %d, want %d", i, sum, want)
			}
			dir := t.TempDir()
			i, sum = c.last-1000, 7 // as if it had come so far
			put(t, dir, "state", fmt.Sprintln(i, sum))
			run := exec.Command(c.run[0], append(c.run[1:], fmt.Sprint(c.last))...)
			run.Env = append(os.Environ(), "MRS_CKPT_DIR="+dir)
			out, err := run.Output()
			for ; i < c.last; sum += i {
				i++
			}
			if want := fmt.Sprintln(sum); err != nil || string(out) != want {
				t.Errorf("it printed %q, %v, want %q", out, err, want)
			}
		})
	}
}

// savedBeforeItsEnd starts a program that a state is wanted of, kills it when that is there, and
// reads it.
func savedBeforeItsEnd(t *testing.T, command []string, last int) (i, sum int) {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "wanted", "")
	run := exec.Command(command[0], append(command[1:], fmt.Sprint(last))...)
	run.Env = append(os.Environ(), "MRS_CKPT_DIR="+dir)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = run.Process.Kill()
		_ = run.Wait()
	}()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		state, err := os.ReadFile(filepath.Join(dir, "state"))
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if _, err := fmt.Sscan(string(state), &i, &sum); err != nil {
			t.Fatalf("state %q: %v", state, err)
		}
		if err := os.Remove(filepath.Join(dir, "wanted")); err != nil {
			t.Fatal(err)
		}
		return i, sum
	}
	t.Fatal("no state was saved")
	return 0, 0
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
