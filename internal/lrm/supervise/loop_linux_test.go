package supervise

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A supervisor looks again when the first of lease, limit and share can have ended, and
// rarely where only a command changes anything.
func TestTheNextCheck(t *testing.T) {
	t.Parallel()
	late := lrm.BootNow().Add(time.Hour)
	limited := Spec{Limits: lrm.Limits{WallTime: time.Minute}}
	for _, c := range []struct {
		name string
		s    supervisor
		want time.Duration
	}{
		{"nothing ends", supervisor{lease: late}, checkEvery},
		{"the lease is over", supervisor{}, 0},
		{"frozen", supervisor{frozen: true}, checkEvery},
		{"killed", supervisor{verdict: &Report{}}, checkEvery},
		{"nearly all time has run", supervisor{lease: late, spec: limited, ran: time.Minute - 7}, 7},
		{"time is over", supervisor{lease: late, spec: limited, ran: time.Minute + 7}, 0},
		{"no limit", supervisor{lease: late, ran: time.Hour}, checkEvery},
		{
			"near its share",
			supervisor{lease: late, spec: Spec{MeterCPU: true}, meter: meter{many: 1, every: 5}},
			5,
		},
		{
			"the kernel holds its share",
			supervisor{lease: late, meter: meter{many: 1, every: 5}},
			checkEvery,
		},
	} {
		if got := c.s.nextCheck(); got != c.want {
			t.Errorf("%s: the next check is in %s, want %s", c.name, got, c.want)
		}
	}
	soon := supervisor{lease: lrm.BootNow().Add(checkEvery / 2)}
	if got := soon.nextCheck(); got > checkEvery/2 {
		t.Errorf("the lease's end is looked for in %s", got)
	}
}

// Only the time in which it runs counts.
func TestTheTimeThatIsLeft(t *testing.T) {
	t.Parallel()
	s := supervisor{spec: Spec{Limits: lrm.Limits{WallTime: time.Hour}}, ran: time.Minute}
	s.pauseClock() // it stands
	if left, bounded := s.wallLeft(); !bounded || left != 59*time.Minute {
		t.Errorf("left are %s, %v, want 59 minutes", left, bounded)
	}
	s.since = time.Now().Add(-10 * time.Minute)
	if left, _ := s.wallLeft(); left > 49*time.Minute || left < 40*time.Minute {
		t.Errorf("left are %s, want 49 minutes", left)
	}
	s.pauseClock()
	if !s.since.IsZero() || s.ran < 11*time.Minute || s.ran > 20*time.Minute {
		t.Errorf("ran %s, want 11 minutes", s.ran)
	}
	s.begin()
	if s.since.IsZero() {
		t.Error("it does not run")
	}
}

