package fake_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// full is a record that takes nothing.
const full = "/dev/full"

// play holds all that a test does to an attempt and sees of it, in a bubble of virtual time.
type play struct {
	t       *testing.T
	zero    time.Time
	attempt lrm.Attempt
	process lrm.Process
	result  lrm.Result
	took    time.Duration
	events  string
	records string
}

func (p *play) now() lrm.BootTime { return lrm.BootTime(time.Since(p.zero)).Add(time.Hour) }

// at lets virtual time pass until so long after the start.
func (p *play) at(after time.Duration) { time.Sleep(after - time.Since(p.zero)) }

func (p *play) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// lease lets the attempt run until so long after its start.
func (p *play) lease(until time.Duration) {
	p.t.Helper()
	p.must(p.process.SetLease(lrm.BootTime(time.Hour + until)))
}

// see collects the events, with the seconds after the start at which they came, and the records.
func (p *play) see() {
	p.t.Helper()
	var all []string
	for e := range p.process.Events() {
		after := time.Duration(e.At) - time.Hour
		all = append(all, fmt.Sprintf("%s %v", e.Kind, after.Seconds()))
	}
	p.events, all = strings.Join(all, ", "), nil
	list, err := lrm.ReadRecords(p.attempt.RecordPath)
	p.must(err)
	for _, r := range list {
		all = append(all, strings.TrimSpace(string(r.Event)+" "+r.Cause))
	}
	p.records = strings.Join(all, ", ")
}

// stdout reads all that was printed by now.
func (p *play) stdout() string {
	p.t.Helper()
	text, err := os.ReadFile(p.attempt.StdoutPath())
	p.must(err)
	return string(text)
}

// played plays an attempt to its end, while the test does what it wants.
func played(
	t *testing.T, does fake.Behaviour, change func(*lrm.Attempt), meanwhile func(*play),
) *play {
	t.Helper()
	p := &play{t: t}
	synctest.Test(t, func(bubble *testing.T) {
		p.t, p.zero = bubble, time.Now()
		p.attempt = attempt(t, p.now()) // what it leaves is looked at when the bubble is gone
		if change != nil {
			change(&p.attempt)
		}
		adapter := fake.New(fake.Config{
			Now: p.now, Script: func(lrm.Attempt) fake.Behaviour { return does },
		})
		var err error
		p.process, err = adapter.Start(bubble.Context(), p.attempt)
		p.must(err)
		if meanwhile != nil {
			meanwhile(p)
		}
		p.result, err = p.process.Wait(bubble.Context())
		p.must(err)
		p.took = time.Since(p.zero)
		if p.attempt.RecordPath != full {
			p.see()
		}
		for what, err := range map[string]error{
			"lease": p.process.SetLease(1), "suspend": p.process.Suspend(true), "stop": p.process.Stop(""),
		} {
			if err != nil {
				bubble.Errorf("%s after the end: %v", what, err)
			}
		}
	})
	p.t = t
	return p
}

