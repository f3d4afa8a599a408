package lrmtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	neighbourTicks = 40
	// for less than a second's work, beside an abuse on a busy machine
	neighbourTime = 30 * time.Second
	hostSecret    = "the owner's secret"
	contained     = "contained\n"
)

// abuse is a program that takes without end. How it ends says what of.
type abuse struct {
	name   string
	args   []string
	wall   time.Duration // its time limit; 0 = Patience
	system bool          // needs processes
	causes []grid.ExitCause
	dies   bool // or the kernel refuses what it wants, and it ends of that with a code of its own
}

func abuses() []abuse {
	// noticed, or refused by the kernel
	refused := []grid.ExitCause{grid.CauseBadWork, grid.CauseExited, grid.CauseMemory}
	disk := []grid.ExitCause{grid.CauseDisk}
	// or in time, where the sandbox itself makes it take long; or of memory: the kernel keeps
	// files in it that a busy disk has not taken yet, and charges who made them
	entries := []grid.ExitCause{grid.CauseDisk, grid.CauseTimeLimit, grid.CauseMemory}
	return []abuse{
		{
			name: "endless loop", args: []string{"spin"}, wall: 500 * time.Millisecond,
			causes: []grid.ExitCause{grid.CauseTimeLimit},
		},
		{name: "memory", args: []string{"hog"}, causes: []grid.ExitCause{grid.CauseMemory}, dies: true},
		{name: "flood of output", args: []string{"flood"}, causes: []grid.ExitCause{grid.CauseOutput}},
		{
			name: "flood of errors", args: []string{"flood", "stderr"},
			causes: []grid.ExitCause{grid.CauseOutput},
		},
		{
			name: "disk in a closed directory", args: []string{"fill", "hidden", "/out/hidden"},
			causes: disk,
		},
		{
			name: "empty files", args: []string{"fill", "empty", "/out/e"}, wall: 10 * time.Second,
			causes: entries,
		},
		{
			name: "directories in each other", args: []string{"fill", "deep", "/out/deep"},
			wall: 10 * time.Second, causes: entries,
		},
		{
			name: "shared memory", args: []string{"hogShared"}, system: true,
			causes: []grid.ExitCause{grid.CauseMemory},
		},
		{
			name: "memory by descriptor", args: []string{"hogFile"}, system: true,
			causes: []grid.ExitCause{grid.CauseMemory, grid.CauseDisk},
		},
		{name: "more and more forks", args: []string{"forks", "8"}, system: true, causes: refused},
		{name: "zombies", args: []string{"zombies"}, system: true, causes: refused},
		{
			name: "daemons", args: []string{"daemons"}, system: true,
			causes: []grid.ExitCause{grid.CauseExited},
		},
	}
}

func abuseCases() []testCase {
	cases := []testCase{
		{name: "abuse, ways out", attack: true, test: testWaysOut},
		{name: "abuse, ways out of a system", attack: true, system: true, test: testSystemWaysOut},
		{name: "abuse, outputs that are none", attack: true, test: testStrangeOutputs},
	}
	for _, a := range abuses() {
		cases = append(cases, testCase{
			name: "abuse, " + a.name, attack: true, system: a.system,
			test: func(t *testing.T, b *bench) { b.endure(t, a) },
		})
	}
	return cases
}

// endure runs an abuse beside a harmless job and wants it to end for the right
// cause, the job to be unharmed, the adapter to work, and nothing to be left.
func (b *bench) endure(t *testing.T, abused abuse) {
	t.Helper()
	neighbour := b.start(t, b.attempt(t, "tick", fmt.Sprint(neighbourTicks)))
	await(t, neighbour, lrm.Started)
	a := b.attempt(t, abused.args...)
	a.OutputPaths = []string{"/out/e"}
	if abused.wall > 0 {
		a.Limits.WallTime = abused.wall
	}
	r := b.run(t, a)
	if r.Exit.Cause == grid.CauseNoOutput { // not all abuses write /out/e
		r.Exit.Cause = grid.CauseExited
	}
	died := abused.dies && r.Exit.Cause == grid.CauseExited && r.Exit.Code != 0
	if !died && !slices.Contains(abused.causes, r.Exit.Cause) {
		t.Errorf(
			"exit = %v %d %q, want one of %v; stderr %q", r.Exit.Cause, r.Exit.Code, r.Exit.Text,
			abused.causes, Text(t, r.Stderr),
		)
	}
	if r.Exit.Cause != grid.CauseExited && r.Exit.Text == "" {
		t.Errorf("%v comes without an explanation", r.Exit.Cause)
	}
	b.unharmed(t, neighbour)
	b.nothingLeft(t, a)
}

// unharmed wants a job that ran beside an abuse, and one after it, to end as ever.
func (b *bench) unharmed(t *testing.T, neighbour lrm.Process) {
	t.Helper()
	beside := Wait(t, neighbour)
	wantExit(t, beside, 0)
	if got := strings.Count(Text(t, beside.Stdout), "tick"); got != neighbourTicks ||
		beside.Exit.Wall > neighbourTime {
		t.Errorf(
			"the job beside it: %d ticks in %s, want %d within %s", got, beside.Exit.Wall, neighbourTicks,
			neighbourTime,
		)
	}
	wantExit(t, b.run(t, b.attempt(t, "exit", "7")), 7)
}

