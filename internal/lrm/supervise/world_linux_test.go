package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// CanTrace reports why this process may not trace its child, as in some containers: no process
// can be bounded before its first step then. It is nil where it may.
func CanTrace() error {
	tried := make(chan error)
	go func() {
		runtime.LockOSThread() // who traces is a thread, which ends with the goroutine
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		err := cmd.Start()
		if err == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		tried <- err
	}()
	return <-tried
}

// heldOpen reports whether this process has the file open, or one below that directory.
func heldOpen(t *testing.T, path string) bool {
	t.Helper()
	files, err := names("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range files {
		to, err := os.Readlink("/proc/self/fd/" + fd)
		if err == nil && (to == path || strings.HasPrefix(to, path+"/")) {
			return true
		}
	}
	return false
}

// content reads a whole file.
func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// printed reads the file of a stream; there is none where nothing was printed.
func printed(t *testing.T, path string) string {
	t.Helper()
	if !exists(path) {
		return ""
	}
	return content(t, path)
}

// Where a program can be bounded before its first step it runs in the runner's place, with all
// that its enclosure promises; else the runner does, and is told what it is to become.
func TestWhoIsStarted(t *testing.T) {
	t.Parallel()
	if err := CanTrace(); err != nil {
		t.Skip("this kernel, or a container, lets no process trace its child:", err)
	}
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	const world = `ulimit -n; cat <&4; echo told >&3; cat /proc/self/oom_score_adj; ` +
		`cut -d' ' -f19,41 /proc/self/stat; exit 4`
	for name, c := range map[string]struct {
		spoil func(*Spec)
		own   bool // it is started itself
	}{
		"a program":              {func(*Spec) {}, true},
		"none":                   {func(s *Spec) { s.Enclosure.Program = s.Dir + "/none" }, false},
		"no group":               {func(s *Spec) { s.Enclosure.Join = []string{s.Dir + "/n/d"} }, false},
		"no limit":               {func(s *Spec) { s.Enclosure.Rlimits = map[int]uint64{99: 1} }, false},
		"nobody to tell":         {func(s *Spec) { s.Enclosure.StatusPath = s.Dir }, false},
		"runs as another":        {func(s *Spec) { s.Enclosure.Program = asAnother(t) }, false},
		"a program when idle":    {func(s *Spec) { s.Idle = true }, true},
		"a group that is joined": {func(s *Spec) { s.Enclosure.Join = []string{s.Dir + "/door"} }, true},
	} {
		spec := program(t, "cat; exit 9")
		spec.Limits.OutputBytes = 1 << 10
		spec.Enclosure = &Enclosure{
			Program: "/bin/sh", Args: []string{"-c", world}, StatusPath: spec.Dir + "/status",
			Filter: []byte("filter\n"), Rlimits: map[int]uint64{unix.RLIMIT_NOFILE: 77},
		}
		if err := os.WriteFile(spec.Dir+"/door", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.spoil(&spec)
		r, err := startRunner(spec, nil, onDisk)
		if err != nil {
			t.Fatal(name, err)
		}
		end := <-r.ended
		out := printed(t, spec.Stdout)
		nice, policy := lowNice, 0
		if spec.Idle {
			nice, policy = idleNice, schedIdle
		}
		if want := fmt.Sprintf("77\nfilter\n1000\n%d %d\n", max(nice, 20-own), policy); c.own &&
			(end.code != 4 || out != want || content(t, spec.Dir+"/status") != "told\n") {
			t.Errorf("%s: %+v, it said %q, want %q", name, end, out, want)
		}
		if !c.own && (end.code != 9 || !strings.HasPrefix(out, `{"Program":`)) {
			t.Errorf("%s: %+v, the runner was told %q", name, end, out)
		}
		if len(spec.Enclosure.Join) > 0 && c.own &&
			content(t, spec.Enclosure.Join[0]) != strconv.Itoa(r.pid()) {
			t.Errorf("%s: %s joined, not %d", name, content(t, spec.Enclosure.Join[0]), r.pid())
		}
	}
}

// asAnother is a program that takes the rights of its owner.
func asAnother(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	text, err := os.ReadFile("/bin/true")
	if err == nil {
		err = errors.Join(os.WriteFile(path, text, 0o700), os.Chmod(path, 0o700|os.ModeSetuid))
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A runner leads a session and a group of its own, has the low priority that it should, is the
// first to go when memory is short, and ends with all of its group.
func TestARunnersPlace(t *testing.T) {
	t.Parallel()
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, idle := range []bool{false, true} {
		spec := program(t, "sleep 1000 & sleep 1000")
		spec.Idle = idle
		r, err := startRunner(spec, nil, onDisk)
		if err != nil {
			t.Fatal(err)
		}
		fields, ok := statFields(r.pid())
		pid := strconv.Itoa(r.pid())
		want := fmt.Sprint(max(niceOf(idle), 20-own))
		if !ok || fields[2] != pid || fields[3] != pid || fields[16] != want ||
			(fields[38] == strconv.Itoa(schedIdle)) != idle {
			t.Errorf("idle %v: %q, want the group and session %s, nice %s", idle, fields, pid, want)
		}
		if got := content(t, "/proc/"+pid+"/oom_score_adj"); got != "1000\n" {
			t.Errorf("memory is taken from it at %q", got)
		}
		if group, err := os.ReadFile("/proc/" + pid + "/autogroup"); err == nil && LowersAll() &&
			!strings.HasSuffix(string(group), fmt.Sprintf("nice %d\n", niceOf(idle))) {
			t.Errorf("its session is %q", group)
		}
		r.kill()
		if end := <-r.ended; end.signal != int(syscall.SIGKILL) || end.code != -1 {
			t.Errorf("ended with %+v", end)
		}
		if !awaitGroupGone(r.pid(), time.Minute) {
			t.Error("its child is left")
		}
	}
}

// What outlives its leader ends with it; who has left the group cannot keep the attempt from
// ending by holding what was told to it.
func TestARunnersEndIsTheEnd(t *testing.T) {
	t.Parallel()
	spec := program(t, "sleep 1000 >/dev/null 2>&1 & exit 3")
	r, err := startRunner(spec, nil, onDisk)
	if err != nil {
		t.Fatal(err)
	}
	if end := <-r.ended; end.code != 3 || !awaitGroupGone(r.pid(), time.Minute) {
		t.Errorf("%+v, and its child is left", end)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	leaves := self + ` __runner leave pid >/dev/null 2>&1 & `
	spec = program(t, leaves+`while ! [ -s pid ]; do :; done; exit 3`)
	if r, err = startRunner(spec, nil, onDisk); err != nil {
		t.Fatal(err)
	}
	end := <-r.ended
	pid, err := strconv.Atoi(content(t, spec.Dir+"/pid"))
	if err != nil || pid < 2 {
		t.Fatal(pid, err)
	}
	if state, _, ok := procStat(pid); end.code != 3 || end.report != nil || !ok || state == 'Z' {
		t.Errorf("%+v, the one who left is there: %v", end, ok)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// A stream whose file takes no more is full, and its program is not told.
func TestAStreamWithoutSpace(t *testing.T) {
	t.Parallel()
	overflow := make(chan struct{}, 1)
	r := &runner{overflow: overflow, exceeded: make(chan Report, 1)}
	r.spec.Limits.OutputBytes = 100
	c := r.newCapture("/dev/full")
	n, err := c.Write([]byte("text"))
	if n != 4 || err != nil || !c.full.Load() || len(overflow) != 1 {
		t.Errorf("wrote %d, %v, full: %v", n, err, c.full.Load())
	}
	c.close()
	path := filepath.Join(t.TempDir(), "stream")
	if err = os.WriteFile(path, []byte("of an earlier attempt"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.spec.Limits.OutputBytes = 6
	c = r.newCapture(path)
	for _, text := range []string{"ab", "cd", "ef", "", "gh"} {
		n, err = c.Write([]byte(text))
		if n != len(text) || err != nil || c.full.Load() != (text == "gh") {
			t.Errorf("%q: wrote %d, %v, full: %v", text, n, err, c.full.Load())
		}
	}
	if c.close(); content(t, path) != "abcdef" || heldOpen(t, path) {
		t.Errorf("it holds %q, open: %v", content(t, path), heldOpen(t, path))
	}
	silent := r.newCapture(filepath.Join(t.TempDir(), "silent"))
	if silent.close(); exists(silent.path) {
		t.Error("there is a file of what was not printed")
	}
	nowhere := r.newCapture(filepath.Join(t.TempDir(), "none", "stream"))
	for range 2 { // the first is told
		if n, err := nowhere.Write([]byte("text")); n != 4 || err != nil || nowhere.lost == nil {
			t.Errorf("nowhere: wrote %d, %v, lost: %v", n, err, nowhere.lost)
		}
	}
	nowhere.close()
	if len(r.exceeded) != 1 {
		t.Error("a program runs on whose output cannot be kept")
	}
}

// What stands behind the descriptors of an enclosure's program: an input without end and
// without content, what it reports to, and its filter; nothing where one is not wanted.
func TestWhatStandsBehindTheDescriptors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status bool
		filter string
		want   string // one letter for each file
	}{{false, "", "i"}, {true, "", "is"}, {false, "text", "i-f"}, {true, "text", "isf"}} {
		path := filepath.Join(t.TempDir(), "status")
		if err := os.WriteFile(path, []byte("of an earlier attempt"), 0o600); err != nil {
			t.Fatal(err)
		}
		e := &Enclosure{Filter: []byte(c.filter)}
		if c.status {
			e.StatusPath = path
		}
		files, err := e.open()
		if err != nil || len(files) != len(c.want) {
			t.Fatalf("%s: %d files, %v", c.want, len(files), err)
		}
		for i, what := range c.want {
			buffer := make([]byte, 9)
			var got string
			f := files[i]
			switch what {
			case '-':
				if f != nil {
					t.Errorf("%s: there is a file %d", c.want, i)
				}
				continue
			case 's':
				_, err = f.WriteString("told")
				got = content(t, path)
			default:
				var n int
				n, err = f.ReadAt(buffer, 0)
				if what == 'i' {
					n, err = f.Read(buffer)
				}
				got = string(buffer[:n])
			}
			if want := map[rune]string{'i': "", 's': "told", 'f': "text"}[what]; got != want ||
				err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("%s: behind %d is %q, %v", c.want, i, got, err)
			}
		}
		closeAll(files)
		for i, f := range files {
			if f != nil && !errors.Is(f.Close(), os.ErrClosed) {
				t.Errorf("%s: file %d stays open", c.want, i)
			}
		}
	}
	files, err := (&Enclosure{StatusPath: t.TempDir(), Filter: []byte("f")}).open()
	if err == nil || !strings.HasPrefix(err.Error(), "keep status: ") {
		t.Errorf("a directory takes the status: %v", err)
	}
	for _, f := range files {
		if !errors.Is(f.Close(), os.ErrClosed) {
			t.Error("a file stays open after a failure")
		}
	}
}

// A process is in all its groups and has all its limits, or it is said which it lacks.
func TestBoundingAProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := still(t, 1, waits)
	pid := cmd.Process.Pid
	doors := []string{dir + "/one", dir + "/two"}
	for _, door := range doors {
		if err := os.WriteFile(door, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := &Enclosure{
		Join:    doors,
		Rlimits: map[int]uint64{unix.RLIMIT_NOFILE: 77, unix.RLIMIT_FSIZE: 1 << 30, unix.RLIMIT_CORE: 0},
	}
	if err := e.Bound(pid); err != nil {
		t.Fatal(err)
	}
	for resource, want := range e.Rlimits {
		var got unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &got); err != nil ||
			got != (unix.Rlimit{Cur: want, Max: want}) {
			t.Errorf("limit %d is %+v, %v, want %d", resource, got, err, want)
		}
	}
	for _, door := range doors {
		if got := content(t, door); got != strconv.Itoa(pid) {
			t.Errorf("%q joined by %s, want %d", got, door, pid)
		}
	}
	for want, e := range map[string]*Enclosure{
		"join group: open " + dir + "/none/door": {Join: []string{doors[0], dir + "/none/door"}},
		"limit resource 99: invalid argument":    {Rlimits: map[int]uint64{99: 1}},
	} {
		if err := e.Bound(pid); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A runner may report each of the ends that are its to tell, and no other.
func TestWhatARunnerMayReport(t *testing.T) {
	t.Parallel()
	for cause := range grid.ExitCause(40) {
		text := fmt.Sprintf(`{"cause":%d,"code":3,"text":"x"}`, cause)
		want := cause.Validate() == nil && cause <= grid.CauseSandbox
		if r := readReport(strings.NewReader(text), nil); (r != nil) != want ||
			r != nil && *r != (Report{Cause: cause, Code: 3, Text: "x"}) {
			t.Errorf("cause %d: %+v, want that it may be told: %v", cause, r, want)
		}
	}
	for _, text := range []string{"", "{", "[]", `{"preparing":true}`, strings.Repeat(" ", 1<<20)} {
		if r := readReport(strings.NewReader(text), make(chan bool, 1)); r != nil {
			t.Errorf("%.20q: %+v", text, r)
		}
	}
	long := strings.Repeat(`{"preparing":true}`, maxReportBytes/18) + `{"cause":1}`
	if r := readReport(strings.NewReader(long), nil); r != nil {
		t.Errorf("behind too many notes: %+v", r)
	}
}

// A directory whose owner closed it is measured where it stands; what has taken its place
// meanwhile is left alone, above all what lies outside.
func TestWhatTookTheDirectorysPlace(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Chmod(outside, 0o750); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 1<<16)
	err := errors.Join(
		os.Mkdir(dir+"/there", 0o700), os.WriteFile(dir+"/there/file", large, 0o600),
		os.WriteFile(dir+"/file", large, 0o600), os.WriteFile(outside+"/file", large, 0o600),
		os.Symlink(outside, dir+"/link"),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, some := range map[string]bool{
		"there": true, "file": false, "link": false, "none": false, "../outside": false,
	} {
		u := use{root: dir, most: 9}
		if u.unhide(filepath.Join(dir, name)); (u.bytes >= 1<<16) != some ||
			u.bytes != 0 && !some || u.wild != "" {
			t.Errorf("%s takes %d, %q", name, u.bytes, u.wild)
		}
	}
	u := use{root: dir + "/none", most: 9}
	if u.unhide(dir + "/none/x"); u.bytes != 0 || u.wild != "" {
		t.Errorf("below nothing are %d, %q", u.bytes, u.wild)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the directory outside is %v, %v", info, err)
	}
	if heldOpen(t, dir) || heldOpen(t, outside) {
		t.Error("a directory stays open")
	}
}

// Too many files and directories are too many, one fewer are not; behind closed doors, too.
func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 9 {
		if err := os.WriteFile(fmt.Sprint(dir, "/", i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for most, want := range map[int]string{
		9: "made more than 9 files and directories", 10: "", 11: "",
	} {
		if _, wild := useUpTo(dir, most); wild != want {
			t.Errorf("%d: %q, want %q", most, wild, want)
		}
	}
	if _, wild := treeUse(dir); wild != "" {
		t.Error("ten are", wild)
	}
}

// What is behind closed doors counts together: no directory has too many files, but all have.
func TestTooManyFilesBehindDoors(t *testing.T) {
	t.Parallel()
	u := use{root: t.TempDir(), most: 9}
	for i, want := range []string{"", "made more than 9 files and directories"} {
		dir := fmt.Sprint(u.root, "/", i)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for k := range 5 {
			if err := os.WriteFile(fmt.Sprint(dir, "/", k), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if u.unhide(dir); u.wild != want {
			t.Errorf("behind door %d: %q, want %q", i, u.wild, want)
		}
	}
}

// How often is looked depends on what it takes: never all of the time, and never too rarely.
func TestHowOftenIsLooked(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for took, want := range map[time.Duration]time.Duration{
		0: lookEvery, ms: lookEvery, 2 * ms: 40 * ms, 10 * ms: 200 * ms, 50 * ms: lookLatest,
		time.Second: lookLatest, time.Minute: time.Minute,
	} {
		if got := pauseAfter(took); got != want {
			t.Errorf("after a look of %s the next comes in %s, want %s", took, got, want)
		}
	}
	for _, c := range []struct {
		bytes, files, left int64
		want               bool
	}{
		{0, 0, 0, true},
		{100, 0, 800, true},
		{101, 0, 800, false},
		{100, 0, 799, false},
		{0, calmEntries, 0, true},
		{0, calmEntries + 1, 0, false},
		{-5, -5, 0, true},
		{0, 0, -800, false},
	} {
		before := room{bytes: 1000, files: 2000}
		now := room{bytes: 1000 - c.bytes, files: 2000 - c.files}
		if got := hardlyTaken(before, now, c.left); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for name, c := range map[string]struct {
		spec Spec
		want bool
	}{
		"nothing": {Spec{Tree: true, MeterCPU: true}, false}, "disk": {Spec{WatchDir: "/d"}, true},
		"one process": {Spec{Processes: 1}, true}, "memory": {Spec{WatchMemory: true}, true},
	} {
		if got := c.spec.isWatched(); got != c.want {
			t.Errorf("%s is watched: %v", name, got)
		}
	}
}

// Who is looked at is looked at until it takes too much, which is told once, or is gone.
func TestLookingEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &runner{
		spec: Spec{WatchDir: dir, Limits: lrm.Limits{DiskBytes: 1 << 20}},
		gone: make(chan struct{}), exceeded: make(chan Report, 1),
	}
	done := make(chan struct{})
	go func() {
		r.look()
		close(done)
	}()
	if err := os.WriteFile(dir+"/file", make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-r.exceeded; got.Cause != grid.CauseDisk || got.Text != "wrote more than 1.0 MiB" {
		t.Errorf("it took too much: %+v", got)
	}
	<-done
	if err := os.Remove(dir + "/file"); err != nil {
		t.Fatal(err)
	}
	close(r.gone)
	if r.look(); len(r.exceeded) > 0 {
		t.Errorf("who is gone takes too much: %+v", <-r.exceeded)
	}
}

// Those that live are waited for, as long as there is time; those that do not are left out.
func TestWaitingForSupervisors(t *testing.T) {
	t.Parallel()
	lives := lrm.Record{Attempt: one(), Supervisor: ownIdentity()}
	dead := lives
	dead.Supervisor.Start++
	for name, c := range map[string]struct {
		of   []lrm.Record
		want int
	}{
		"none": {nil, 0}, "one that is dead": {[]lrm.Record{dead}, 0},
		"one that lives": {[]lrm.Record{dead, lives, dead}, 1},
	} {
		began := time.Now()
		left, err := awaitGone(t.Context(), c.of, 50*time.Millisecond)
		if err != nil || len(left) != c.want || c.want > 0 && left[0] != lives {
			t.Errorf("%s: %+v are left, %v", name, left, err)
		}
		if took := time.Since(began); c.want > 0 && took < 50*time.Millisecond {
			t.Errorf("%s: it was waited for only %s", name, took)
		}
	}
	path := filepath.Join(t.TempDir(), "runs")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Recover(t.Context(), path); err == nil {
		t.Error("recovered by a record that is none")
	}
}

// The end that an agent notes for a supervisor that died is an end like another, and what
// cannot be noted is left to the audit.
func TestNotingAnEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := Spec{Attempt: one(), RecordPath: dir + "/runs"}
	appendEnd(spec, grid.CauseSandbox)
	records, err := lrm.ReadRecords(spec.RecordPath)
	if err != nil || len(records) != 1 || records[0].Attempt != one() ||
		records[0].Event != lrm.RecordEnded || records[0].Cause != "sandbox failed" {
		t.Errorf("noted %+v, %v", records, err)
	}
	if heldOpen(t, spec.RecordPath) {
		t.Error("the record stays open")
	}
	spec.RecordPath = dir
	appendEnd(spec, grid.CauseSandbox)
}
