package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// warmInputs is the size that inputs have at most which are copied.
const warmInputs = 4 << 20

// which tells which sandbox a command is in.
const which = `echo $(readlink /proc/self/ns/pid; cut -d" " -f22 /proc/1/stat) >&2; `

// series runs commands of one series, one after the other, and gives how each ended, in which
// sandbox it was, and what it printed.
type series struct {
	t       *testing.T
	adapter lrm.Adapter
	record  string
}

type told struct {
	exit        grid.Exit
	in          string // the sandbox
	out, errors string
	copied      string // its first output
	cpu         time.Duration
}

func (s series) run(script string, change ...func(*lrm.Attempt)) told {
	s.t.Helper()
	a := attempt(s.t, "sh", "-c", which+script)
	a.Series, a.RecordPath = "one", s.record
	for _, c := range change {
		c(&a)
	}
	p := lrmtest.Start(s.t, s.adapter, a)
	r := lrmtest.Wait(s.t, p)
	e := told{exit: r.Exit, out: lrmtest.Text(s.t, r.Stdout), errors: lrmtest.Text(s.t, r.Stderr)}
	e.in, e.errors, _ = strings.Cut(e.errors, "\n")
	if e.cpu = r.CPU; len(r.Outputs) > 0 {
		e.copied = lrmtest.Text(s.t, r.Outputs[0])
	}
	p.(lrm.Vacater).Vacate()
	return e
}

