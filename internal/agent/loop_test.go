package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// scripted is a machine that does what a function says.
type scripted func(now time.Time, in step.Input) []step.Effect

// Step implements step.Machine.
func (s scripted) Step(now time.Time, in step.Input) []step.Effect { return s(now, in) }

// Snapshot implements step.Machine.
func (s scripted) Snapshot() []byte { return nil }

// Restore implements step.Machine.
func (s scripted) Restore([]byte) error { return nil }

// Check implements step.Machine.
func (s scripted) Check() error { return nil }

// diary writes down in which order a loop does things.
type diary struct {
	mu      sync.Mutex
	lines   []string
	refused error // the answer to facts
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// Record implements journal.
func (d *diary) Record(_ time.Time, in step.Input, effects []step.Effect) error {
	d.add("record %T with %d effects", in, len(effects))
	return nil
}

// Apply implements journal.
func (d *diary) Apply(facts []step.Fact) error {
	for _, f := range facts {
		d.add("fact %s", f.Key)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

func (d *diary) refuse(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = err
}

func (d *diary) perform(e step.Effect) {
	if r, ok := e.(step.Report); ok {
		d.add("report %s", r.Event)
		return
	}
	d.add("%T", e)
}

// live runs a loop until the end of the test.
func live(t *testing.T, d *diary, m scripted) (*loop, func() error) {
	t.Helper()
	l := newLoop("test", m, d, newClock(nil, nil), obs.Or(nil), d.perform)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.run(ctx) }()
	end := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = end() })
	return l, end
}