// nothingLeft wants an attempt that ended to leave no process, no mount and
// nothing that cannot be removed.
func (b *bench) nothingLeft(t *testing.T, a lrm.Attempt) {
	t.Helper()
	Until(t, "no process is left", 2*time.Second, func() bool {
		return len(Processes(t, a.Dir)) == 0
	})
	if err := lrm.RemoveTree(a.Dir); err != nil {
		t.Errorf("RemoveTree: %v", err)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		if strings.Contains(string(mounts), a.Dir) {
			t.Errorf("mounts are left:\n%s", mounts)
		}
	}
	if b.h.Left != nil {
		Until(t, "nothing of the system is left", 5*time.Second, func() bool {
			return len(b.h.Left(b.record)) == 0
		})
	}
	for _, name := range b.strangers(t) {
		t.Errorf("%s appeared beside the attempts", name)
	}
}

// strangers are files beside the attempts that only a program can have made.
func (b *bench) strangers(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		if n := e.Name(); n != "host" && n != filepath.Base(b.record) &&
			!strings.HasPrefix(n, "attempt") && !slices.Contains(b.h.Own, n) {
			found = append(found, n)
		}
	}
	return found
}

// testWaysOut tries to reach what belongs to the host, by names that any program
// can use, and to start programs of the host.
func testWaysOut(t *testing.T, b *bench) {
	secret := b.putFile(t, "secret", hostSecret)
	record := b.putFile(t, "state/identity.key", hostSecret)
	for _, args := range [][]string{
		{
			"reach", secret, record, "/proc/self/root" + secret, "/proc/1/root" + secret,
			"/proc/1/cwd/../host/secret", fmt.Sprintf("/proc/%d/environ", os.Getpid()),
		},
		{"seek", filepath.Base(os.Args[0])},
	} {
		a := b.withInputs(t, args...)
		r := b.run(t, a)
		wantExit(t, r, 0)
		if got := Text(t, r.Stdout); got != contained {
			t.Errorf("%s: stdout = %q", args[0], got)
		}
		b.nothingLeft(t, a)
	}
	if !b.h.System {
		r := b.run(t, b.attempt(t, "start", "/bin/sh", "/usr/bin/true", "/proc/self/exe"))
		wantExit(t, r, 0)
		if got := Text(t, r.Stdout); got != contained {
			t.Errorf("start: stdout = %q", got)
		}
	}
}

// testSystemWaysOut tries what only programs with a kernel's calls can.
func testSystemWaysOut(t *testing.T, b *bench) {
	sockets, reached := listen(t, b.dir)
	key, forget := ownerKey(t)
	defer forget()
	tests := map[string][]string{
		"sockets":    append([]string{"dial"}, sockets...),
		"terminal":   {"terminal"},
		"devices":    {"devices"},
		"privileges": {"privileges"},
		"keys":       {"keys", key},
		"processes":  {"trace", fmt.Sprint(os.Getpid()), fmt.Sprint(os.Getppid())},
		"open files": {"descriptors"},
		"watches":    {"watches"},
	}
	if !b.h.OwnKernel { // whose leases bind only its own processes
		tests["files of others"] = append([]string{"holds", "/etc", "/etc/passwd"}, b.h.Prefix...)
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			if b.h.OwnKernel {
				args = append(args, "emulated")
			}
			r := b.run(t, b.attempt(t, args...))
			wantExit(t, r, 0)
			if got := Text(t, r.Stdout); got != contained {
				t.Errorf("stdout = %q, stderr %q", got, Text(t, r.Stderr))
			}
		})
	}
	if n := reached(); n > 0 {
		t.Errorf("%d connections reached the host", n)
	}
}

// listen makes a listener of each sort on the host and returns their addresses, and
// what counts the connections that reached them.
func listen(t *testing.T, dir string) (addresses []string, reached func() int) {
	t.Helper()
	count := make(chan struct{}, 64)
	for _, at := range [][2]string{
		{"tcp", "127.0.0.1:0"},
		{"unix", filepath.Join(dir, "host.sock")},
		{"unix", fmt.Sprintf("@mrs-test-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(dir)))},
	} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), at[0], at[1])
		if err != nil {
			t.Skipf("cannot listen on %s %s: %v", at[0], at[1], err)
		}
		t.Cleanup(func() { l.Close() })
		addresses = append(addresses, at[0], l.Addr().String())
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
				count <- struct{}{}
			}
		}()
	}
	return addresses, func() int { return len(count) }
}

// testStrangeOutputs leaves links, pipes, sockets and a replaced directory where
// outputs are expected. Only files and directories are kept.
func testStrangeOutputs(t *testing.T, b *bench) {
	secret := b.putFile(t, "secret", hostSecret)
	a := b.withInputs(t, "outputs", secret, filepath.Dir(secret))
	a.OutputPaths = []string{
		"/out/plain", "/out/pipe", "/out/pipes", "/out/socket", "/out/link", "/out/links", "/out/hard",
		"/out/device",
		"/swapped/secret", "/out/line\nbreak",
	}
	r := b.run(t, a)
	wantCause(t, r, grid.CauseNoOutput)
	var kept []string
	for _, f := range r.Outputs {
		kept = append(kept, f.SandboxPath)
		if !f.Dir && strings.Contains(Text(t, f), "secret") {
			t.Errorf("%s leads to the host", f.SandboxPath)
		}
	}
	want := []string{"/out/plain", "/out/line\nbreak"}
	if b.h.OwnKernel { // whose pipes are not the machine's: it is left with a plain directory
		want = []string{"/out/plain", "/out/pipes", "/out/line\nbreak"}
	}
	if !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q; text %q", kept, want, r.Exit.Text)
	}
	if !strings.Contains(r.Exit.Text, "not written: /out/pipe") {
		t.Errorf("text = %q, want what was not kept", r.Exit.Text)
	}
	b.nothingLeft(t, a)
}
