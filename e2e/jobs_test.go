//go:build e2e

package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

func TestRun(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores)
	writeFile(t, filepath.Join(m.work, "in.txt"), "content")

	a := m.submit(t, "run", "--wasm", bin.guest, "-i", "in.txt:/in/x", "--out", "/out/y:sub/y.txt",
		"--",
		"print=hello", "copy=/in/x:/out/y")
	a.want(t, 0)
	if a.out != "hello\n" {
		t.Errorf("stdout = %q, want what the program printed", a.out)
	}
	if got := readFile(t, filepath.Join(m.work, "sub", "y.txt")); got != "content" {
		t.Errorf("output = %q", got)
	}
	m.run(t, "exit=7").want(t, 7, "failed with code 7", "submit logs")
	m.audit(t)
}

func TestNeverFits(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores, twoCores)
	began := time.Now()
	a := m.submit(t, "run", "--ttl", "1s", "--wasm", bin.guest, "--memory", "64GiB", "--", "exit=0")
	took := time.Since(began)
	a.want(t, 4, "no site can run this", "memory", "submit why")
	if limit := 2 * time.Second; took > limit {
		t.Errorf("the answer took %s, want TTL + 1 s = %s", took, limit)
	}
	jobs, err := m.sites[0].client.Jobs(t.Context(), view.JobQuery{})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs = %+v, %v", jobs, err)
	}
	why := m.submit(t, "why", string(jobs[0].ID))
	why.want(t, 0)
	for site, dimension := range map[string]string{"a": "cores", "b": "memory", "c": "memory"} {
		line := lineWith(why.out, " "+site+" ")
		if !strings.Contains(line, "never fits") || !strings.Contains(line, dimension) {
			t.Errorf("why does not say of site %s that the %s never fits:\n%s", site, dimension, why.out)
		}
	}
}

// lineWith is the first line that has the part.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

func TestWaitsForRoom(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, oneCore)
	first := m.begin(t, nil, "ticks=600")
	m.awaitPhase(t, first, view.PhaseRunning)
	second := m.begin(t, nil, "print=mine")
	m.awaitPhase(t, second, view.PhaseWaiting)
	eventually(t, patience, "the waiting job has a hint", func() bool {
		return strings.Contains(m.job(t, second).Hint, "no site has capacity now")
	})
	why := m.submit(t, "why", string(second))
	if !strings.Contains(why.out, "not now") || strings.Contains(lineWith(why.out, " b "), "never") {
		t.Errorf("why does not say that it fits, but not now:\n%s", why.out)
	}
	m.submit(
		t, "run", "--no-wait", "--wasm", bin.guest, "--", "exit=0",
	).want(t, 4, "no site has capacity now")
	m.submit(t, "cancel", string(first)).want(t, 0)
	m.submit(t, "wait", string(second)).want(t, 0)
	m.sites[1].awaitNoProcess(t)
	m.audit(t)
}

func TestDetach(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores)
	cmd := m.submitCommand(
		t, "run", "--wasm", bin.guest, "--out", "/out/r:r.txt", "--", "ticks=20", "put=/out/r:done",
	)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(errs)
	var all strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&all, lines.Text())
		if strings.Contains(lines.Text(), "running") {
			if err = cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // the code is looked at
	answer{
		code: cmd.ProcessState.ExitCode(), err: all.String(),
	}.want(t, 130, "goes on", "submit wait", "submit get")
	jobs, err := m.sites[0].client.Jobs(t.Context(), view.JobQuery{})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs = %+v, %v", jobs, err)
	}
	id := string(jobs[0].ID)
	m.submit(t, "wait", id).want(t, 0)
	m.submit(t, "get", id, "--to", "got").want(t, 0)
	if got := readFile(t, filepath.Join(m.work, "got", "r.txt")); got != "done" {
		t.Errorf("output = %q", got)
	}

	m.submit(t, "describe", id).want(t, 0)
	described := m.submit(t, "describe", id, "-o", "json")
	described.want(t, 0)
	again := m.submitWith(t, described.out, "job", "-", "--parsable")
	again.want(t, 0)
	second := strings.TrimSpace(again.out)
	if second == "" || second == id {
		t.Fatalf("submitted again as %q", second)
	}
	m.submit(t, "wait", second).want(t, 0)
	m.submit(t, "get", second, "--to", "again").want(t, 0)
	if got := readFile(t, filepath.Join(m.work, "again", "r.txt")); got != "done" {
		t.Errorf("output = %q", got)
	}
}

func TestFollowAndCancel(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores)
	id := m.begin(t, nil, "ticks=600")
	m.awaitPhase(t, id, view.PhaseRunning)
	cmd := m.submitCommand(t, "logs", "-f", string(id))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := range 10 {
		if want := fmt.Sprintf("tick %d", i); !lines.Scan() || lines.Text() != want {
			t.Fatalf("line %q, want %q", lines.Text(), want)
		}
	}
	if phase := m.job(t, id).Phase; phase != view.PhaseRunning {
		t.Errorf("the job is %s while its log is followed", phase)
	}
	if len(m.sites[1].processes()) == 0 {
		t.Error("no process runs the job; the test would see nothing end")
	}
	m.submit(t, "cancel", string(id)).want(t, 0)
	m.awaitPhase(t, id, view.PhaseCancelled)
	m.sites[1].awaitNoProcess(t)
	for lines.Scan() { // the log ends with the task
	}
	if err = cmd.Wait(); err != nil {
		t.Errorf("logs -f after the end: %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(m.sites[1].state, "attempts"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		eventually(t, patience, "nothing is left of the attempt", func() bool {
			entries, err := os.ReadDir(filepath.Join(m.sites[1].state, "attempts"))
			return err == nil && len(entries) == 0
		})
	}
	m.audit(t)
}
