package supervise

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// The tests of this file look at the whole process, so that none of them runs beside others.

// onStderr reads what somebody says on standard error meanwhile.
func onStderr(t *testing.T, do func()) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := os.Stderr
	defer func() { os.Stderr = old }()
	os.Stderr = f
	do()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a supervisor can neither record nor tell stands in its log, and keeps it from nothing.
func TestWhatTheLogSays(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	w := witnessed(t)
	s := w.over(Spec{})
	if err := s.recorder.Close(); err != nil {
		t.Fatal(err)
	}
	told := &supervisor{out: json.NewEncoder(full)}
	dir := t.TempDir()
	lost := s
	lost.spec.Farewell, lost.commands = &lrm.Farewell{Dir: dir + "/none"}, nil
	for want, do := range map[string]func(){
		"supervisor: write run record: ":                         func() { s.note(lrm.RecordFrozen) },
		"supervisor: tell the agent: ":                           func() { told.tell(message{}) },
		"supervisor: tell that the attempt is gone: open " + dir: lost.sayFarewell,
	} {
		if got := onStderr(t, do); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("the log says %q, want %q", got, want)
		}
	}
	well := witnessed(t)
	fine := well.over(Spec{})
	if got := onStderr(t, func() {
		fine.note(lrm.RecordFrozen)
		fine.tell(message{Event: lrm.Frozen, At: 1})
	}); got != "" || well.happened() != "frozen, said frozen" {
		t.Errorf("the log says %q where all is well", got)
	}
}

// A farewell is said once the agent has died and nothing of the attempt is left, and only then.
func TestWhenAFarewellIsSaid(t *testing.T) {
	left := still(t, 1, waits)
	const tells = `cat "$1"/* >"$0"`
	for name, c := range map[string]struct {
		set  func(*supervisor)
		want bool
	}{
		"never began": {func(*supervisor) {}, true},
		"is gone":     {func(s *supervisor) { s.runner = goneRunner(t) }, true},
		"is there":    {func(s *supervisor) { s.runner = &runner{cmd: left} }, false},
		"agent lives": {func(s *supervisor) { s.commands = make(chan command) }, false},
	} {
		told := filepath.Join(t.TempDir(), "told")
		s := witnessed(t).over(Spec{Farewell: &lrm.Farewell{
			Dir: t.TempDir(), Text: []byte("gone"), Command: []string{"/bin/sh", "-c", tells, told},
		}})
		s.commands = nil
		c.set(s)
		if said := onStderr(t, s.sayFarewell); said != "" {
			t.Errorf("%s: %s", name, said)
		}
		if text, err := os.ReadFile(told); (err == nil) != c.want || c.want && string(text) != "gone" {
			t.Errorf("%s: told %q, %v", name, text, err)
		}
	}
	none := witnessed(t).over(Spec{})
	none.commands = nil
	none.sayFarewell() // nobody is to be told
}

// alarms are the times that the alarms of this process have left.
func alarms(t *testing.T) (left []time.Duration) {
	t.Helper()
	dir := "/proc/self/fdinfo/"
	all, err := names(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, _ := os.ReadFile(dir + name)
		_, value, is := strings.Cut(string(text), "it_value: ")
		var seconds, nanos int64
		if !is {
			continue
		}
		if _, err := fmt.Sscanf(value, "(%d, %d)", &seconds, &nanos); err != nil {
			t.Fatal(err)
		}
		left = append(left, time.Duration(seconds)*time.Second+time.Duration(nanos))
	}
	return left
}

// The alarm is set to the end of the lease, again for each, and is gone with the attempt.
func TestTheAlarmFollowsTheLease(t *testing.T) {
	if before := alarms(t); len(before) != 0 {
		t.Fatalf("alarms with %v left", before)
	}
	s := witnessed(t).over(program(t, "sleep 1000"))
	commands := make(chan command)
	s.commands = commands
	ended := make(chan struct{})
	go func() {
		s.run()
		close(ended)
	}()
	for _, lease := range []time.Duration{time.Hour, 3 * time.Hour, 2 * time.Hour} {
		until := lrm.BootNow().Add(lease)
		commands <- command{Attempt: one(), Lease: &until}
		within := func() bool {
			left := alarms(t)
			return len(left) == 1 && left[0] > lease-time.Minute && left[0] <= lease
		}
		await(t, fmt.Sprintf("an alarm in %s, there are %v", lease, alarms(t)), within)
	}
	close(commands)
	<-ended
	if after := alarms(t); len(after) != 0 {
		t.Errorf("alarms with %v left after the end", after)
	}
}

// await waits for a condition.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("waited too long for ", what)
		}
	}
}