// file makes a file.
func (s series) file(name, text string) string {
	s.t.Helper()
	name = filepath.Join(s.t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

func (s series) input(a *lrm.Attempt, path, from string, dir bool) {
	a.Inputs = append(a.Inputs, lrm.Bind{SandboxPath: path, HostPath: from, Dir: dir})
}

// eachSeries does something in each way that commands are bounded. Then the sandboxes end that
// nobody needs any more.
func eachSeries(t *testing.T, do func(t *testing.T, s series)) {
	t.Helper()
	for _, way := range bubblewrapWays() {
		t.Run(way, func(t *testing.T) {
			need(t, way)
			t.Parallel()
			record := filepath.Join(t.TempDir(), "runs.jsonl")
			adapter, err := newAdapter(t.Context(), record, way)
			if err != nil {
				t.Fatal(err)
			}
			do(t, series{t, adapter, record})
			lrmtest.Until(t, "sandboxes end and leave nothing", lrmtest.Patience, func() bool {
				return len(leftOfWarm(record)) == 0
			})
		})
	}
}

// leftOfWarm are the roots and groups of warm sandboxes.
func leftOfWarm(record string) []string {
	roots, _ := filepath.Glob(filepath.Join(filepath.Dir(record), "warm", "*"))
	return append(roots, native.GroupsLeft(record)...)
}

// Commands of one series run in the same sandbox, and see nothing of those before, whatever these
// have tried to leave.
func TestAWarmSandboxIsEmptied(t *testing.T) {
	eachSeries(t, func(t *testing.T, s series) {
		look := strings.Replace(lookAround, "echo /proc/[0-9]*",
			"n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; echo $n", 1)
		first := s.run(look)
		leaves := s.run(strings.Replace(leaveAll, "ipcmk -M 4096; ipcmk -S 1; ipcmk -Q", "", 1))
		ruins := s.run(`rm -r /bin /work; mkdir -p /bin/d /d/e/f; ln -s /etc /work
			touch /tmp/.x; chmod 0 /d /bin /tmp /`)
		for _, e := range []told{first, leaves, ruins} {
			if e.exit.Cause != grid.CauseExited || e.exit.Code != 0 {
				t.Fatalf("%+v", e)
			}
		}
		second := s.run(look)
		for _, e := range []told{leaves, ruins, second} {
			if first.in == "" || e.in != first.in {
				t.Errorf("in %s, and first in %s", e.in, first.in)
			}
		}
		if second.out != first.out || strings.Count(first.out, "nobody holds it") != 2 {
			t.Errorf("after another one a command sees\n%s\nand before\n%s", second.out, first.out)
		}
	})
}

// What the kernel keeps without a process, and what cannot be put right from outside, ends the
// sandbox; so does a task that does not end by itself.
func TestWhatEndsAWarmSandbox(t *testing.T) {
	eachSeries(t, func(t *testing.T, s series) {
		// Where nothing bounds what belongs to no process, the calls that make it are refused.
		refused := s.run("ipcmk -Q").exit.Code != 0
		for name, c := range map[string]struct {
			script string
			object bool // that belongs to no process
			cause  grid.ExitCause
			code   int
			change func(*lrm.Attempt)
		}{
			"shared memory":   {script: "ipcmk -M 4096", object: true},
			"semaphores":      {script: "ipcmk -S 1"},
			"queues":          {script: "ipcmk -Q", object: true},
			"messages":        {script: "/guest leaveQueue"},
			"connection":      {script: "/guest leaveConnection"},
			"other directory": {script: "mv /tmp /other; mkdir /tmp"},
			"its shell":       {script: "kill -KILL $PPID; sleep 100", code: 128 + 9},
			"its shell frozen": {
				script: "kill -STOP $PPID; sleep 0.2", cause: grid.CauseTimeLimit,
				change: func(a *lrm.Attempt) { a.Limits.WallTime = time.Second },
			},
			"time": {
				script: "sleep 100", cause: grid.CauseTimeLimit,
				change: func(a *lrm.Attempt) { a.Limits.WallTime = 200 * time.Millisecond },
			},
			"false words": {script: "echo 7 >/proc/$PPID/fd/8; sleep 0.2", code: 7},
		} {
			before := s.run("true")
			e := s.run(c.script, func(a *lrm.Attempt) {
				a.Limits.WallTime = time.Minute
				s.input(a, guestPath, guest, false)
				if c.change != nil {
					c.change(a)
				}
			})
			if c.object && refused {
				if e.exit.Code == 0 {
					t.Errorf("%s: others are refused, and not these", name)
				}
				continue
			}
			if e.exit.Cause != max(c.cause, grid.CauseExited) || e.exit.Code != c.code {
				t.Errorf("%s: %+v, %s", name, e.exit, e.errors)
			}
			after := s.run("true")
			if e.in == after.in || after.in == "" || after.exit.Cause != grid.CauseExited {
				t.Errorf("%s: in %s, %s and %s: %+v", name, before.in, e.in, after.in, after.exit)
			}
		}
	})
}

// A sandbox that dies while it waits, or whose supervisor does, costs no attempt.
func TestAWarmSandboxIsKilled(t *testing.T) {
	eachSeries(t, func(t *testing.T, s series) {
		for _, whole := range []bool{true, false} {
			first := s.run("true")
			records, err := lrm.ReadRecords(s.record)
			if err != nil || len(records) < 2 {
				t.Fatal(records, err)
			}
			supervisor := records[len(records)-2].Supervisor.PID
			victim := supervisor
			if !whole {
				victim = childOf(t, supervisor)
			}
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			lrmtest.Until(t, "the supervisor ends", lrmtest.Patience, func() bool {
				text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", supervisor))
				return err != nil || strings.Contains(string(text), ") Z ")
			})
			if e := s.run("true"); e.exit.Cause != grid.CauseExited || e.in == first.in {
				t.Errorf("in %s, and %s before: %+v", e.in, first.in, e.exit)
			}
		}
	})
}

// childOf is a child of one of the process's threads.
func childOf(t *testing.T, pid int) (child int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		if n, _ := fmt.Sscan(string(text), &child); n == 1 {
			return child
		}
	}
	t.Fatal("it has no child", lists, err)
	return 0
}

// Sandboxes are for one series alone, and for attempts of the same limits.
func TestWhoSharesASandbox(t *testing.T) {
	eachSeries(t, func(t *testing.T, s series) {
		for name, change := range map[string]func(*lrm.Attempt){
			"another series": func(a *lrm.Attempt) { a.Series = "other" },
			"no series":      func(a *lrm.Attempt) { a.Series = "" },
			"more memory":    func(a *lrm.Attempt) { a.Limits.MemoryBytes = 1 << 30 },
			"more disk":      func(a *lrm.Attempt) { a.Limits.DiskBytes++ },
			"a state":        func(a *lrm.Attempt) { a.StatePath = s.file("state", "x") },
			"a directory": func(a *lrm.Attempt) {
				s.input(a, "/in", filepath.Dir(s.file("d/x", "x")), true)
			},
			"much input": func(a *lrm.Attempt) {
				s.input(a, "/in", s.file("much", strings.Repeat("x", warmInputs+1)), false)
			},
			"strange words": func(a *lrm.Attempt) { a.Task.Args = append(a.Task.Args, "\xc3\xa4") },
		} {
			in := s.run("true").in
			if e := s.run("true", change); e.in == in || e.exit.Cause != grid.CauseExited {
				t.Errorf("%s: in %s, and %s before: %+v", name, e.in, in, e.exit)
			}
		}
	})
}

// A sandbox that no attempt of its series wants for a moment leaves its supervisor to another one.
func TestASandboxMakesRoom(t *testing.T) {
	eachSeries(t, func(t *testing.T, s series) {
		first := s.run("true")
		supervisors := func() (pids []int) {
			records, err := lrm.ReadRecords(s.record)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if r.Event == lrm.RecordStarted {
					pids = append(pids, r.Supervisor.PID)
				}
			}
			return pids
		}
		var last told
		lrmtest.Until(t, "an attempt of another series has its supervisor", lrmtest.Patience,
			func() bool {
				last = s.run("echo $(ls -A /work /tmp)", func(a *lrm.Attempt) {
					a.Series = fmt.Sprint("other ", len(supervisors()))
				})
				all := supervisors()
				return all[len(all)-1] == all[0]
			})
		empty := last.out == "/tmp: /work:\n"
		if last.in == first.in || last.exit.Cause != grid.CauseExited || !empty {
			t.Errorf("in %s, %+v, finding %q; in %s before", last.in, last.exit, last.out, first.in)
		}
	})
}

