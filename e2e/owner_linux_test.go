//go:build e2e

package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// yielding are the settings of a site that yields to its owner. Only a machine
// that is used up counts, so that what else runs beside the test does not.
const yielding = twoCores + "owner: {yield: true, reserve: 0.05, patience: 10m, priority: idle}\n"

// hogs are what the owner begins: endless loops of usual priority, which end with
// the test.
func hogs(t *testing.T, n int) (end func()) {
	t.Helper()
	var all []*exec.Cmd
	for range n {
		cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	end = func() {
		for _, cmd := range all {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		all = nil
	}
	t.Cleanup(end)
	return end
}

// comesTrue reports whether the condition comes to hold before the limit.
func comesTrue(limit time.Duration, holds func() bool) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-time.After(
		20 * time.Millisecond,
	) {
		if holds() {
			return true
		}
	}
	return false
}

// event is when something of the kind first happened to an attempt of the site.
func (s *site) event(t *testing.T, kind lrm.RecordEvent) (time.Time, bool) {
	t.Helper()
	records, err := lrm.ReadRecords(filepath.Join(s.state, "runs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(records, func(r lrm.Record) bool { return r.Event == kind })
	if i < 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(records[i].WallMillis), true
}

// TestTheOwnerComesFirst lets the owner of a machine begin to work while a job
// runs there: once on this machine as it is, and once on one that is told to have
// nobody else, because this one may be busy with other things.
func TestTheOwnerComesFirst(t *testing.T) { // not parallel: others would be owners, too
	t.Run("as it is", func(t *testing.T) {
		ownerComesFirst(t, yielding, func(n int) func() { return hogs(t, n) })
	})
	t.Run("alone", func(t *testing.T) {
		k := newKernel(t)
		ownerComesFirst(t, strings.Replace(yielding, "priority: idle", "priority: low, root: "+k.root, 1),
			func(n int) func() {
				k.busy.Store(int64(n))
				end := hogs(t, n)
				return func() {
					end()
					k.busy.Store(0)
				}
			})
	})
}

// kernel tells of a machine on which nobody else does anything.
type kernel struct {
	root string
	busy atomic.Int64 // processes that take all they can get
}

func newKernel(t *testing.T) *kernel {
	t.Helper()
	k := &kernel{root: t.TempDir()}
	if err := os.Mkdir(filepath.Join(k.root, "proc"), 0o700); err != nil {
		t.Fatal(err)
	}
	stat, err := os.Create(filepath.Join(k.root, "proc", "stat"))
	if err != nil {
		t.Fatal(err)
	}
	cores := int64(runtime.NumCPU())
	ticks := 0.0
	write := func() {
		text := fmt.Sprintf("cpu  %012d 0 0 0 0 0 0 0\n", int64(ticks)) +
			strings.Repeat("cpu0 0\n", int(cores))
		if _, err := stat.WriteAt([]byte(text), 0); err != nil {
			t.Error(err)
		}
	}
	write()
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		last := time.Now()
		for {
			select {
			case <-done:
				stat.Close()
				return
			case <-time.After(50 * time.Millisecond):
			}
			const ticksPerSecond = 100
			now := time.Now()
			ticks += float64(min(k.busy.Load(), cores)) * now.Sub(last).Seconds() * ticksPerSecond
			last = now
			write()
		}
	}()
	t.Cleanup(func() { close(done); <-stopped })
	return k
}

func ownerComesFirst(t *testing.T, settings string, begin func(n int) func()) {
	t.Helper()
	cores := runtime.NumCPU()
	m := newMesh(t, submitOnly, settings)
	s := m.sites[1]
	quiet := func() bool {
		status, err := s.client.Status(t.Context())
		return err == nil && status.Owner != nil && !status.Owner.Busy &&
			status.Owner.OtherCores != nil &&
			*status.Owner.OtherCores < float64(cores)-.5
	}
	if !comesTrue(30*time.Second, quiet) {
		t.Skip("this machine is busy with something else: who the owner is cannot be told apart")
	}
	id := m.begin(t, result, "ticks=80", "put=/out/r:result 0")
	if !comesTrue(
		patience, func() bool { return m.job(t, id).Phase == view.PhaseRunning && quiet() },
	) {
		t.Skip("this machine became busy with something else")
	}
	if _, frozen := s.event(t, lrm.RecordFrozen); frozen {
		t.Skip("this machine was busy with something else for a while")
	}

	began := time.Now()
	end := begin(2 * cores)
	if !comesTrue(10*time.Second, func() bool {
		_, frozen := s.event(
			t, lrm.RecordFrozen,
		)
		return frozen
	}) {
		t.Fatalf("the job runs on beside a busy owner: %+v", s.command(t, "status").out)
	}
	frozen, _ := s.event(t, lrm.RecordFrozen)
	took := frozen.Sub(began)
	t.Logf(
		"%d busy processes of the owner: the job was suspended %s after the first began", 2*cores,
		took.Round(time.Millisecond),
	)
	if took > 2*time.Second {
		t.Errorf("it took %s, want at most 2 s", took)
	}
	m.awaitPhase(t, id, view.PhaseSuspended)
	if a := m.submit(t, "status", string(id)); !strings.Contains(
		a.out+a.err, "its owner is using the machine",
	) {
		t.Errorf("submit status does not say why: %s%s", a.out, a.err)
	}
	if a := s.command(t, "status", "--all"); !strings.Contains(
		a.out, "paused: you are using the machine",
	) || !strings.Contains(a.out, "processors") {
		t.Errorf("siteagent status does not say so: %s", a.out)
	}
	if a := m.submit(t, "run", "--no-wait", "--wasm", bin.guest, "--", "exit=0"); a.code == 0 {
		t.Errorf("a job was placed beside a busy owner: %+v", a)
	}
	time.Sleep(leaseLength + leaseMargin) // leases go on while it is suspended
	if job := m.job(t, id); job.Phase != view.PhaseSuspended || job.Moves != 0 {
		t.Errorf("after a lease the job is %s with %d moves", job.Phase, job.Moves)
	}
	end()
	gone := time.Now()
	if !comesTrue(3*time.Minute, func() bool {
		_, resumed := s.event(
			t, lrm.RecordResumed,
		)
		return resumed
	}) {
		t.Fatalf("the owner is away and the job is still suspended: %s", s.command(t, "status").out)
	}
	resumed, _ := s.event(t, lrm.RecordResumed)
	t.Logf("it went on %s after the owner left", resumed.Sub(gone).Round(time.Millisecond))
	if !comesTrue(5*time.Minute, func() bool { return m.job(t, id).Phase.Ended() }) {
		t.Fatalf("the job does not end: %+v", m.job(t, id))
	}
	m.wantResults(t, id, 1)
	m.audit(t)
	m.replay(t)
}

// traces are what an agent's jobs could have left on the machine.
type traces struct {
	Processes, Files, Groups, Mounts, IPC, Shared, Temporary []string
}

func lines(path string) []string {
	text, _ := os.ReadFile(path) // not there: nothing is left in it
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// traces looks for what the site's jobs may have left.
func (s *site) traces(t *testing.T, temporary string) traces {
	t.Helper()
	var found traces
	found.Processes = s.processes()
	found.Files = append(
		names(t, filepath.Join(s.state, "attempts")), names(t, filepath.Join(s.state, "modules"))...,
	)
	found.Temporary = names(t, temporary)
	sum := sha256.Sum256([]byte(filepath.Join(s.state, "runs.jsonl")))
	prefix := "mrs-" + hex.EncodeToString(sum[:6]) + "-"
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), prefix) {
			found.Groups = append(found.Groups, path)
		}
		return nil // groups of others come and go
	})
	for _, line := range lines("/proc/self/mountinfo") {
		if strings.Contains(line, s.state) {
			found.Mounts = append(found.Mounts, line)
		}
	}
	for _, kind := range []string{"msg", "sem", "shm"} {
		for _, line := range lines("/proc/sysvipc/" + kind)[1:] {
			fields := strings.Fields(line)
			found.IPC = append(found.IPC, kind+" "+strings.Join(fields[:min(2, len(fields))], " "))
		}
	}
	for _, name := range names(t, "/dev/shm") {
		if strings.Contains(name, "left-by-a-job") {
			found.Shared = append(found.Shared, name)
		}
	}
	return found
}