// A program ends as its script says, when it says, or by the limit that it reaches first; time
// in which it stands does not count.
func TestHowAProgramEnds(t *testing.T) {
	const sec = time.Second
	limited := func(a *lrm.Attempt) { a.Limits.WallTime = 2 * sec }
	for name, c := range map[string]struct {
		does      fake.Behaviour
		change    func(*lrm.Attempt)
		meanwhile func(*play)
		exit      grid.Exit
		took      time.Duration
		events    string
		records   string
	}{
		"immediately": {
			fake.Behaviour{},
			nil, nil,
			grid.Exit{Cause: grid.CauseExited, Wall: 1},
			0,
			"started 0", "started, ended exited",
		},
		"as it says": {
			fake.Behaviour{Run: 3 * sec, Cause: grid.CauseSignal, Code: 9, Text: "x"},
			nil, nil,
			grid.Exit{Cause: grid.CauseSignal, Code: 9, Text: "x", Wall: 3 * sec},
			3 * sec,
			"started 0", "started, ended killed by a signal",
		},
		"with its limit": {
			fake.Behaviour{Run: 2 * sec},
			limited, nil,
			grid.Exit{Cause: grid.CauseExited, Wall: 2 * sec},
			2 * sec,
			"started 0", "started, ended exited",
		},
		"by its limit": {
			fake.Behaviour{Run: 3 * sec},
			limited, nil,
			grid.Exit{Cause: grid.CauseTimeLimit, Text: "ran longer than 2s", Wall: 2 * sec},
			2 * sec,
			"started 0", "started, ended time limit",
		},
		"without end, by its limit": {
			fake.Behaviour{Run: -1},
			limited, nil,
			grid.Exit{Cause: grid.CauseTimeLimit, Text: "ran longer than 2s", Wall: 2 * sec},
			2 * sec,
			"started 0", "started, ended time limit",
		},
		"when it is stopped": {
			fake.Behaviour{Run: -1},
			nil, func(p *play) { p.at(5 * sec); p.must(p.process.Stop("why")) },
			grid.Exit{Cause: grid.CauseStopped, Text: "why", Wall: 5 * sec},
			5 * sec,
			"started 0", "started, ended stopped",
		},
		"after a pause without a lease": {
			fake.Behaviour{Run: 2 * sec},
			func(a *lrm.Attempt) { a.LeaseUntil = a.LeaseUntil.Add(sec - time.Hour) },
			func(p *play) {
				p.at(5 * sec)
				p.lease(4 * sec) // over already
				p.at(6 * sec)
				p.lease(time.Hour)
			},
			grid.Exit{Cause: grid.CauseExited, Wall: 2 * sec},
			7 * sec,
			"started 0, frozen 1, resumed 6", "started, frozen, resumed, ended exited",
		},
		"after a suspension, whatever its lease": {
			fake.Behaviour{Run: 2 * sec},
			nil,
			func(p *play) {
				p.at(sec)
				p.must(p.process.Suspend(true))
				p.at(3 * sec)
				p.lease(2 * time.Hour)
				p.at(4 * sec)
				p.must(p.process.Suspend(false))
			},
			grid.Exit{Cause: grid.CauseExited, Wall: 2 * sec},
			5 * sec,
			"started 0, frozen 1, resumed 4", "started, frozen, resumed, ended exited",
		},
		"after a lease that is over while it is suspended": {
			fake.Behaviour{Run: 2 * sec},
			nil,
			func(p *play) {
				p.at(sec)
				p.must(p.process.Suspend(true))
				p.lease(2 * sec)
				p.at(3 * sec)
				p.must(p.process.Suspend(false))
				p.at(4 * sec)
				p.lease(5 * sec)
				p.at(8 * sec)
				p.must(p.process.Stop("enough"))
			},
			grid.Exit{Cause: grid.CauseStopped, Text: "enough", Wall: 2 * sec},
			8 * sec,
			"started 0, frozen 1, resumed 4, frozen 5",
			"started, frozen, resumed, frozen, ended stopped",
		},
		"before it began": {
			fake.Behaviour{Run: 2 * sec},
			func(a *lrm.Attempt) { a.LeaseUntil = lrm.BootTime(time.Hour) },
			nil,
			grid.Exit{Cause: grid.CauseStopped, Text: "the lease ended before the start"},
			0, "", "",
		},
		"without its record": {
			fake.Behaviour{Run: 2 * sec},
			func(a *lrm.Attempt) { a.RecordPath = full },
			nil,
			grid.Exit{Cause: grid.CauseSandbox},
			0, "", "",
		},
		"without a place for its files": {
			fake.Behaviour{Run: sec, Files: map[string]string{"/a": "", "/a/b": ""}},
			nil, nil,
			grid.Exit{Cause: grid.CauseSandbox, Wall: sec},
			sec,
			"started 0", "started, ended sandbox failed",
		},
	} {
		p := played(t, c.does, c.change, c.meanwhile)
		got := p.result.Exit
		if c.exit.Cause == grid.CauseSandbox && got.Text != "" {
			got.Text = "" // the system's words
		}
		if got.Cause != c.exit.Cause || got.Code != c.exit.Code || got.Text != c.exit.Text ||
			got.Wall != c.exit.Wall || p.took != c.took {
			t.Errorf("%s: %+v after %s, want %+v after %s", name, got, p.took, c.exit, c.took)
		}
		if p.events != c.events || p.records != c.records {
			t.Errorf("%s: %q and %q happened, want %q, %q",
				name, p.events, p.records, c.events, c.records)
		}
	}
}

