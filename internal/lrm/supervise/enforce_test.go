//go:build unix

package supervise_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func realPool(t *testing.T) *supervise.Pool {
	t.Helper()
	return supervise.NewPool([]string{self(t), supervise.Arg})
}

// runs reports whether the process is there and no zombie, as far as the system tells.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(text), ") Z ")
}

// toldPID is the process ID that a runner wrote, 0 if it did not come to that.
func toldPID(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return 0
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func expect(t *testing.T, p lrm.Process, want lrm.EventKind) lrm.Event {
	t.Helper()
	select {
	case e := <-p.Events():
		if e.Kind != want {
			t.Fatalf("event %v, want %v", e.Kind, want)
		}
		return e
	case <-time.After(30 * time.Second):
		t.Fatalf("no event, want %v", want)
	}
	return lrm.Event{}
}

// The end of a lease freezes, a longer one lets run on, and neither frozen time
// nor what the other does counts.
func TestLeasesFreezeAndResume(t *testing.T) {
	t.Parallel()
	s := spec(t, "sleep")
	began := lrm.BootNow()
	pool := realPool(t)
	p, wait := attempt(t, pool, s)
	other, waitOther := attempt(t, pool, next(t, 2, "sleep"))
	expect(t, other, lrm.Started)
	expect(t, p, lrm.Started)
	first := lrm.BootNow().Add(300 * time.Millisecond)
	if err := p.SetLease(first); err != nil {
		t.Fatal(err)
	}
	frozen := expect(t, p, lrm.Frozen)
	if early := first.Sub(frozen.At); early > 0 {
		t.Errorf("frozen %s before the lease's end", early)
	}
	if err := p.SetLease(lrm.BootNow().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	until := lrm.BootNow().Add(400 * time.Millisecond)
	if err := p.SetLease(until); err != nil {
		t.Fatal(err)
	}
	expect(t, p, lrm.Resumed)
	again := expect(t, p, lrm.Frozen)
	if early := until.Sub(again.At); early > 0 {
		t.Errorf("frozen %s before the second lease's end", early)
	}
	stood := time.Now()
	for time.Since(stood) < 300*time.Millisecond { // it stands; this time must not count
		if _, known := p.(lrm.Meter).CPUTime(); !known {
			t.Fatal("a frozen attempt has ended")
		}
	}
	over := lrm.BootNow()
	if err := p.Stop("done"); err != nil {
		t.Fatal(err)
	}
	got := wait()
	if got.Cause != grid.CauseStopped || got.Text != "done" || got.Wall <= 0 ||
		got.Wall > over.Sub(began)-300*time.Millisecond {
		t.Errorf("ending = %+v of %s", got, over.Sub(began))
	}
	want := []lrm.RecordEvent{
		lrm.RecordStarted, lrm.RecordFrozen, lrm.RecordResumed, lrm.RecordFrozen, lrm.RecordEnded,
	}
	if got := events(t, s); !slices.Equal(got, want) {
		t.Errorf("records = %v, want %v", got, want)
	}
	if err := other.Stop("done"); err != nil {
		t.Fatal(err)
	}
	if got := waitOther(); got.Wall < over.Sub(began)/4 {
		t.Errorf("the other's ending = %+v", got)
	}
	if len(other.Events()) != 0 {
		t.Errorf("the other was told %v", <-other.Events())
	}
}

// Who is suspended stands, whatever its lease; the lease's end stands, whatever the owner says.
func TestSuspensionAndLease(t *testing.T) {
	t.Parallel()
	s := spec(t, "sleep")
	p, wait := attempt(t, realPool(t), s)
	expect(t, p, lrm.Started)
	for _, do := range []func() error{
		func() error { return p.Suspend(true) },
		func() error { return p.Suspend(true) },
		func() error { return p.SetLease(lrm.BootNow().Add(2 * time.Hour)) }, // does not resume it
		func() error { return p.SetLease(0) },
		func() error { return p.Suspend(false) }, // nor does this, without a lease
		func() error { return p.SetLease(lrm.BootNow().Add(time.Hour)) },
		func() error { return p.Stop("done") },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	wait()
	want := []lrm.RecordEvent{
		lrm.RecordStarted, lrm.RecordFrozen, lrm.RecordResumed, lrm.RecordEnded,
	}
	if got := events(t, s); !slices.Equal(got, want) {
		t.Errorf("records = %v, want %v", got, want)
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	s := spec(t, "sleep")
	s.Limits.WallTime = 300 * time.Millisecond
	p, wait := attempt(t, realPool(t), s)
	expect(t, p, lrm.Started)
	if err := p.Suspend(true); err != nil {
		t.Fatal(err)
	}
	expect(t, p, lrm.Frozen)
	limit, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := p.Wait(limit); err == nil { // what stands does not reach its limit
		t.Error("ended while it was frozen")
	}
	if err := p.Suspend(false); err != nil {
		t.Fatal(err)
	}
	got := wait()
	if got.Cause != grid.CauseTimeLimit || got.Text != "ran longer than 300ms" ||
		got.Wall < s.Limits.WallTime || got.Wall > s.Limits.WallTime+5*time.Second {
		t.Errorf("ending = %+v", got)
	}
}

func TestLeaseOverBeforeTheStart(t *testing.T) {
	t.Parallel()
	s := spec(t, "exit", "0")
	s.LeaseUntil = lrm.BootNow()
	if got := end(t, s); got.Cause != grid.CauseStopped || !strings.Contains(got.Text, "lease ended") {
		t.Errorf("ending = %+v", got)
	}
	if got := events(t, s); len(got) != 0 {
		t.Errorf("records = %v, want none", got)
	}
}

// A stream that is full ends the attempt, also when the program ended just then.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit       int64
		cause       grid.ExitCause
		stdout, err int64
	}{
		"fits":   {1000, grid.CauseExited, 1000, 500},
		"stdout": {999, grid.CauseOutput, 999, 500},
		"both":   {100, grid.CauseOutput, 100, 100},
	} {
		s := spec(t, "print", "1000")
		s.Limits.OutputBytes = tt.limit
		s.Env = []string{"GOCOVERDIR=" + t.TempDir()} // or it says that it lacks one, when measured
		got := end(t, s)
		out, err := os.Stat(s.Stdout)
		if err != nil {
			t.Fatal(err)
		}
		if got.Cause != tt.cause || out.Size() != tt.stdout {
			t.Errorf("%s: ending = %+v with %d bytes, want %v with %d",
				name, got, out.Size(), tt.cause, tt.stdout)
		}
		if errs, err := os.Stat(s.Stderr); tt.cause == grid.CauseExited &&
			(err != nil || errs.Size() != tt.err) {
			t.Errorf("%s: standard error has %d bytes, %v", name, errs.Size(), err)
		}
	}
}

// Without a place for its record nothing runs.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	s := spec(t, "tell", t.TempDir()+"/pid")
	s.RecordPath = s.Dir
	if got := end(t, s); got.Cause != grid.CauseSandbox || got.Text == "" {
		t.Errorf("ending = %+v", got)
	}
	if pid := toldPID(t, s.Runner[len(s.Runner)-1]); pid != 0 {
		t.Error("it ran")
	}
}

// A program gets no more than its share of a processor, but for a moment.
func TestShareOfAProcessor(t *testing.T) {
	t.Parallel()
	s := spec(t, "spin")
	s.MeterCPU, s.Limits.MilliCPUs, s.Limits.WallTime = true, 100, time.Second
	p, wait := attempt(t, realPool(t), s)
	expect(t, p, lrm.Started)
	var used time.Duration
	for known := true; known; {
		var now time.Duration
		if now, known = p.(lrm.Meter).CPUTime(); known {
			used = max(used, now)
		}
		time.Sleep(time.Millisecond)
	}
	got := wait()
	if most := got.Wall/10 + 350*time.Millisecond; got.Cause != grid.CauseTimeLimit || used > most {
		t.Errorf("used %s of %s, want at most %s; %+v", used, got.Wall, most, got)
	}
	const tick = 10 * time.Millisecond // of a processor; two processes are counted
	r, err := p.Wait(t.Context())
	if err != nil || used > 0 && r.CPU < max(used-4*tick, tick) {
		t.Errorf("the result says %s, %v; %s were seen", r.CPU, err, used)
	}
	if got := events(t, s); len(got) != 2 {
		t.Errorf("records = %v: pauses are none of them", got)
	}
}

// What an earlier agent left is waited for; what does not end by itself is killed, and
// what is not of this boot, or is another process by now, is left alone.
func TestRecover(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes cannot be told apart here:", err)
	}
	b := startByHand(t)
	s := next(t, 1, "sleep")
	b.order(s)
	pid := b.hearEvent(lrm.Started).PID
	if err := b.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := supervise.Recover(short, s.RecordPath); err == nil {
		t.Error("recovered while a supervisor was there")
	}
	if !runs(pid) || !runs(b.cmd.Process.Pid) {
		t.Error("killed without any patience")
	}
	for _, id := range []lrm.Identity{
		{PID: os.Getpid()}, {PID: os.Getpid(), Start: 1, Boot: "another"}, {PID: -1},
	} {
		rec, err := lrm.OpenRecorder(s.RecordPath, next(t, 9).Attempt)
		if err != nil {
			t.Fatal(err)
		}
		if err := rec.Append(lrm.Record{Event: lrm.RecordStarted, Supervisor: id}); err != nil {
			t.Fatal(err)
		}
		rec.Close()
	}
	reaped := make(chan struct{})
	go func() {
		_ = b.cmd.Wait()
		close(reaped)
	}()
	t.Cleanup(func() { // one waits at a time
		_ = b.cmd.Process.Kill()
		<-reaped
	})
	if err := supervise.Recover(t.Context(), s.RecordPath); err != nil {
		t.Error(err)
	}
	until(t, func() bool { return !runs(pid) })
	if err := supervise.Recover(t.Context(), s.RecordPath+"-none"); err != nil {
		t.Error("no record at all:", err)
	}
}