// Inputs are there, outputs are kept, words and variables come as they are, all that is printed
// is kept, and each attempt is charged for what it has used itself.
func TestTasksInAWarmSandbox(t *testing.T) {
	eachSeries(t, func(t *testing.T, s series) {
		s.run("true")
		words := []string{"a b", "'", "\n", "$HOME\n`id`\\", "", "\t", "-n", "*"}
		for i := range 3 {
			text := fmt.Sprint("text ", i)
			e := s.run(`cat /in/a/file; echo more >>/in/a/file; cp /in/a/file /out/b/copy; ls /in/a
				printf '%s|' "$@"; echo "$VAR"`, func(a *lrm.Attempt) {
				s.input(a, "/in/a/file", s.file("some", text), false)
				a.OutputPaths = []string{"/out/b/copy"}
				a.Task.Args = append(append(a.Task.Args, "sh"), words...)
				a.Task.Env = []grid.EnvVar{{Name: "VAR", Value: "x'\n\"y $z"}}
			})
			want := text + "file\n" + strings.Join(words, "|") + "|x'\n\"y $z\n"
			if e.exit.Code != 0 || e.out != want || e.copied != text+"more\n" {
				t.Errorf("%+v, want %q", e, want)
			}
		}
		many := s.run("seq 10000; seq 10000 >&2")
		if strings.Count(many.out, "\n") != 10_000 || strings.Count(many.errors, "\n") != 10_000 {
			t.Errorf("%d and %d bytes", len(many.out), len(many.errors))
		}
		busy := s.run("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
		rests := s.run("true")
		if busy.cpu < 100*time.Millisecond || rests.cpu > busy.cpu/2 || rests.in != busy.in {
			t.Errorf("used %s, and %s afterwards", busy.cpu, rests.cpu)
		}
		printed := s.run("yes", func(a *lrm.Attempt) { a.Limits.OutputBytes = 1000 })
		if printed.exit.Cause != grid.CauseOutput || len(printed.out) != 1000 {
			t.Errorf("%+v", printed.exit)
		}
	})
}