// What is exactly a limit may be had; more than that is the end, immediately, and says of what.
func TestProgramsThatWantTooMuch(t *testing.T) {
	few := func(a *lrm.Attempt) {
		a.Limits = lrm.Limits{MemoryBytes: 2 << 10, DiskBytes: 3 << 10, OutputBytes: 10}
	}
	for name, c := range map[string]struct {
		does   fake.Behaviour
		change func(*lrm.Attempt)
		cause  grid.ExitCause
		text   string
		stdout string
		stderr int64
	}{
		"all that it may": {
			fake.Behaviour{Memory: 2 << 10, Disk: 3 << 10, Stdout: "0123456789", Stderr: "0123456789"},
			few,
			grid.CauseExited, "", "0123456789", 10,
		},
		"memory": {
			fake.Behaviour{Memory: 2<<10 + 1},
			few, grid.CauseMemory,
			"wanted more than its 2.0 KiB of memory", "", 0,
		},
		"disk": {
			fake.Behaviour{Disk: 3<<10 + 1},
			few, grid.CauseDisk, "wanted more than its 3.0 KiB of disk",
			"", 0,
		},
		"output without end": {
			fake.Behaviour{Endless: true, Stdout: "abc"},
			few, grid.CauseOutput,
			"printed more than 10 B", "abcxxxxxxx", 0,
		},
		"a little more output": {
			fake.Behaviour{Stdout: "0123456789x", Stderr: "0123456789x"},
			few,
			grid.CauseExited, "", "0123456789", 10,
		},
		"more than those may who ask for nothing": {
			fake.Behaviour{Memory: 1<<30 + 1},
			nil, grid.CauseMemory,
			"wanted more than its 1.0 GiB of memory", "", 0,
		},
	} {
		p := played(t, c.does, c.change, nil)
		if got := p.result.Exit; got.Cause != c.cause || got.Text != c.text || p.took != 0 {
			t.Errorf("%s: %+v after %s, want %v %q", name, got, p.took, c.cause, c.text)
		}
		if got := p.stdout(); got != c.stdout || p.result.Stdout.Bytes != int64(len(c.stdout)) ||
			p.result.Stderr.Bytes != c.stderr {
			t.Errorf("%s: printed %q, %+v", name, got, p.result)
		}
	}
}

// Lines come evenly over the run, the first at its beginning, none while it stands.
func TestLinesComeEvenly(t *testing.T) {
	const ms = time.Millisecond
	tick := func(n int) (all string) {
		for i := range n {
			all += fmt.Sprintf("tick %d\n", i)
		}
		return all
	}
	does := fake.Behaviour{Stdout: "first\n", Run: 2 * time.Second, Lines: 4}
	p := played(t, does, nil, func(p *play) {
		see := func(after time.Duration, n int) {
			p.t.Helper()
			p.at(after)
			synctest.Wait()
			if got, want := p.stdout(), "first\n"+tick(n); got != want {
				p.t.Errorf("after %s: %q, want %q", after, got, want)
			}
		}
		see(0, 1)
		see(499*ms, 1)
		see(500*ms, 2)
		see(999*ms, 2)
		see(1000*ms, 3)
		p.must(p.process.Suspend(true))
		see(5000*ms, 3)
		p.must(p.process.Suspend(false))
		see(5499*ms, 3)
		see(5500*ms, 4)
	})
	if p.took != 6*time.Second || p.stdout() != "first\n"+tick(4) {
		t.Errorf("%q after %s", p.stdout(), p.took)
	}
}