// The end that is told is the first reason of the supervisor's own, else a full stream, else
// what the runner says, else what the system says.
func TestTheEndThatIsTold(t *testing.T) {
	t.Parallel()
	verdict, report := &Report{Cause: grid.CauseStopped}, &Report{Cause: grid.CauseMemory}
	for _, c := range []struct {
		name string
		s    supervisor
		end  runnerEnd
		want Report
		lost bool
	}{
		{
			"verdict",
			supervisor{verdict: verdict, spec: Spec{Reports: true}},
			runnerEnd{overflowed: true, report: report, signal: 9},
			*verdict, false,
		},
		{
			"stream",
			supervisor{spec: Spec{Reports: true, Limits: lrm.Limits{OutputBytes: 1 << 10}}},
			runnerEnd{overflowed: true, report: report},
			Report{Cause: grid.CauseOutput, Text: "printed more than 1.0 KiB to one stream"},
			false,
		},
		{
			"report",
			supervisor{spec: Spec{Reports: true}},
			runnerEnd{report: report, signal: 9},
			*report, false,
		},
		{
			"none",
			supervisor{spec: Spec{Reports: true}},
			runnerEnd{text: "x", signal: 9},
			Report{Cause: grid.CauseSandbox, Text: "the runner ended without a report: x"},
			true,
		},
		{
			"signal",
			supervisor{},
			runnerEnd{report: report, signal: 9, text: "x", code: -1},
			Report{Cause: grid.CauseSignal, Code: 9, Text: "x"},
			false,
		},
		{
			"exit",
			supervisor{},
			runnerEnd{report: report, code: 3},
			Report{Cause: grid.CauseExited, Code: 3},
			false,
		},
	} {
		c.s.ran = time.Minute
		got := c.s.judge(c.end)
		if got.Report != c.want || got.Broken != c.lost || got.Wall != time.Minute {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A program that is ahead of its share stands until it is not, a moment at a time; what it
// saves up is worth a moment, too.
func TestThePausesOfAMeter(t *testing.T) {
	t.Parallel()
	spec := Spec{Limits: lrm.Limits{MilliCPUs: 500}}
	m := newMeter(spec)
	burst := meterBurst / 2
	if m.cores != .5 || m.credit != burst || m.every != meterEvery || m.many < 1 {
		t.Errorf("it begins as %+v", m)
	}
	for _, dir := range []string{"", "group"} {
		tree := newMeter(Spec{Tree: true, FreezeDir: dir})
		alone := newMeter(Spec{FreezeDir: dir})
		if (tree.every == meterRarely) != (dir == "") || alone.every != meterEvery {
			t.Errorf("with %q it looks every %s at a tree, %s at a process", dir, tree.every, alone.every)
		}
	}
	now := time.Unix(1_700_000_000, 0)
	for i, c := range []struct{ after, used, pause, credit time.Duration }{
		{0, time.Hour, 0, burst}, // before the first look anything may have been used
		{time.Second, time.Hour, 0, burst},
		{0, time.Hour + burst, 0, 0},
		{0, time.Hour + burst + 10*time.Millisecond, 20 * time.Millisecond, -10 * time.Millisecond},
		{20 * time.Millisecond, time.Hour, 0, 0}, // never less than it was
		{0, time.Hour + burst + 10*time.Millisecond, 0, 0},
		{0, 2 * time.Hour, longestHold, burst + 10*time.Millisecond - time.Hour},
	} {
		now = now.Add(c.after)
		if got := m.look(now, c.used); got != c.pause || m.credit != c.credit {
			t.Errorf("look %d: a pause of %s with a credit of %s, want %s, %s",
				i, got, m.credit, c.pause, c.credit)
		}
	}
	m.many = 2
	m.look(now, m.used+2*meterIdle)
	m.look(now, m.used+meterIdle)
	if got := m.nextLook(now, time.Time{}); got != meterLatest {
		t.Errorf("it looks in %s at a program that waits, want %s", got, meterLatest)
	}
	m.look(now, m.used+2*meterIdle)
	for credit, want := range map[time.Duration]time.Duration{
		-time.Hour: meterEvery, 0: meterEvery, 100 * time.Millisecond: 50 * time.Millisecond,
		time.Hour: meterLatest,
	} {
		m.credit = credit
		if got := m.nextLook(now, time.Time{}); got != want {
			t.Errorf("with a credit of %s it looks in %s, want %s", credit, got, want)
		}
		if got := m.nextLook(now, now.Add(time.Minute)); got != time.Minute {
			t.Errorf("it looks in %s at one that stands for a minute", got)
		}
	}
}

// Who is ahead of its share stands until its pause is over, and then goes on.
func TestSharingAProcessor(t *testing.T) {
	t.Parallel()
	cmd := still(t, 1, `i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo 1; read x <&3; true`)
	pid := cmd.Process.Pid
	spec := Spec{MeterCPU: true, Limits: lrm.Limits{MilliCPUs: 1000}}
	s := supervisor{spec: spec, runner: &runner{cmd: cmd, spec: spec}, meter: newMeter(spec)}
	now := time.Now()
	s.share(now)
	if s.meter.at != now || s.meter.used < clockTick || !s.heldTill.IsZero() {
		t.Fatalf("the first look: %+v, held till %s", s.meter, s.heldTill)
	}
	s.meter.used, s.meter.credit = s.meter.used-clockTick, 0
	s.share(now.Add(meterEvery - 1)) // too soon
	awaitState(t, pid, "S")
	if s.meter.at != now {
		t.Error("it looks more often than it should")
	}
	s.meter.at = now.Add(meterEvery)
	at := now.Add(2 * meterEvery)
	s.meter.credit = -meterEvery
	s.share(at)
	awaitState(t, pid, "T")
	if want := at.Add(clockTick); !s.heldTill.Equal(want) {
		t.Fatalf("held for %s, want %s", s.heldTill.Sub(at), clockTick)
	}
	s.share(s.heldTill.Add(-1))
	awaitState(t, pid, "T")
	if s.heldTill.IsZero() || s.meter.at != at {
		t.Error("it looked during the pause")
	}
	s.share(s.heldTill)
	awaitState(t, pid, "S")
	if !s.heldTill.IsZero() || s.verdict != nil {
		t.Errorf("held till %s, %+v", s.heldTill, s.verdict)
	}
}

// Commands wait for nobody, the last events are kept, and what is not there is no runner.
func TestTheAgentsSide(t *testing.T) {
	t.Parallel()
	p := &process{events: make(chan lrm.Event, 2)}
	for _, kind := range []lrm.EventKind{lrm.Started, lrm.Frozen, lrm.Resumed} {
		p.emit(lrm.Event{Kind: kind})
	}
	if a, b := <-p.events, <-p.events; a.Kind != lrm.Frozen || b.Kind != lrm.Resumed {
		t.Errorf("kept %v and %v, want the last two", a.Kind, b.Kind)
	}
	text := `{"event":1,"pid":1}` + "\n" + `{"event":2,"pid":77}` + "\n" +
		`{"event":3,"pid":78,"again":7}` + "\n" + // a part that can be read counts for nothing
		`{"exited":{"code":5},"again":true,"kept":true}` + "\n"
	end, again, kept := p.listen(&child{stdout: bufio.NewReader(strings.NewReader(text))})
	wrong := end == nil || end.Code != 5 || !again || kept
	if wrong || p.runner.Load() != 77 || len(p.events) != 2 {
		t.Errorf("heard %+v, %v, of process %d", end, again, p.runner.Load())
	}
	if _, known := p.CPUTime(); known {
		t.Error("what has ended has a processor time")
	}
	if err := p.SetLease(1); err != nil {
		t.Error(err)
	}
	near, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	want, _ := near.Deadline()
	if got := specDeadline(near); !got.Equal(want) {
		t.Errorf("the deadline is %s, want %s", got, want)
	}
	far, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if left := time.Until(specDeadline(far)); left > specTimeout || left < specTimeout/2 {
		t.Errorf("the deadline is in %s, want %s", left, specTimeout)
	}
	if isProcess(0) || isProcess(1) || !isProcess(2) {
		t.Error("1 is the first process of a system, never a runner")
	}
}

// A record at its bound stays; what cannot be read or moved says so.
func TestRotatingAtTheBound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs")
	recorded(t, path, 1, true)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		above int64
		want  bool
	}{{info.Size(), false}, {info.Size() - 1, true}, {0, false}} {
		if did, err := Rotate(path, c.above); err != nil || did != c.want {
			t.Errorf("above %d: %v, %v, want %v", c.above, did, err, c.want)
		}
	}
	if did, err := Rotate(filepath.Join(lrm.RecordBefore(path), "below"), 0); err == nil || did {
		t.Errorf("below a file: %v, %v", did, err)
	}
	recorded(t, path, 2, true)
	if err := os.Remove(lrm.RecordBefore(path)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(lrm.RecordBefore(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if did, err := Rotate(path, 0); err == nil || did {
		t.Errorf("with a directory in its place: %v, %v", did, err)
	}
}

// What another's command has told meanwhile is not told again.
func TestAFarewellThatWasTold(t *testing.T) {
	t.Parallel()
	id := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: 3}, Token: 7}
	dir := t.TempDir()
	told := filepath.Join(t.TempDir(), "told")
	f := lrm.Farewell{
		Dir: dir, Text: []byte("gone"), Command: []string{"/bin/sh", "-c", `cat "$1"/* >"$0"`, told},
	}
	name := filepath.Join(dir, strings.ReplaceAll(id.String(), "#", "-"))
	unlock, err := lockFile(filepath.Join(dir, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- farewell(f, id) }()
	for _, err = os.Stat(name); err != nil; _, err = os.Stat(name) {
		select {
		case err := <-done:
			t.Fatal("it did not wait for its turn:", err)
		default:
			runtime.Gosched()
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(told); !errors.Is(err, os.ErrNotExist) {
		t.Error("it was told again")
	}
	if err := farewell(f, id); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(told); err != nil || string(text) != "gone" {
		t.Errorf("told %q, %v", text, err)
	}
	for name, spoil := range map[string]func(*lrm.Farewell) error{
		"no directory": func(f *lrm.Farewell) error { f.Dir += "/none"; return nil },
		"no success": func(f *lrm.Farewell) error {
			f.Command = []string{"/bin/sh", "-c", "exit 1"}
			return nil
		},
		"no lock": func(f *lrm.Farewell) error {
			f.Dir = t.TempDir()
			return os.Mkdir(filepath.Join(f.Dir, ".lock"), 0o700)
		},
		"a directory in its place": func(f *lrm.Farewell) error {
			f.Dir = t.TempDir()
			return os.Mkdir(filepath.Join(f.Dir, strings.ReplaceAll(id.String(), "#", "-")), 0o700)
		},
	} {
		other := f
		other.Command = []string{"/bin/sh", "-c", "true"}
		if err := spoil(&other); err != nil {
			t.Fatal(err)
		}
		if err := farewell(other, id); err == nil {
			t.Errorf("%s: told", name)
		}
	}
}

// A process is who it was while its start and the machine's are the same, whatever its name.
func TestWhoAProcessIs(t *testing.T) {
	t.Parallel()
	id := ownIdentity()
	other := id
	other.Start++
	foreign := id
	foreign.Boot = "another"
	none := id
	none.PID = 0
	if !alive(id) || alive(other) || alive(foreign) || alive(none) || id.Start == 0 || id.Boot == "" {
		t.Errorf("%+v lives: %v; others: %v %v %v",
			id, alive(id), alive(other), alive(foreign), alive(none))
	}
	if fields, ok := statFields(id.PID); !ok ||
		fields[startField] != strconv.FormatUint(id.Start, 10) {
		t.Errorf("it started at %d, the kernel says %v", id.Start, fields)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), ") S 1 (R 1")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	cmd := still(t, 1, `echo 1; read x <&3; true`)
	started := startNamed(t, name)
	buffer := make([]byte, statBytes)
	for _, pid := range []string{started, "self"} {
		if _, ok := parentOf(pid, buffer); !ok {
			t.Errorf("process %s has no parent", pid)
		}
	}
	if parent, ok := parentOf(started, buffer); !ok || parent != os.Getpid() {
		t.Errorf("its parent is %d, %v, want %d", parent, ok, os.Getpid())
	}
	if _, ok := parentOf("none", buffer); ok {
		t.Error("nobody has a parent")
	}
	if _, ok := parentOf("self", buffer[:2]); ok {
		t.Error("a parent from nothing")
	}
	if state, start, ok := procStat(cmd.Process.Pid); !ok || state != 'S' || start < id.Start {
		t.Errorf("it is %c since %d, %v", state, start, ok)
	}
	if fields, ok := readStat(filepath.Join("/proc", started, "comm")); ok {
		t.Errorf("no fields are %v", fields)
	}
}

// startNamed starts this program under another name, as a supervisor that waits.
func startNamed(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command(name, Arg)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return strconv.Itoa(cmd.Process.Pid)
}

// The groups and keys of the owner stay with the owner.
func TestLeavingTheOwner(t *testing.T) {
	t.Parallel()
	type have struct {
		groups string
		ring   int
		err    error
	}
	all := make(chan have, 2)
	go func() {
		defer close(all)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if os.Getuid() == 0 {
			more := []uint32{4242} // of this thread alone
			if _, _, errno := unix.RawSyscall(
				sysSetgroups, 1, uintptr(unsafe.Pointer(&more[0])), 0,
			); errno != 0 {
				return
			}
		}
		for i := range 2 {
			var h have
			if i == 1 {
				h.err = LeaveOwner()
			}
			text, _ := os.ReadFile("/proc/thread-self/status")
			_, h.groups, _ = strings.Cut(string(text), "\nGroups:")
			h.groups, _, _ = strings.Cut(h.groups, "\n")
			h.groups = strings.TrimSpace(h.groups)
			h.ring, _ = unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
			all <- h
		}
	}()
	before, ok := <-all
	if !ok {
		t.Skip("this root may set no groups, as in a user namespace")
	}
	after := <-all
	if after.err != nil || before.ring != 0 && after.ring == before.ring {
		t.Errorf("before: %+v, after: %+v", before, after)
	}
	if os.Getuid() == 0 && (before.groups != "4242" || after.groups != "") {
		t.Errorf("groups were %q and are %q", before.groups, after.groups)
	}
}

// Who has the lock of a name has it alone, until it lets go.
func TestALockIsHeldByOne(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), ".lock")
	unlock, err := lockFile(name)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	try := func() error { return unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
	if err := try(); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("another one asks for it while it is held: %v", err)
	}
	unlock()
	if err := try(); err != nil {
		t.Errorf("another one asks for it when it was let go: %v", err)
	}
	if _, err := lockFile(filepath.Join(name, "below")); err == nil {
		t.Error("a lock where no file can be")
	}
}
