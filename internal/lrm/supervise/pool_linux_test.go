package supervise_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// run runs an attempt under a supervisor of the pool. It gives its end, and the
// process that the record names as its supervisor.
func run(t *testing.T, pool *supervise.Pool, s supervise.Spec) (supervise.Ending, lrm.Identity) {
	t.Helper()
	var ending supervise.Ending
	p, err := pool.Start(t.Context(), s.Dir, s, supervise.Hooks{
		Finish: func(e supervise.Ending, _ bool) lrm.Result {
			ending = e
			return lrm.Result{}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What comes too late must not reach the next attempt.
	if err = p.Stop("too late"); err != nil {
		t.Error(err)
	}
	records, err := lrm.ReadRecords(s.RecordPath)
	if err != nil || len(records) != 2 || len(lrm.Unended(records)) != 0 {
		t.Fatalf("records = %+v, %v; want a start and an end", records, err)
	}
	return ending, records[0].Supervisor
}

func TestPoolUsesSupervisorAgain(t *testing.T) {
	t.Parallel()
	pool := supervise.NewPool([]string{self(t), supervise.Arg})
	var first lrm.Identity
	for i, args := range [][]string{{"exit", "3"}, {"report"}, {"die"}, {"exit", "3"}} {
		s := spec(t, args...)
		s.Reports = args[0] == "report"
		got, by := run(t, pool, s)
		if i == 0 {
			first = by
		}
		if by != first {
			t.Errorf("attempt %d: supervisor %+v, want %+v again", i, by, first)
		}
		if args[0] == "exit" && (got.Cause != grid.CauseExited || got.Code != 3) {
			t.Errorf("attempt %d: ending = %+v", i, got)
		}
		if at, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(by.PID), "cwd")); err != nil ||
			at == s.Dir {
			t.Errorf("an idle supervisor stands in %q, %v", at, err)
		}
	}
	waitGone(t, first.PID) // it is not kept for long
}

// A supervisor that does not know whether something is left takes no other attempt,
// and one that died while it was idle is not missed.
func TestPoolReplacesSupervisor(t *testing.T) {
	t.Parallel()
	pool := supervise.NewPool([]string{self(t), supervise.Arg})
	_, first := run(t, pool, spec(t, "exit", "0"))
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitDead(t, first.PID)
	got, second := run(t, pool, spec(t, "exit", "4"))
	if got.Code != 4 || second == first {
		t.Errorf("ending = %+v by %+v, want another supervisor", got, second)
	}
}

func TestEnclosureIsBoundBeforeItsFirstStep(t *testing.T) {
	t.Parallel()
	canTrace(t)
	s := spec(t, "exit", "9")
	s.Enclosure = &supervise.Enclosure{
		Program:    "/bin/sh",
		Args:       []string{"-c", `ulimit -n; cat <&4; echo told >&3; read x || echo empty`},
		StatusPath: filepath.Join(s.Dir, "status"), Filter: []byte("filter\n"),
		Rlimits: map[int]uint64{unix.RLIMIT_NOFILE: 77},
	}
	got, _ := run(t, supervise.NewPool([]string{self(t), supervise.Arg}), s)
	out, err := os.ReadFile(s.Stdout)
	if err != nil || string(out) != "77\nfilter\nempty\n" {
		t.Errorf("ending = %+v, output = %q, %v", got, out, err)
	}
	if told, err := os.ReadFile(s.Enclosure.StatusPath); err != nil || string(told) != "told\n" {
		t.Errorf("status = %q, %v", told, err)
	}
}

// A supervisor ends with the sandbox that it keeps: its next order would not say how to make one.
func TestASupervisorEndsWithItsSandbox(t *testing.T) {
	t.Parallel()
	canTrace(t)
	pool := supervise.NewPool([]string{self(t), supervise.Arg})
	supervise.SetIdleTime(pool, time.Hour)
	s := spec(t)
	s.Runner, s.Tree = []string{"/nowhere"}, true
	const takesTasks = `echo ready >&8
		while read -r task <&7; do (eval "$task"); echo $? >&8; done`
	e := supervise.Enclosure{Program: "/bin/sh", Args: []string{ // two processes, as bubblewrap has
		"-c", `/bin/sh -c '/bin/sh -c "$0"; :' "$0"; :`, takesTasks,
	}}
	s.Enclosure, s.Warm = &e, &supervise.Warm{Key: "key", Task: "echo $PPID; exit 3", Enclosure: &e}
	ends := make(chan supervise.Ending, 1)
	hooks := supervise.Hooks{
		Finish: func(e supervise.Ending, _ bool) lrm.Result {
			ends <- e
			return lrm.Result{}
		},
		Empty: func() (string, error) { return s.Dir, nil },
		Gone:  func(string) {},
	}
	attempt := func(
		start func(context.Context, string, supervise.Spec, supervise.Hooks) (lrm.Process, error),
	) {
		p, err := start(t.Context(), s.Dir, s, hooks)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e := <-ends; e.Cause != grid.CauseExited || e.Code != 3 {
			t.Fatalf("ending = %+v", e)
		}
		p.(lrm.Vacater).Vacate()
	}
	attempt(pool.Start)
	attempt(pool.Warmed("key").Start)
	records, err := lrm.ReadRecords(s.RecordPath)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitDead(t, records[0].Supervisor.PID)
	if w := pool.Warmed("key"); w != nil {
		t.Error("a sandbox that has ended is offered")
	}
}

// A program that cannot be started in the runner's place is left to the runner,
// which finds it in its standard input.
func TestEnclosureIsLeftToRunner(t *testing.T) {
	t.Parallel()
	s := spec(t, "cat")
	s.Enclosure = &supervise.Enclosure{Program: filepath.Join(s.Dir, "nowhere"), Args: []string{"x"}}
	got, _ := run(t, supervise.NewPool([]string{self(t), supervise.Arg}), s)
	out, err := os.ReadFile(s.Stdout)
	if err != nil || got.Code != 0 || !strings.Contains(string(out), `"Args":["x"]`) {
		t.Errorf("ending = %+v, output = %q, %v", got, out, err)
	}
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	until(t, func() bool { return syscall.Kill(pid, 0) != nil })
}

// waitDead waits for the death of a process that its parent may not have reaped.
func waitDead(t *testing.T, pid int) {
	t.Helper()
	until(t, func() bool {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		return err != nil || strings.Contains(string(text), ") Z ")
	})
}