// Files are left where the sandbox has them, never outside of it.
func TestFilesThatAreLeft(t *testing.T) {
	does := fake.Behaviour{Files: map[string]string{"/out/a/x": "1", "y": "22", "/../../z": "333"}}
	p := played(t, does, func(a *lrm.Attempt) {
		a.OutputPaths = []string{"/out/a/x", "/y", "/z", "/none"}
	}, nil)
	var got []string
	for _, f := range p.result.Outputs {
		rel, err := filepath.Rel(p.attempt.WorkDir(), f.HostPath)
		p.must(err)
		got = append(got, fmt.Sprint(f.SandboxPath, " ", filepath.ToSlash(rel), " ", f.Bytes))
	}
	if want := []string{"/out/a/x out/a/x 1", "/y y 2", "/z z 3"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	if p.result.Exit.Cause != grid.CauseNoOutput || p.result.Exit.Text != "not written: /none" {
		t.Errorf("exit = %+v", p.result.Exit)
	}
}

// Nobody waits for the events to be read; the latest are kept, and come to an end.
func TestEventsThatNobodyReads(t *testing.T) {
	p := played(t, fake.Behaviour{Run: -1}, nil, func(p *play) {
		for range 10 {
			p.must(p.process.Suspend(true))
			p.must(p.process.Suspend(false))
		}
		p.must(p.process.Stop("enough"))
	})
	want := strings.TrimSuffix(strings.Repeat("frozen 0, resumed 0, ", 8), ", ")
	if p.events != want {
		t.Errorf("events are %q, want %q", p.events, want)
	}
}

// Who waits for an attempt may give up.
func TestGivingUpWaiting(t *testing.T) {
	played(t, fake.Behaviour{Run: 10 * time.Minute}, nil, func(p *play) {
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
		defer cancel()
		if r, err := p.process.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) ||
			r.Exit.Cause != 0 || time.Since(p.zero) != time.Minute {
			p.t.Errorf("waited %s: %+v, %v", time.Since(p.zero), r, err)
		}
	})
}

// What cannot be started says why, and nothing is recorded.
func TestWhatCannotBeStarted(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		spoil func(*lrm.Attempt)
		want  error
		text  string
	}{
		"too late":      {func(*lrm.Attempt) {}, context.Canceled, ""},
		"a bad attempt": {func(a *lrm.Attempt) { a.ID.Token = 0 }, lrm.ErrAttempt, ""},
		"no directory":  {func(a *lrm.Attempt) { a.Dir = a.RecordPath }, nil, "prepare sandbox: "},
		"no record":     {func(a *lrm.Attempt) { a.RecordPath = a.Dir }, nil, "open run record: "},
		"no place for output": {
			func(a *lrm.Attempt) { blocked(t, a.StdoutPath()) }, nil, "keep output: ",
		},
		"no place for errors": {
			func(a *lrm.Attempt) { blocked(t, a.StderrPath()) }, nil, "keep output: ",
		},
	} {
		ctx := t.Context()
		if errors.Is(c.want, context.Canceled) {
			ctx = over
		}
		a := attempt(t, lrm.BootNow())
		record := a.RecordPath
		if err := os.WriteFile(record, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.spoil(&a)
		_, err := fake.New(fake.Config{}).Start(ctx, a)
		if err == nil || c.want != nil && !errors.Is(err, c.want) ||
			!strings.HasPrefix(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v %q", name, err, c.want, c.text)
		}
		if text, err := os.ReadFile(record); err != nil || len(text) > 0 {
			t.Errorf("%s: recorded %q, %v", name, text, err)
		}
	}
	if err := fake.New(fake.Config{}).Recover(over); !errors.Is(err, context.Canceled) {
		t.Errorf("recovered too late: %v", err)
	}
}

// blocked puts a directory where a file is wanted.
func blocked(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

// The adapter says what it runs, and that it runs nothing.
func TestWhatTheAdapterSays(t *testing.T) {
	for kind, want := range map[grid.WorkKind]grid.WorkKind{
		0: grid.KindWasm, grid.KindWasm: grid.KindWasm, grid.KindCommand: grid.KindCommand,
	} {
		s := fake.New(fake.Config{Kind: kind}).Probe(t.Context())
		if !slices.Equal(s.Kinds, []grid.WorkKind{want}) || !s.Freeze || len(s.Walls) > 0 ||
			!slices.Equal(s.Notes, []string{"plays programs instead of running them"}) {
			t.Errorf("%v: %+v", kind, s)
		}
	}
}
