package supervise

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// onDisk says of any start that it is recorded.
func onDisk() error { return nil }

// ways are the specs of all ways to start a program, each of which prints something.
func ways(t *testing.T) map[string]Spec {
	t.Helper()
	const begun = "echo begun"
	gated := atGate(t, `echo made >made; echo "{ \"child-pid\": $$ }"`)
	pipe := gated.Dir + "/made"
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that nobody waits for one
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	bare := program(t, begun)
	bare.Enclosure = &Enclosure{
		Program: "/bin/sh", Args: []string{"-c"}, StatusPath: bare.Dir + "/status",
		Command: []string{begun},
	}
	all := map[string]Spec{
		"at a gate": gated, "without a gate": bare, "a runner": program(t, begun),
	}
	for name, spec := range all {
		spec.Limits.OutputBytes = 1 << 10
		all[name] = spec
	}
	return all
}

// awaitMade waits until the sandbox at the gate has told by its pipe that it is made.
func awaitMade(t *testing.T, spec Spec) {
	t.Helper()
	made, err := os.OpenFile(spec.Dir+"/made", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if err = made.SetReadDeadline(time.Now().Add(20 * time.Second)); err == nil {
		_, err = made.Read(make([]byte, 1))
	}
	if err != nil {
		t.Fatal("it is not made while its start is being recorded:", err)
	}
}

// Nothing of an attempt runs before its start is on disk, whatever way it is started. What waits
// at a gate is made meanwhile.
func TestNothingRunsBeforeItIsRecorded(t *testing.T) {
	t.Parallel()
	for name, spec := range ways(t) {
		asked, recorded := make(chan bool, 3), make(chan bool)
		started := make(chan *runner, 1)
		go func() {
			r, err := startRunner(spec, nil, func() error {
				asked <- true
				<-recorded
				return nil
			})
			if err != nil {
				t.Error(name, err)
			}
			started <- r
		}()
		<-asked
		if name == "at a gate" && CanTrace() == nil { // else a runner is in its place
			awaitMade(t, spec)
		}
		if out := printed(t, spec.Stdout); out != "" {
			t.Errorf("%s: it has printed %q before it was recorded", name, out)
		}
		close(recorded)
		r := <-started
		if r == nil {
			continue
		}
		end := <-r.ended
		if out := printed(t, spec.Stdout); out == "" {
			t.Errorf("%s: it ended with %+v and printed %q", name, end, out)
		}
	}
}

// What cannot be recorded does not run, and ends as the site's failure.
func TestWhatCannotBeRecordedDoesNotRun(t *testing.T) {
	t.Parallel()
	for name, spec := range ways(t) {
		w := witnessed(t)
		s := w.over(spec)
		s.onDisk = func() error { return errors.New("the disk is gone") }
		end := s.attempt()
		if end.Cause != grid.CauseSandbox || !strings.Contains(end.Text, "the disk is gone") {
			t.Errorf("%s: %+v", name, end)
		}
		if out := printed(t, spec.Stdout); out != "" {
			t.Errorf("%s: it has printed %q", name, out)
		}
	}
}

// A warm sandbox gets a task when its start is on disk, and not if it cannot be recorded: the
// supervisor kills the sandbox then.
func TestAWarmSandboxWaitsForTheRecord(t *testing.T) {
	t.Parallel()
	begin := func(recorded func() error) (*runner, *os.File) {
		w := &warm{dead: make(chan struct{}), calm: []member{}}
		theirs, err := w.connect()
		if err == nil {
			_, err = theirs[1].WriteString("4\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			w.close()
			closeAll(theirs)
		})
		r := &runner{warm: w, exceeded: make(chan Report, 1), recorded: recorded}
		r.spec.Warm = &Warm{Task: "the task"}
		return r, theirs[0]
	}
	empty := func(tasks *os.File) bool {
		_ = tasks.SetReadDeadline(time.Unix(1, 0))
		n, err := tasks.Read(make([]byte, 1))
		_ = tasks.SetReadDeadline(time.Time{})
		return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
	}
	asked, written := make(chan bool), make(chan bool)
	r, tasks := begin(func() error {
		asked <- true
		<-written
		return nil
	})
	codes := make(chan int, 1)
	go func() {
		code, _, _ := r.runWarm()
		codes <- code
	}()
	<-asked
	if !empty(tasks) {
		t.Error("the task is there before its start is on disk")
	}
	close(written)
	if line, err := bufio.NewReader(tasks).ReadString('\n'); line != "the task\n" || <-codes != 4 {
		t.Errorf("it was told %q, %v", line, err)
	}

	gone := errors.New("the disk is gone")
	r, tasks = begin(func() error { return gone })
	go func() {
		<-r.exceeded
		close(r.warm.dead)
	}()
	if _, clean, err := r.runWarm(); clean || !errors.Is(err, gone) || !empty(tasks) {
		t.Errorf("without a record it runs: %v", err)
	}
}

// An agent hears of an end that can be read in the record already, which is closed then.
func TestAnEndIsWrittenBeforeItIsTold(t *testing.T) {
	t.Parallel()
	w := witnessed(t)
	s := w.over(program(t, "exit 3"))
	s.recorder.Close() // it opens its own
	s.recorder = nil
	if end := s.run(); end.Code != 3 || w.happened() != "started, ended, said started" {
		t.Errorf("%+v", end)
	}
	if s.recorder == nil || s.onDisk == nil {
		t.Fatal("the record is closed already")
	}
	s.closeRecord()
	s.closeRecord() // and once more does nothing
	if heldOpen(t, w.path) {
		t.Error("the record is still open")
	}
	if records := w.records(); len(records) != 2 || records[1].Event != lrm.RecordEnded {
		t.Errorf("the record is %+v", records)
	}
}

// A program is metered from its start, and the tasks of a warm sandbox together: none of them has a
// credit of its own.
func TestSinceWhenAProgramIsMetered(t *testing.T) {
	t.Parallel()
	w := witnessed(t)
	s := w.over(program(t, "exit 3"))
	s.meter, s.onDisk = meter{}, onDisk
	before := time.Now()
	if s.attempt(); s.meter.at.Before(before) || s.meter.used != 0 || s.meter.credit <= 0 {
		t.Errorf("a program of its own: %+v", s.meter)
	}
	cmd := exec.Command("sleep", "1000")
	asLeader(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kept := &warm{dead: make(chan struct{}), calm: []member{}, cmd: cmd}
	kept.meter = meter{cores: 1, many: 1, every: time.Hour, at: before, credit: -time.Hour}
	theirs, err := kept.connect()
	if err == nil {
		_, err = theirs[1].WriteString("4\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // it is killed, since it is not as it was
		close(kept.dead)
	}()
	defer closeAll(theirs)
	s = w.over(program(t, "exit 3"))
	s.spec.Warm, s.warm, s.onDisk = &Warm{Task: "the task"}, kept, onDisk
	if end := s.attempt(); end.Code != 4 || !end.Told || s.meter.credit != -time.Hour {
		t.Errorf("one of several tasks ended with %+v, metered at %+v", end, s.meter)
	}
}
