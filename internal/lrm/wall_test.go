package lrm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// trialAdapter starts attempts that end, or use their processor, as a test says.
type trialAdapter struct {
	Adapter
	exit    grid.Exit
	refuses error
	never   bool            // it does not end by itself
	uses    []float64       // of a core, in each trial run; nil: unknown
	blind   bool            // it has no meter
	lost    bool            // it ends before it began
	started Attempt         // the last one
	stopped int             // how often
	ended   <-chan struct{} // after Stop
}

var errTrial = errors.New("no such thing")

func (a *trialAdapter) Start(_ context.Context, at Attempt) (Process, error) {
	a.started = at
	if a.refuses != nil {
		return nil, a.refuses
	}
	ended := make(chan struct{})
	a.ended = ended
	p := &trialProcess{adapter: a, ended: ended, events: make(chan Event, 2)}
	if !a.lost {
		p.events <- Event{Kind: Preparing}
		p.events <- Event{Kind: Started}
	} else {
		close(p.events)
	}
	if a.blind {
		return struct{ Process }{p}, nil
	}
	return p, nil
}

type trialProcess struct {
	Process
	adapter *trialAdapter
	ended   chan struct{}
	events  chan Event
	looks   int
	began   time.Time
}

func (p *trialProcess) Events() <-chan Event { return p.events }

func (p *trialProcess) Stop(string) error {
	if p.adapter.stopped++; p.adapter.stopped == 1 {
		close(p.ended)
	}
	return nil
}

func (p *trialProcess) Wait(ctx context.Context) (Result, error) {
	if p.adapter.never {
		select {
		case <-p.ended:
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
	}
	return Result{Exit: p.adapter.exit}, nil
}

// CPUTime tells the use since the first look.
func (p *trialProcess) CPUTime() (time.Duration, bool) {
	if p.looks++; p.looks == 1 {
		p.began = time.Now()
		return time.Hour, p.adapter.uses != nil
	}
	if p.looks-2 >= len(p.adapter.uses) {
		return 0, false
	}
	used := p.adapter.uses[p.looks-2] * float64(time.Since(p.began))
	return time.Hour + time.Duration(used), true
}

// A wall holds where a program that wanted more ends for that, or dies of it.
func TestAWallIsTried(t *testing.T) {
	trial := Trial{
		Args: []string{"a"}, Module: []byte("m"), Limits: Limits{MemoryBytes: 7}, Want: grid.CauseMemory,
	}
	for name, c := range map[string]struct {
		exit grid.Exit
		want string // what the error says; empty: the wall holds
	}{
		"stopped":         {grid.Exit{Cause: grid.CauseMemory}, ""},
		"killed":          {grid.Exit{Cause: grid.CauseSignal, Code: 9}, ""},
		"killed, by code": {grid.Exit{Cause: grid.CauseExited, Code: 137}, ""},
		"died of itself":  {grid.Exit{Cause: grid.CauseExited, Code: 129}, ""},
		"gave up": {
			grid.Exit{Cause: grid.CauseExited, Code: 128, Text: "x"}, `ended with "exited" x`,
		},
		"went on":        {grid.Exit{Cause: grid.CauseExited}, "a program that wanted more"},
		"something else": {grid.Exit{Cause: grid.CauseDisk}, "a program that wanted more"},
	} {
		a := &trialAdapter{exit: c.exit}
		dir := t.TempDir()
		seen, err := Try(t.Context(), a, grid.KindWasm, trial, dir)
		if (err == nil) != (c.want == "") || err != nil &&
			(!errors.Is(err, ErrNoWall) || !strings.Contains(err.Error(), c.want) || seen != "") {
			t.Errorf("%s: %q, %v", name, seen, err)
		}
		if a.stopped != 1 {
			t.Errorf("%s: stopped %d times", name, a.stopped)
		}
		at := a.started
		if err := at.Validate(); err != nil || at.Limits.MemoryBytes != 7 || at.Task.Args[0] != "a" ||
			at.ID.Token != 1 ||
			at.Task.Kind != grid.KindWasm || at.LeaseUntil <= BootNow() ||
			at.LeaseUntil > BootNow().Add(trialLease) {
			t.Errorf("%s: %+v, %v", name, at, err)
		}
		if text, err := os.ReadFile(at.ModulePath); err != nil || string(text) != "m" {
			t.Errorf("%s: the module holds %q, %v", name, text, err)
		}
		for path, mode := range map[string]os.FileMode{at.Dir: 0o700, at.ModulePath: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %s is %v, %v, want %s", name, path, info, err, mode)
			}
		}
		if _, err := Try(t.Context(), a, grid.KindWasm, trial, dir); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: in a directory that was used: %v", name, err)
		}
	}
}

