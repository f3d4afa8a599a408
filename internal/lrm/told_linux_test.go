package lrm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// told wants an error to say just this, where DIR is the directory.
func told(t *testing.T, name, dir string, err error, want string) {
	t.Helper()
	text := "none"
	if err != nil {
		text = strings.ReplaceAll(err.Error(), dir, "DIR")
	}
	if text != want {
		t.Errorf("%s: the error is\n%s\nwant\n%s", name, text, want)
	}
}

// written makes a file.
func written(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The clock of leases is that of the machine since it booted.
func TestTheClockOfLeases(t *testing.T) {
	read := func() BootTime {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			t.Fatal(err)
		}
		return BootTime(ts.Nano())
	}
	before := read()
	if now, after := BootNow(), read(); now < before || now > after {
		t.Errorf("it is %d between %d and %d", now, before, after)
	}
}

// The first thing that is wrong with an attempt is told, with its name.
func TestWhatIsToldOfAnAttempt(t *testing.T) {
	good := Attempt{
		ID: attemptID(1), Dir: "/d", RecordPath: "/r",
		Inputs: []Bind{{SandboxPath: "/a", HostPath: "/h"}, {SandboxPath: "/b", HostPath: "/"}},
	}
	const paths = "bad attempt\ndir and record path: want absolute paths"
	for name, c := range map[string]struct {
		spoil func(*Attempt)
		want  string
	}{
		"none":   {func(*Attempt) {}, "none"},
		"id":     {func(a *Attempt) { a.ID.Token = 0 }, "bad attempt\n" + idError().Error()},
		"dir":    {func(a *Attempt) { a.Dir = "d" }, paths},
		"record": {func(a *Attempt) { a.RecordPath = "r" }, paths},
		"host": {
			func(a *Attempt) { a.Inputs[1].HostPath = "h" }, "bad attempt\ninput /b: want absolute paths",
		},
		"input": {
			func(a *Attempt) { a.Inputs[1].SandboxPath = "b/" },
			"bad attempt\ninput b/: want absolute paths",
		},
		"limit": {func(a *Attempt) { a.Limits.WallTime = -1 }, "bad attempt\nlimits: want at least 0"},
	} {
		bad := good
		bad.Inputs = append([]Bind(nil), good.Inputs...)
		c.spoil(&bad)
		told(t, name, "DIR", bad.Validate(), c.want)
	}
}

func idError() error { return attemptID(0).Validate() }

