//go:build e2e && unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// limit is the time a quickstart may take with an empty build cache.
const limit = 5 * time.Minute

// outcome tells how a quickstart ended.
type outcome struct {
	lines []string // of its standard output
	err   error    // of Wait
}

// quickstart is one that runs as a process, in a group of its own.
type quickstart struct {
	cmd    *exec.Cmd
	stdout io.Reader
	stderr bytes.Buffer
}

// binary is the program, which TestMain builds once for all.
var binary string

func TestMain(m *testing.M) { os.Exit(withBinary(m.Run)) }

func withBinary(run func() int) (code int) {
	dir, err := os.MkdirTemp("", "quickstart-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "quickstart")
	if said, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, said)
		return 1
	}
	return run()
}

func begin(t *testing.T, args ...string) *quickstart {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	q := &quickstart{cmd: exec.CommandContext(ctx, binary, append([]string{"-v"}, args...)...)}
	q.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	q.cmd.Stderr = &q.stderr
	stdout, err := q.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	q.stdout = stdout
	if err := q.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return q
}

// follow reads until the end and calls react once, at the first line that holds
// the words.
func (q *quickstart) follow(words string, react func()) outcome {
	var end outcome
	for lines := bufio.NewScanner(q.stdout); lines.Scan(); {
		end.lines = append(end.lines, lines.Text())
		if words != "" && strings.Contains(lines.Text(), words) {
			words = ""
			react()
		}
	}
	end.err = q.cmd.Wait()
	return end
}

// checkNothingIsLeft looks for the directory and for processes of its programs.
func checkNothingIsLeft(t *testing.T, end outcome) {
	t.Helper()
	match := regexp.MustCompile(
		`working in (.*/mrs-quickstart-\S+)`,
	).FindStringSubmatch(strings.Join(end.lines, "\n"))
	if match == nil {
		t.Fatalf("it did not say where it works:\n%s", strings.Join(end.lines, "\n"))
	}
	if _, err := os.Stat(match[1]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory is left: %v", err)
	}
	if runtime.GOOS != "linux" {
		return // there is no /proc to look into
	}
	processes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil || len(processes) == 0 {
		t.Fatalf("no processes found: %v", err)
	}
	for _, link := range processes {
		if program, err := os.Readlink(link); err == nil && strings.HasPrefix(program, match[1]) {
			t.Errorf("%s, which runs %s, is left", filepath.Dir(link), program)
		}
	}
}

func TestNothingIsLostWhenAnAgentIsKilled(t *testing.T) {
	q := begin(t)
	end := q.follow("", nil)
	if end.err != nil {
		t.Fatalf("%v\n%s\n%s", end.err, strings.Join(end.lines, "\n"), q.stderr.String())
	}
	promise := regexp.MustCompile(
		`^quickstart: (\d+)/(\d+) results match the local run; 1 agent killed, [1-9]\d* tasks moved, 0 lost, 0 doubled$`)
	match := promise.FindStringSubmatch(end.lines[len(end.lines)-1])
	if match == nil || match[1] != match[2] {
		t.Errorf("last line %q, want %s", end.lines[len(end.lines)-1], promise)
	}
	checkNothingIsLeft(t, end)
}

func TestNothingIsLeftAfterAnInterrupt(t *testing.T) {
	tests := []struct {
		moment string // the first line that holds it
		signal syscall.Signal
	}{
		{"building siteagent", syscall.SIGINT},
		{"starting 5 agents", syscall.SIGTERM},
		{"running", syscall.SIGINT},
		{"killed", syscall.SIGHUP},
	}
	for _, test := range tests {
		t.Run(test.moment, func(t *testing.T) {
			t.Parallel() // each has a directory and processes of its own
			q := begin(t, "-tasks", strconv.Itoa(fewestTasks))
			end := q.follow(test.moment, func() {
				// To the group, as a terminal does.
				if err := syscall.Kill(-q.cmd.Process.Pid, test.signal); err != nil {
					t.Error(err)
				}
			})
			var exit *exec.ExitError
			if !errors.As(end.err, &exit) || exit.ExitCode() != 1 {
				t.Errorf(
					"ended with %v, want code 1\n%s\n%s", end.err, strings.Join(end.lines, "\n"),
					q.stderr.String(),
				)
			}
			if !strings.Contains(q.stderr.String(), "interrupted") {
				t.Errorf("said %q, want that it was interrupted", q.stderr.String())
			}
			checkNothingIsLeft(t, end)
		})
	}
}

func TestAFailureIsToldAndLeavesNothing(t *testing.T) {
	q := begin(t, "-tasks", "1000000")
	end := q.follow("", nil)
	if end.err == nil || !strings.Contains(q.stderr.String(), "-tasks") {
		t.Errorf(
			"ended with %v and said %q, want a failure that names -tasks", end.err, q.stderr.String(),
		)
	}
	checkNothingIsLeft(t, end)
}