// A trial that cannot be made says why, and leaves nothing running.
func TestAWallThatCannotBeTried(t *testing.T) {
	trial := Trial{Want: grid.CauseMemory}
	refuses := &trialAdapter{refuses: errTrial}
	_, err := Try(t.Context(), refuses, grid.KindWasm, trial, t.TempDir())
	if !errors.Is(err, errTrial) || refuses.started.ModulePath != "" {
		t.Errorf("%v, want %v", err, errTrial)
	}
	never := &trialAdapter{never: true}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Try(over, never, grid.KindWasm, trial, t.TempDir())
	if !errors.Is(err, context.Canceled) || never.stopped != 1 {
		t.Errorf("%v, stopped %d times", err, never.stopped)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "module.wasm"), 0o700); err != nil {
		t.Fatal(err)
	}
	trial.Module = []byte("m")
	if _, err := Try(t.Context(), &trialAdapter{}, grid.KindWasm, trial, dir); err == nil ||
		!strings.HasPrefix(err.Error(), "try a ceiling: ") {
		t.Errorf("a module that cannot be written: %v", err)
	}
}

// An endless loop is held that uses what it may, and half as much besides, in any of some runs.
func TestCoresAreTried(t *testing.T) {
	for name, c := range map[string]struct {
		a    trialAdapter
		wall error
		want string
	}{
		"held": {trialAdapter{uses: []float64{.8}}, nil, "may use 0.50 of a core used 0.80"},
		"just": {trialAdapter{uses: []float64{.84}}, nil, "used 0.84"},
		"just not": {
			trialAdapter{uses: []float64{.86, .86, .86, .86, .86}}, ErrNoWall, "used 0.86",
		},
		"held in the end": {trialAdapter{uses: []float64{2, 2, 2, 2, .5}}, nil, "used 0.50"},
		"not held":        {trialAdapter{uses: []float64{.9, 2, 2, 2, 1.5, .1}}, ErrNoWall, "used 1.50"},
		"unknown":         {trialAdapter{}, nil, "this system does not tell"},
		"unknown later":   {trialAdapter{uses: []float64{2}}, nil, "this system does not tell"},
		"no meter":        {trialAdapter{blind: true}, nil, "the adapter does not tell"},
		"lost":            {trialAdapter{lost: true}, nil, "ended immediately"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := c.a
			seen, err := Try(
				t.Context(), &a, grid.KindWasm, Trial{Limits: Limits{MilliCPUs: 500}}, t.TempDir())
			text := seen
			if err != nil {
				text = err.Error()
			}
			held := c.wall == nil && c.a.uses != nil && !strings.Contains(c.want, "does not tell")
			if (err == nil) != held || c.wall != nil && !errors.Is(err, c.wall) ||
				!strings.Contains(text, c.want) || a.stopped != 1 {
				t.Errorf("%s: %q, %v, stopped %d times", name, seen, err, a.stopped)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), trialRun/2)
		defer cancel()
		a := &trialAdapter{uses: []float64{0}}
		if _, err := Try(ctx, a, grid.KindWasm, Trial{}, t.TempDir()); !errors.Is(
			err, context.DeadlineExceeded) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// Who asks for nothing has one core, 1 GiB of memory, 256 MiB of disk, 16 MiB of each stream.
func TestWhatAnAttemptMayHave(t *testing.T) {
	want := Limits{
		MilliCPUs: 1000, MemoryBytes: 1_073_741_824, DiskBytes: 268_435_456, OutputBytes: 16_777_216,
	}
	if got := (Limits{}).OrDefault(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Each event has a word of its own.
func TestEventsAreNamed(t *testing.T) {
	want := []string{
		"unknown", "started", "frozen", "resumed", "preparing", "prepared", "unknown", "unknown",
	}
	for i, word := range want {
		if got := EventKind(i).String(); got != word {
			t.Errorf("event %d is %q, want %q", i, got, word)
		}
	}
}

// Moments of the clock of leases are apart as long as they are moved.
func TestMomentsOfTheClockOfLeases(t *testing.T) {
	at := BootTime(1000)
	if later := at.Add(time.Minute); later.Sub(at) != time.Minute || at.Sub(later) != -time.Minute ||
		later <= at {
		t.Errorf("a minute after %d is %d", at, later)
	}
}

// No limit may be below 0, and each is its own.
func TestNoLimitIsBelowNothing(t *testing.T) {
	good := Attempt{ID: attemptID(1), Dir: "/d", RecordPath: "/r"}
	for i, set := range []func(*Limits, int64){
		func(l *Limits, n int64) { l.MilliCPUs = n }, func(l *Limits, n int64) { l.MemoryBytes = n },
		func(l *Limits, n int64) { l.DiskBytes = n }, func(l *Limits, n int64) { l.OutputBytes = n },
		func(l *Limits, n int64) { l.WallTime = time.Duration(n) },
	} {
		for n, want := range map[int64]bool{-1: false, 0: true, 1: true} {
			a := good
			set(&a.Limits, n)
			if err := a.Validate(); (err == nil) != want || err != nil && !errors.Is(err, ErrAttempt) {
				t.Errorf("limit %d at %d: %v", i, n, err)
			}
		}
		var some Limits
		set(&some, 3)
		filled, d := some.OrDefault(), defaultLimits()
		set(&d, 3)
		if filled != d {
			t.Errorf("limit %d alone becomes %+v, want %+v", i, filled, d)
		}
	}
	for path, want := range map[string]bool{"/": false, "": false, "/a": true, "a/": false} {
		a := good
		a.Inputs = []Bind{{SandboxPath: path, HostPath: "/h"}}
		if err := a.Validate(); (err == nil) != want {
			t.Errorf("an input at %q: %v", path, err)
		}
	}
}

// The program's own end stands, with what it did not write; one that was well has failed.
func TestTheEndOfAnAttempt(t *testing.T) {
	for _, c := range []struct {
		exit    grid.Exit
		missing []string
		want    grid.Exit
	}{
		{grid.Exit{Cause: grid.CauseExited}, nil, grid.Exit{Cause: grid.CauseExited}},
		{
			grid.Exit{Cause: grid.CauseExited},
			[]string{"/a", "/b"},
			grid.Exit{Cause: grid.CauseNoOutput, Text: "not written: /a, /b"},
		},
		{
			grid.Exit{Cause: grid.CauseExited, Code: 1, Text: "x"},
			[]string{"/a"},
			grid.Exit{Cause: grid.CauseExited, Code: 1, Text: "x; not written: /a"},
		},
		{grid.Exit{Cause: grid.CauseMemory}, []string{"/a"}, grid.Exit{Cause: grid.CauseMemory}},
	} {
		if got := endOf(c.exit, c.missing); got.Cause != c.want.Cause || got.Code != c.want.Code ||
			got.Text != c.want.Text {
			t.Errorf("%+v without %v is %+v, want %+v", c.exit, c.missing, got, c.want)
		}
	}
	whole := strings.Repeat("x", maxExitText)
	if got := ExitText(whole); got != whole {
		t.Error("a text that fits is cut")
	}
	if got := ExitText(whole + "x"); got != whole[:maxExitText-3]+"..." {
		t.Errorf("a text that is too long ends in %q", got[len(got)-5:])
	}
}

// What is deeper than it may be, or more, cannot be stored: the output is missing.
func TestOutputsThatAreTooDeep(t *testing.T) {
	a := Attempt{Dir: t.TempDir(), OutputPaths: []string{"/o"}}
	if err := PrepareDir(a); err != nil {
		t.Fatal(err)
	}
	deep := a.WorkDir() + "/o" + strings.Repeat("/d", MaxDepth)
	if err := os.MkdirAll(filepath.Dir(deep), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(deep, []byte("12"), 0o600); err != nil {
		t.Fatal(err)
	}
	if files, missing := collectOutputs(a); len(missing) != 0 || files[0].Bytes != 2 || !files[0].Dir {
		t.Errorf("as deep as it may be: %+v, missing %v", files, missing)
	}
	if err := os.Remove(deep); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(deep+"/d", 0o700); err != nil {
		t.Fatal(err)
	}
	if files, missing := collectOutputs(a); len(missing) != 1 || len(files) != 0 {
		t.Errorf("deeper: %+v, missing %v", files, missing)
	}
	none := Attempt{Dir: filepath.Join(t.TempDir(), "none"), OutputPaths: []string{"/o"}}
	if files, missing := collectOutputs(none); len(missing) != 1 || len(files) != 0 {
		t.Errorf("of nothing: %+v, missing %v", files, missing)
	}
	for name, want := range map[string]int64{"none": 0, "empty": 0, "full": 1} {
		path := filepath.Join(a.Dir, name)
		if name != "none" {
			if err := os.WriteFile(path, make([]byte, want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := StreamFile(path); got.Bytes != want || (got.HostPath == path) != (want > 0) {
			t.Errorf("the stream %s is %+v", name, got)
		}
	}
}
