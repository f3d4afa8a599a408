package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What is exactly at its limit goes on, one more ends the attempt, and the end names what
// there was too much of.
func TestLooksAtLimits(t *testing.T) {
	t.Parallel()
	memory, disk, inMemory, onDisk := nameless(t, 1<<20)
	cmd := still(t, 3, three, memory, disk)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	named, wild := treeUse(dir)
	below := descendants(cmd.Process.Pid)
	anonymous := treeMemory(below, 0)
	own := ownMemory(below)
	if len(below) != 2 || wild != "" || named < 1<<20 || anonymous <= 0 || own <= inMemory {
		t.Fatalf("below are %v, %d bytes named, %s, %d in memory", below, named, wild, anonymous)
	}
	for _, c := range []struct {
		name  string
		spec  Spec
		cause grid.ExitCause
		text  string
	}{
		{"any number of processes", Spec{}, 0, ""},
		{"two processes", Spec{Processes: 2}, 0, ""},
		{"one process", Spec{Processes: 1}, grid.CauseBadWork, "started more than 1 processes"},
		{"its memory", Spec{WatchMemory: true, Limits: lrm.Limits{MemoryBytes: anonymous}}, 0, ""},
		{
			"a byte less",
			Spec{WatchMemory: true, Limits: lrm.Limits{MemoryBytes: anonymous - 1}},
			grid.CauseMemory, "wanted more than its " + grid.FormatBytes(anonymous-1) + " of memory",
		},
		{"no look at memory", Spec{Limits: lrm.Limits{MemoryBytes: 1}}, 0, ""},
		{
			"a kernel besides",
			Spec{WatchMemory: true, OwnMemory: 1000, Limits: lrm.Limits{MemoryBytes: own - 1000}},
			0, "",
		},
		{
			"a byte less besides",
			Spec{WatchMemory: true, OwnMemory: 1000, Limits: lrm.Limits{MemoryBytes: own - 1001}},
			grid.CauseMemory, "of memory",
		},
		{
			"its disk",
			Spec{WatchDir: dir, Limits: lrm.Limits{DiskBytes: named + inMemory + onDisk}},
			0, "",
		},
		{
			"a byte less of disk",
			Spec{WatchDir: dir, Limits: lrm.Limits{DiskBytes: named + inMemory + onDisk - 1}},
			grid.CauseDisk, "wrote more than",
		},
		{
			"no space but for names",
			Spec{WatchDir: dir, Limits: lrm.Limits{DiskBytes: named}},
			grid.CauseDisk, "wrote more than " + grid.FormatBytes(named),
		},
		{
			"memory of its own is no disk",
			Spec{WatchDir: dir, OwnMemory: 1, Limits: lrm.Limits{DiskBytes: named + onDisk}},
			0, "",
		},
		{"no look at disk", Spec{Limits: lrm.Limits{DiskBytes: 1}}, 0, ""},
	} {
		c.spec.Tree = true
		w := &watcher{runner: &runner{cmd: cmd, spec: c.spec}}
		got, over := w.measure(time.Now())
		if over != (c.cause != 0) || got.Cause != c.cause || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: %+v, %v, want %v %q", c.name, got, over, c.cause, c.text)
		}
		if w.spec.WatchDir != "" && (!w.known || w.use < named) {
			t.Errorf("%s: the disk is known: %v, used: %d", c.name, w.known, w.use)
		}
	}
}