// What hinders the laying out of an attempt is told, also where a directory of it is a file.
func TestWhatIsToldOfADirectory(t *testing.T) {
	dir := t.TempDir()
	file := written(t, filepath.Join(dir, "file"))
	told(t, "below a file", dir, PrepareDir(Attempt{Dir: file}), "mkdir DIR/file: not a directory")
	a := laid(t)
	written(t, filepath.Join(a.WorkDir(), "file"))
	for name, change := range map[string]func(*Attempt){
		"an input": func(a *Attempt) {
			a.Inputs = []Bind{{SandboxPath: "/ok/x"}, {SandboxPath: "/file/x/y"}}
		},
		"an output": func(a *Attempt) { a.OutputPaths = []string{"/ok/x", "/file/x/y"} },
	} {
		bad := a
		change(&bad)
		told(t, name, dir, PrepareDir(bad), "openat file: not a directory")
	}
	if err := syscall.Mkfifo(filepath.Join(a.WorkDir(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.OutputPaths = []string{"/pipe", "/file"}
	files, missing := collectOutputs(a)
	want := []File{{SandboxPath: "/file", HostPath: filepath.Join(a.WorkDir(), "file"), Bytes: 1}}
	if diff := cmp.Diff(want, files); diff != "" || len(missing) != 1 || missing[0] != "/pipe" {
		t.Errorf("missing %q, files (-want +got):\n%s", missing, diff)
	}
	err := RemoveTree(filepath.Join(file, "below"))
	if err == nil || !errors.Is(err, syscall.ENOTDIR) || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("what cannot be removed or opened: %v", err)
	}
}

// What hinders the reading or writing of a record is told with its file; what was read before that
// is there. No file stays open.
func TestWhatIsToldOfARecord(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runs")
	below := filepath.Join(written(t, filepath.Join(dir, "file")), "runs")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	appendAll(t, RecordBefore(path), attemptID(1), RecordStarted)
	records, err := ReadRecords(path)
	told(t, "a directory", dir, err, "read run record: read DIR/runs: is a directory")
	if len(records) != 1 {
		t.Errorf("read were %+v", records)
	}
	records, err = ReadRecords(below)
	told(t, "below a file", dir, err, "open run record: open DIR/file/runs.1: not a directory")
	if records != nil {
		t.Errorf("read were %+v", records)
	}
	_, err = OpenRecorder(path, attemptID(1))
	told(t, "to write", dir, err, "open run record: open DIR/runs: is a directory")
	before := openFiles(t)
	const often = 50
	for range often {
		if _, err = ReadRecordsBefore(path); err != nil {
			t.Error(err)
		}
		a := Attempt{Dir: dir, OutputPaths: []string{"/"}}
		if err = PrepareDir(a); err != nil {
			t.Error(err)
		}
		collectOutputs(a)
	}
	if after := openFiles(t); after >= before+often/2 {
		t.Errorf("%d files are open, before %d", after, before)
	}
}

// openFiles counts the open files of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A line of a record is read as it was written, with all that it has; lines of no event, or of no
// attempt, are none.
func TestARecordIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	r, err := OpenRecorder(path, attemptID(3))
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{Event: RecordStarted, Supervisor: Identity{PID: 1, Start: 2, Boot: "b"}},
		{Event: RecordFrozen},
		{Event: RecordResumed},
		{Event: RecordEnded, Cause: "exited"},
	}
	for i := range want {
		if err = r.Append(want[i]); err != nil {
			t.Fatal(err)
		}
		want[i].Attempt = attemptID(3)
	}
	if err = errors.Join(r.Append(Record{Event: "other"}), r.Append(Record{}), r.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecords(path)
	for i := range got {
		got[i].WallMillis, got[i].BootNanos = 0, 0
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	again, err := OpenRecorder(path, attemptID(0)) // none
	if err == nil {
		err = errors.Join(again.Append(Record{Event: RecordEnded}), again.Close())
	}
	if got, err2 := ReadRecords(path); err != nil || err2 != nil || len(got) != len(want) {
		t.Errorf("%v, %v: %d records, want %d", err, err2, len(got), len(want))
	}
}

// watched is a process whose stop and waits are noted.
type watched struct {
	trialProcess
	stops []string
	waits int
	early bool // it was looked at before it had begun
}

func (w *watched) Stop(why string) error { w.stops = append(w.stops, why); return nil }

func (w *watched) Wait(ctx context.Context) (Result, error) {
	w.waits++
	return Result{}, ctx.Err()
}

func (w *watched) CPUTime() (time.Duration, bool) {
	w.early = w.early || len(w.events) > 0
	return w.trialProcess.CPUTime()
}

// watching starts it.
type watching struct {
	Adapter
	process *watched
	started Attempt
}

func (w *watching) Start(_ context.Context, a Attempt) (Process, error) {
	w.started = a
	return w.process, nil
}

func newWatching(uses ...float64) *watching {
	w := &watched{trialProcess: trialProcess{
		adapter: &trialAdapter{uses: uses}, events: make(chan Event, 3),
	}}
	for _, kind := range []EventKind{Preparing, Prepared, Started} {
		w.events <- Event{Kind: kind}
	}
	return &watching{process: w}
}

// A trial is an attempt of its own, which is stopped when it is over, and awaited though the
// caller has gone.
func TestATrialIsAnAttempt(t *testing.T) {
	dir := t.TempDir()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	a := newWatching()
	limits := Limits{MilliCPUs: 7}
	trial := Trial{Args: []string{"x", "y"}, Limits: limits, Want: 1}
	_, err := Try(gone, a, grid.KindCommand, trial, dir)
	told(t, "the caller has gone", dir, err, "try a ceiling: context canceled")
	until := a.started.LeaseUntil
	if now := BootNow(); until <= now || until > now.Add(trialLease) {
		t.Errorf("its lease ends at %d, now is %d", until, now)
	}
	id := grid.AttemptID{Task: grid.TaskID{Job: trialJob}, Token: 1}
	want := Attempt{
		ID: id, Task: grid.Task{ID: id.Task, Kind: grid.KindCommand, Args: []string{"x", "y"}},
		Dir: filepath.Join(dir, "attempt"), Limits: limits, LeaseUntil: until,
		RecordPath: filepath.Join(dir, "runs.jsonl"),
	}
	if diff := cmp.Diff(want, a.started); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"the trial is over"}, a.process.stops); diff != "" ||
		a.process.waits != 2 {
		t.Errorf("it was awaited %d times, stopped (-want +got):\n%s", a.process.waits, diff)
	}
	_, err = Try(t.Context(), a, grid.KindCommand, Trial{}, dir)
	told(t, "used", dir, err, "try a ceiling: mkdir DIR/attempt: file exists")
	seen, err := Try(t.Context(), newWatching(), grid.KindWasm, Trial{Want: 1}, t.TempDir())
	told(t, "it went on", dir, err, "the ceiling does not hold: a program that wanted more ended "+
		`with "`+grid.ExitCause(0).String()+`" `)
	if seen != "" {
		t.Errorf("seen was %q", seen)
	}
}

// A loop is looked at from its begin on, and held that uses half as much again as it may and a
// tenth of a core, no more.
func TestAnEndlessLoopIsLookedAt(t *testing.T) {
	loop := func(uses ...float64) (string, *watching, error) {
		var a *watching
		var seen string
		var err error
		synctest.Test(t, func(t *testing.T) {
			a = newWatching(uses...)
			trial := Trial{Limits: Limits{MilliCPUs: 1000}}
			seen, err = Try(t.Context(), a, grid.KindWasm, trial, t.TempDir())
		})
		return seen, a, err
	}
	const just, tells = 1.6, "an endless loop that may use 1.00 of a core used 1.60"
	seen, a, err := loop(just)
	if err != nil || seen != tells || a.process.early {
		t.Errorf("%q, %v, looked at before its begin: %t", seen, err, a.process.early)
	}
	const more = just + 1e-6
	_, a, err = loop(more, more, more, more, more, 0)
	told(t, "more", "DIR", err, "the ceiling does not hold: "+tells)
	if a.process.looks != trialRuns+1 {
		t.Errorf("it was looked at %d times", a.process.looks)
	}
	_, _, err = loop()
	told(t, "unknown", "DIR", err, "this system does not tell what a program uses")
}