func TestFactsComeFirst(t *testing.T) {
	d := &diary{}
	gate := make(chan struct{})
	l, _ := live(t, d, func(_ time.Time, in step.Input) []step.Effect {
		switch in := in.(type) {
		case step.Resume: // holds the loop until the rest is queued
			<-gate
			return nil
		case step.Boot:
			n := fmt.Sprint(in.Incarnation)
			return []step.Effect{
				step.Report{Event: "before" + n},
				step.Persist{Fact: step.Fact{Kind: "k", Key: n}},
				step.Send{To: "x"},
			}
		default:
			return []step.Effect{step.Report{Event: "factless"}}
		}
	})
	l.tell(step.Resume{})
	l.tell(step.Boot{Incarnation: 1})
	l.tell(step.Pause{})
	l.tell(step.Boot{Incarnation: 2})
	close(gate)
	if err := l.ask(t.Context(), func() { d.add("question") }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all is done", func() bool { return len(d.all()) >= 11 })
	lines := d.all()
	// The loop may take the inputs in one batch or in several: within each, all
	// facts stand before all effects.
	at := func(line string) int { return slices.Index(lines, line) }
	for _, n := range []string{"1", "2"} {
		if fact, effect := at("fact "+n), at("report before"+n); fact < 0 || effect < fact {
			t.Errorf("the effects of input %s do not follow its fact: %q", n, lines)
		}
	}
	if at("report before1") > at("report before2") || at("report before1") > at("report factless") {
		t.Errorf("effects are out of order: %q", lines)
	}
	if lines[0] != "record step.Resume with 0 effects" {
		t.Errorf("the journal begins with %q", lines[0])
	}
}

func TestNoEffectWithoutFacts(t *testing.T) {
	d := &diary{refused: errors.New("disk full")}
	l, end := live(t, d, factAndSend)
	l.hold.broken = 0
	l.tell(step.Boot{})
	<-l.ended
	if err := end(); !errors.Is(err, d.refused) ||
		!strings.Contains(err.Error(), "facts of the test machine") {
		t.Errorf("run: %v, want the cause", err)
	}
	want := []string{"record step.Boot with 2 effects", "fact 1"}
	if diff := cmp.Diff(want, d.all()); diff != "" {
		t.Errorf("something was done though its fact is not durable (-want +got):\n%s", diff)
	}
	if err := l.ask(t.Context(), func() {}); !errors.Is(err, view.ErrBusy) {
		t.Errorf("a question after the end: %v, want ErrBusy", err)
	}
}

func factAndSend(time.Time, step.Input) []step.Effect {
	return []step.Effect{step.Persist{Fact: step.Fact{Kind: "k", Key: "1"}}, step.Send{To: "x"}}
}

// A full disk holds back what the machine wants; questions are answered meanwhile, and when
// there is space all goes on in its order.
func TestFullDiskHoldsBack(t *testing.T) {
	d := &diary{refused: &os.PathError{Op: "write", Path: "facts.db", Err: syscall.ENOSPC}}
	l, _ := live(t, d, factAndSend)
	starved := make(chan struct{}, 100)
	l.starved = func() { starved <- struct{}{} }
	l.tell(step.Boot{})
	<-starved
	l.tell(step.Resume{})
	<-starved
	if err := l.ask(t.Context(), func() { d.add("question") }); err != nil {
		t.Fatal(err)
	}
	sent := func() (n int) {
		for _, line := range d.all() {
			if line == "step.Send" || line == "record step.Resume with 2 effects" {
				n++
			}
		}
		return n
	}
	if err := l.answers(t.Context()); err != nil {
		t.Errorf("it waits for the disk, and is alive: %v", err)
	}
	if sent() != 0 || !slices.Contains(d.all(), "question") {
		t.Errorf("without its facts: %q", d.all())
	}
	d.refuse(nil)
	eventually(t, "all is done", func() bool { return sent() == 3 })
}

// After a while of that the agent ends.
func TestFullDiskForTooLong(t *testing.T) {
	d := &diary{refused: &os.PathError{Op: "write", Path: "facts.db", Err: syscall.ENOSPC}}
	l, end := live(t, d, factAndSend)
	l.hold.full = time.Millisecond
	l.tell(step.Boot{})
	<-l.ended
	if err := end(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("run: %v, want the cause", err)
	}
}

// A loop is alive when it comes to what is asked: not in a step that does not end, and not when
// it has ended.
func TestAlive(t *testing.T) {
	enters, leaves := make(chan struct{}), make(chan struct{})
	l, end := live(t, &diary{}, func(time.Time, step.Input) []step.Effect {
		enters <- struct{}{}
		<-leaves
		return nil
	})
	if err := l.answers(t.Context()); err != nil {
		t.Errorf("idle: %v", err)
	}
	l.tell(step.Boot{})
	<-enters
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := l.answers(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("within a step: %v", err)
	}
	close(leaves)
	if err := l.answers(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if err := l.answers(t.Context()); !errors.Is(err, errEnded) {
		t.Errorf("ended: %v", err)
	}
}

func TestTimers(t *testing.T) {
	key := func(name string) step.TimerKey { return step.TimerKey{Name: name} }
	d := &diary{}
	var l *loop
	l, _ = live(t, d, func(now time.Time, in step.Input) []step.Effect {
		if fired, ok := in.(step.TimerFired); ok {
			return []step.Effect{step.Report{Event: "fired " + fired.Key.Name}}
		}
		set := func(name string, ms int) step.Effect {
			return step.SetTimer{Key: key(name), At: now.Add(time.Duration(ms) * time.Millisecond)}
		}
		return []step.Effect{
			set("late", 60), set("stopped", 20), set("moved back", 10_000), set("past", -1000),
			set("moved out", 20), set("soon", 30),
			step.StopTimer{Key: key("stopped")},
			step.StopTimer{Key: key("unknown")},
			set("moved back", 40), set("moved out", 3_600_000),
		}
	})
	l.tell(step.Boot{})
	reports := func() []string {
		return slices.DeleteFunc(d.all(), func(s string) bool { return !strings.HasPrefix(s, "report") })
	}
	eventually(t, "the timers fire", func() bool { return len(reports()) >= 4 })
	want := []string{
		"report fired past", "report fired soon", "report fired moved back", "report fired late",
	}
	if diff := cmp.Diff(want, reports()); diff != "" {
		t.Errorf("firings (-want +got):\n%s", diff)
	}
	var left int
	if err := l.ask(t.Context(), func() { left = len(l.timers) + len(l.byKey) }); err != nil ||
		left != 2 {
		t.Errorf("%d entries of timers are left, %v; want the one that was moved out, twice", left, err)
	}
}

// Timers that are due together with an input that sets them anew, or stops them, do not fire
// after it: rule 5 of pkg/step. A lease that a message has just prolonged must not be taken
// for one that has ended.
func TestFiringsOvertakenInTheirBatchAreDropped(t *testing.T) {
	key := func(name string) step.TimerKey { return step.TimerKey{Name: name} }
	var heard []string
	var l *loop
	machine := scripted(func(now time.Time, in step.Input) []step.Effect {
		fired, is := in.(step.TimerFired)
		if !is {
			return []step.Effect{
				step.SetTimer{Key: key("moved"), At: now.Add(time.Hour)},
				step.StopTimer{Key: key("stopped")},
				step.SetTimer{Key: key("again"), At: now.Add(-time.Second)},
			}
		}
		heard = append(heard, fired.Key.Name)
		if fired.Key.Name == "first" {
			return []step.Effect{step.StopTimer{Key: key("second")}}
		}
		return nil
	})
	d := &diary{}
	l = newLoop("test", machine, d, newClock(nil, nil), obs.Or(nil), d.perform)
	for i, name := range []string{"first", "second", "moved", "stopped", "again", "kept"} {
		l.setTimer(key(name), l.clock.now().Add(time.Duration(i-10)*time.Second))
	}
	l.tell(step.Resume{})
	if err := l.work(t.Context(), l.gather()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"first", "kept"}, heard); diff != "" {
		t.Errorf("firings that came with the input (-want +got):\n%s", diff)
	}
	if got := len(d.all()); got != 3 {
		t.Errorf("%d inputs are in the journal, want those that the machine was given: %q", got, d.all())
	}
	if err := l.work(t.Context(), l.gather()); err != nil || len(heard) != 3 || heard[2] != "again" {
		t.Errorf("afterwards %v fired, %v; want the one that was set anew, too", heard, err)
	}
	if len(l.timers) != 1 || l.byKey[key("moved")] == nil {
		t.Errorf("%d timers are left, want the one that was moved out", len(l.timers))
	}
}

func TestPanicEndsTheLoop(t *testing.T) {
	l, end := live(t, &diary{}, func(time.Time, step.Input) []step.Effect { panic("lost count") })
	l.tell(step.Boot{})
	<-l.ended
	if err := end(); err == nil || !strings.Contains(err.Error(), "test machine: lost count") {
		t.Errorf("run: %v, want what broke", err)
	}
}

func TestOverload(t *testing.T) {
	l := newLoop("test", nil, nil, newClock(nil, nil), obs.Or(nil), nil)
	for range queueLimit {
		if err := l.offer(step.Boot{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.offer(step.Boot{}); !errors.Is(err, view.ErrBusy) {
		t.Errorf("offer to a full queue: %v, want ErrBusy", err)
	}
	if err := l.ask(t.Context(), func() {}); !errors.Is(err, view.ErrBusy) {
		t.Errorf("question to a full queue: %v, want ErrBusy", err)
	}
	l.tell(step.Boot{})
	if got := len(l.take()); got != queueLimit+1 {
		t.Errorf("%d inputs wait, want all that were taken and the one that must not be lost", got)
	}
}

func TestQuestionThatNobodyAwaits(t *testing.T) {
	l := newLoop("test", scripted(nil), &diary{}, newClock(nil, nil), obs.Or(nil), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	asked := false
	if err := l.ask(ctx, func() { asked = true }); !errors.Is(err, context.Canceled) {
		t.Errorf("ask: %v, want Canceled", err)
	}
	if err := l.work(t.Context(), l.take()); err != nil || asked {
		t.Errorf("the question was answered to nobody, %v", err)
	}
}

func TestClockNeverStepsBack(t *testing.T) {
	c := newClock(nil, nil)
	last := c.now()
	for range 10_000 {
		now := c.now()
		if now.Before(last) {
			t.Fatalf("%s comes after %s", now, last)
		}
		last = now
	}
	// A clock whose wall was set wrongly goes on from there at the same pace.
	wrong := c
	wrong.wall = c.wall.Add(-time.Hour)
	if off := c.now().Sub(wrong.now()); off > time.Hour || off < time.Hour-time.Minute {
		t.Errorf("the clocks are %s apart, want an hour", off)
	}
	until := c.now().Add(3 * time.Second)
	if left := c.toBoot(until).Sub(lrm.BootNow()); left > 3*time.Second || left < 2*time.Second {
		t.Errorf("a lease of 3 s lasts %s on the supervisors' clock", left)
	}
}

func TestLoopSleepsWithoutWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, end := live(t, &diary{}, func(time.Time, step.Input) []step.Effect { return nil })
		l.tell(step.Boot{})
		synctest.Wait() // durably blocked: the loop naps and does not spin
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