// Who watches nothing but a disk to which hardly anything is written need not look, for a
// moment.
func TestACalmDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now, ok := roomOf(dir)
	if !ok || now.bytes <= 0 {
		t.Fatal("the free space of the file system is not known")
	}
	const much = 1 << 50
	full := room{bytes: now.bytes + much/4, files: 0}
	for _, c := range []struct {
		name string
		spec Spec
		room room
		use  int64
		ago  time.Duration
		want bool
	}{
		{"nothing was written", Spec{}, room{}, 0, 0, true},
		{"long ago", Spec{}, room{}, 0, lookCalm, false},
		{"processes", Spec{Processes: 1}, room{}, 0, 0, false},
		{"memory", Spec{WatchMemory: true}, room{}, 0, 0, false},
		{"a part of what is left", Spec{}, room{now.bytes + much/16, 0}, 0, 0, true},
		{"much of what is left", Spec{}, full, 0, 0, false},
		{"nothing is left", Spec{}, room{now.bytes + much/16, 0}, much, 0, false},
		{"many files", Spec{}, room{0, now.files + much}, 0, 0, false},
	} {
		c.spec.WatchDir, c.spec.Limits.DiskBytes = dir, much
		w := &watcher{
			runner: &runner{spec: c.spec}, looked: time.Now().Add(-c.ago), known: true,
			room: c.room, use: c.use,
		}
		// A machine that is busy may take a moment of its own before the look.
		if got := w.calm(); got != c.want && (got || time.Since(w.looked) < lookCalm) {
			t.Errorf("%s: calm is %v", c.name, got)
		}
	}
	w := &watcher{runner: &runner{spec: Spec{WatchDir: dir}}, looked: time.Now()}
	if w.calm() {
		t.Error("calm without knowing the free space")
	}
	if _, ok := roomOf(filepath.Join(dir, "none")); ok {
		t.Error("what is not there has space")
	}
	if _, ok := roomOf("/proc"); ok {
		t.Error("what stores nothing has space")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	ratio := float64(now.bytes) / (float64(st.Bfree) * float64(st.Bsize))
	if ratio < .25 || ratio > 4 {
		t.Errorf("the room is %d bytes, %.2f of what the file system says", now.bytes, ratio)
	}
}

// Who watches processes need not look at them, for a moment, while the whole machine has
// lost hardly any memory and runs hardly more.
func TestACalmMachine(t *testing.T) {
	t.Parallel()
	now, ok := machineNow()
	if !ok || now.memory <= 0 || now.processes <= 0 {
		t.Fatalf("what the machine has is not known: %+v", now)
	}
	const much, many = 1 << 50, 1 << 20
	both := Spec{WatchMemory: true, Processes: many}
	some := machine{now.memory + much/16, now.processes - many/16}
	for _, c := range []struct {
		name      string
		spec      Spec
		machine   machine
		memory    int64
		processes int
		ago       time.Duration
		want      bool
	}{
		{"a part of what is left", both, some, 0, 0, 0, true},
		{"long ago", both, some, 0, 0, lookCalm, false},
		{"much memory", both, machine{now.memory + much/4, now.processes}, 0, 0, 0, false},
		{"many processes", both, machine{now.memory, now.processes - many/4}, 0, 0, 0, false},
		{"no memory is left", both, some, much, 0, 0, false},
		{"no process is left", both, some, 0, many, 0, false},
		{
			"much memory of who is held to it",
			Spec{Processes: many},
			machine{now.memory + much/4, now.processes},
			0, 0, 0, true,
		},
		{
			"many processes of who is held to few",
			Spec{WatchMemory: true},
			machine{now.memory, now.processes - many/4},
			0, 0, 0, true,
		},
	} {
		c.spec.Limits.MemoryBytes = much
		w := &watcher{
			runner: &runner{spec: c.spec}, seen: time.Now().Add(-c.ago), told: true,
			machine: c.machine, memory: c.memory, processes: c.processes,
		}
		// A machine that is busy may take a moment of its own before the look.
		if got := w.idles(); got != c.want && (got || time.Since(w.seen) < lookCalm) {
			t.Errorf("%s: idle is %v", c.name, got)
		}
	}
	w := &watcher{runner: &runner{spec: both}, seen: time.Now()}
	if w.idles() {
		t.Error("idle before the first look")
	}
	cmd := still(t, 3, three)
	w.cmd, w.spec.Tree, w.spec.Limits.MemoryBytes = cmd, true, much
	if _, over := w.measure(time.Now()); over || w.processes != 2 || w.memory <= 0 || !w.told {
		t.Errorf("a look finds %d processes with %d bytes, want 2 with some", w.processes, w.memory)
	}
	if !w.idles() && time.Since(w.seen) < lookCalm {
		t.Error("not idle right after a look")
	}
}