func (f traces) none() bool {
	return len(f.Processes)+len(f.Files)+len(f.Groups)+len(f.Mounts)+
		len(f.Shared)+len(f.Temporary) == 0
}

// litter is a command that leaves whatever it can.
const litter = `ipcmk -M 4096 >/dev/null 2>&1; ipcmk -Q >/dev/null 2>&1; echo x >/tmp/left; echo x >/dev/shm/left-by-a-job
mkdir -p deep/er; echo x >deep/er/file; (setsid sleep 1000 >/dev/null 2>&1 &) ; sleep 1000 & sleep "$1"; exit 0`

// TestNothingIsLeftBehind looks for what jobs left when they have ended and their
// submitter has taken note, and when the agent was killed and started again.
func TestNothingIsLeftBehind(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	m := newMesh(t, submitOnly, withCommands())
	s := m.sites[1]
	status, err := s.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commands := slices.Contains(status.Kinds, "command")
	eventually(t, patience, "the ceilings were tried", func() bool {
		status, err := s.client.Status(t.Context())
		return err == nil && !slices.ContainsFunc(
			status.Walls, func(w view.Wall) bool { return !w.Tried && w.Fault != "" },
		)
	})
	if a := s.command(t, "status", "--all"); strings.Contains(a.out, "FAILED") ||
		!strings.Contains(a.out, "self-test passed") {
		t.Errorf("ceilings: %s", a.out)
	} else {
		for line := range strings.Lines(a.out) {
			if strings.HasPrefix(line, "limit") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
	before := s.traces(t, temporary)
	clean := func(when string) {
		t.Helper()
		var left traces
		if !comesTrue(20*time.Second, func() bool {
			left = s.traces(t, temporary)
			return left.none() && slices.Equal(left.IPC, before.IPC)
		}) {
			t.Errorf("%s this is left: %+v", when, left)
		}
	}
	clean("before anything ran")
	m.run(t, "ticks=3").want(t, 0)
	m.run(t, "exit=3").want(t, 3)
	if commands {
		m.submit(t, "run", "--", "sh", "-c", litter, "sh", "0.5").want(t, 0)
	} else {
		t.Log("commands do not work here; their litter is not looked for")
	}
	clean("after the jobs")

	waiting := m.begin(t, result, "ticks=30", "put=/out/r:result 0")
	m.awaitPhase(t, waiting, view.PhaseRunning)
	if commands {
		a := m.submit(t, "run", "-d", "--parsable", "--", "sh", "-c", litter, "sh", "3")
		a.want(t, 0)
		eventually(
			t, patience, "the command runs",
			func() bool { return len(s.traces(t, temporary).Files) >= 2 && len(s.processes()) >= 4 },
		)
	}
	s.kill(t)
	s.awaitNoProcess(t)
	s.start(t)
	if !comesTrue(2*time.Minute, func() bool { return m.job(t, waiting).Phase.Ended() }) {
		t.Fatalf("the job does not end: %+v", m.job(t, waiting))
	}
	m.wantResults(t, waiting, 1)
	eventually(t, 2*patience, "all jobs have ended", func() bool {
		status, err := s.client.Status(t.Context())
		return err == nil && len(status.Running) == 0
	})
	clean("after a kill of the agent")
	m.audit(t)
}