// lowThreads are the threads of this process whose priority is below the first one's.
func lowThreads(t *testing.T) (low []string) {
	t.Helper()
	const nice = 16 // of the fields
	tasks, err := names("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	of := func(tid string) int {
		fields, ok := readStat("/proc/self/task/" + tid + "/stat")
		if !ok {
			return -99 // it has ended
		}
		n, err := strconv.Atoi(fields[nice])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, tid := range tasks {
		if of(tid) > of(strconv.Itoa(os.Getpid())) {
			low = append(low, tid)
		}
	}
	return low
}

// Neither files nor threads are left of runners that ended, or that could not be started.
func TestARunnerLeavesNothingBehind(t *testing.T) {
	spoilt := []func(*Spec){
		func(*Spec) {},
		func(s *Spec) { s.Runner = []string{s.Dir + "/none"} },
		func(s *Spec) { s.Stdout = s.Dir },
		func(s *Spec) { s.Stderr = s.Dir },
		func(s *Spec) { s.Enclosure = &Enclosure{Program: s.Dir} },
		func(s *Spec) { s.Enclosure = &Enclosure{Program: "/bin/true", StatusPath: s.Dir + "/status"} },
		func(s *Spec) { s.Enclosure = &Enclosure{Program: "/bin/true", Join: []string{s.Dir}} },
		func(s *Spec) { s.WatchDir = s.Dir },
	}
	all := func() {
		for _, spoil := range spoilt {
			spec := program(t, "exit 0")
			spoil(&spec)
			r, err := startRunner(spec, nil, onDisk)
			if err == nil {
				<-r.ended
			}
		}
	}
	open := func() int {
		files, err := names("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	all() // first all that is needed once is there
	before := open()
	for range 3 {
		all()
	}
	if after := open(); after > before {
		t.Errorf("%d files are open, %d were", after, before)
	}
	await(t, "threads of low priority", func() bool { return len(lowThreads(t)) == 0 })
}

// A pool that cannot launch a supervisor keeps nothing of it.
func TestALaunchThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	open := func() []string {
		files, err := names("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	var before []string
	for i := range 4 {
		if _, err := NewPool([]string{dir}).launch(filepath.Join(dir, "log")); err == nil {
			t.Fatal("a directory was started")
		}
		if i == 0 {
			before = open()
		}
	}
	if after := open(); len(after) > len(before) {
		t.Errorf("open are %v, before %v", after, before)
	}
}

// The program gets the low priority that it asks for, and never a higher one than it would have.
func TestLoweringTheOwnPriority(t *testing.T) {
	const niceField, policyField = 16, 38
	type has struct{ nice, policy, io int }
	for _, c := range []struct {
		from int
		idle bool
		want has
	}{
		{0, false, has{lowNice, 0, 3}},
		{9, false, has{lowNice, 0, 3}},
		{10, false, has{10, 0, 3}},
		{15, false, has{15, 0, 3}},
		{0, true, has{idleNice, schedIdle, 3}},
		{19, true, has{idleNice, schedIdle, 3}},
	} {
		got, wrong := make(chan has, 1), make(chan string, 1)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			if err := unix.Setpriority(unix.PRIO_PROCESS, 0, c.from); err != nil {
				wrong <- err.Error() // an ordinary user whose tests have a low priority
				return
			}
			lowerPriority(0, c.idle)
			fields, _ := readStat("/proc/thread-self/stat")
			io, _, _ := unix.Syscall(unix.SYS_IOPRIO_GET, whoProcess, 0, 0)
			h := has{io: int(io >> 13)}
			h.nice, _ = strconv.Atoi(fields[niceField])
			h.policy, _ = strconv.Atoi(fields[policyField])
			got <- h
		}()
		select {
		case h := <-got:
			if h != c.want {
				t.Errorf("from %d, idle %v: %+v, want %+v", c.from, c.idle, h, c.want)
			}
		case why := <-wrong:
			t.Logf("from %d: %s", c.from, why)
		}
	}
}

// Supervisors get nothing of the agent's variables but where to note what a test comes through.
func TestASupervisorsVariables(t *testing.T) {
	t.Setenv("OWNERS_SECRET", "x")
	for dir, want := range map[string][]string{
		"": {"LANG=C", "GOMAXPROCS=1"}, "/cover": {"LANG=C", "GOMAXPROCS=1", "GOCOVERDIR=/cover"},
	} {
		t.Setenv("GOCOVERDIR", dir)
		if got := baseEnv(1); !slices.Equal(got, want) {
			t.Errorf("with %q: %q, want %q", dir, got, want)
		}
	}
}