// LowersAll reports whether the priority of every session can be lowered here: the kernel
// does that for an ordinary user now and then only.
func LowersAll() bool {
	const own = "/proc/self/autogroup"
	text, err := os.ReadFile(own)
	_, nice, _ := strings.Cut(strings.TrimSpace(string(text)), "nice ")
	for range 20 {
		if err == nil {
			err = os.WriteFile(own, []byte(nice), 0)
		}
	}
	return err == nil
}

// Now and then, and not more often, a look costs more: at all processes of the machine,
// and at the priority of each session.
func TestWhatALookDoesNowAndThen(t *testing.T) {
	t.Parallel()
	cmd := still(t, 3, three)
	begin := time.Now()
	w := &watcher{runner: &runner{cmd: cmd, spec: Spec{Tree: true, MeterCPU: true}}}
	for _, c := range []struct{ after, want time.Duration }{
		{0, 0}, {lookLatest, 0}, {lookLatest + 1, lookLatest + 1}, {2*lookLatest + 1, lookLatest + 1},
	} {
		now := begin.Add(c.after)
		if _, over := w.measure(now); over {
			t.Error("too much of nothing")
		}
		want := begin.Add(c.want)
		if !w.counted.Equal(want) || !w.lowered.Equal(want) || !w.looked.Equal(now) {
			t.Errorf("after %s: counted at %s, lowered at %s, looked at %s, want %s",
				c.after, w.counted, w.lowered, w.looked, want)
		}
		if n := len(w.tree(now)); n != 2 {
			t.Errorf("after %s: %d processes, want 2", c.after, n)
		}
	}
	for _, m := range descendants(cmd.Process.Pid) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", m.pid))
		want := fmt.Sprintf("nice %d\n", lowNice)
		if err == nil && LowersAll() && !strings.HasSuffix(string(text), want) {
			t.Errorf("the session of process %d is %q, want the low priority", m.pid, text)
		}
	}
	for _, spec := range []Spec{{Tree: true}, {MeterCPU: true}} {
		w := &watcher{runner: &runner{cmd: cmd, spec: spec}}
		if w.measure(begin); !w.lowered.IsZero() {
			t.Errorf("lowered for %+v", spec)
		}
		if n := len(w.tree(begin)); (n != 0) != spec.Tree {
			t.Errorf("%d processes of %+v", n, spec)
		}
	}
}

// asOrdinary runs what must not have the rights of the superuser, after it has given
// the directory away.
func asOrdinary(t *testing.T, dir string, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	const nobody = 65534
	if err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, nobody, nobody)
	}); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) {
		t.Skip("this root may give no files to another user, as in a user namespace:", err)
	} else if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Error(err)
		}
		do()
	}()
	<-done
}

// What a program writes counts, also behind doors that it closes; how deep it may go is
// limited, and it cannot hide all of it.
func TestUseOfADirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	deep := filepath.Join(dir, "closed", "inner")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "a"), filepath.Join(deep, "b")} {
		if err := os.WriteFile(name, make([]byte, 100_000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var want int64
	if err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil {
			want += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got, wild := treeUse(dir); got != want || wild != "" || want < 200_000 {
		t.Errorf("uses %d, %q, want %d", got, wild, want)
	}
	asOrdinary(t, dir, func() {
		if err := os.Chmod(filepath.Dir(deep), 0); err != nil {
			t.Error(err)
		}
		if got, wild := treeUse(dir); got < want || got > want+1<<14 || wild != "" {
			t.Errorf("uses %d, %q, want %d behind a closed door, too", got, wild, want)
		}
		if err := os.Chmod(dir, 0); err != nil {
			t.Error(err)
		}
		if _, wild := treeUse(dir); wild != "hid what it wrote" {
			t.Errorf("a closed directory: %q", wild)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Error(err)
		}
	})
	if got, wild := treeUse(filepath.Join(dir, "none")); got != 0 || wild != "" {
		t.Errorf("what vanished uses %d, %q", got, wild)
	}
	nested := t.TempDir()
	path := nested + strings.Repeat("/d", lrm.MaxDepth)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, wild := treeUse(nested); wild != "" {
		t.Errorf("as deep as it may: %q", wild)
	}
	if err := os.Mkdir(path+"/d", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, wild := treeUse(nested); !strings.Contains(wild, fmt.Sprint(lrm.MaxDepth, " directories")) {
		t.Errorf("deeper than it may: %q", wild)
	}
}
