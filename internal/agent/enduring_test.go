package agent

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

var errFull = &os.PathError{Op: "write", Path: "facts.db", Err: syscall.ENOSPC}

// loud is a loop with a log that the test reads.
func loud(d *diary, said *sentence, c clock, m scripted) *loop {
	return newLoop("test", m, d, c, logged(said, -4), d.perform)
}

// runLoop runs a loop in a bubble; what it returns ends it.
func runLoop(t *testing.T, l *loop) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.run(ctx) }()
	ended := false
	end = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { _ = end() })
	return end
}

// A full disk is waited for for ten minutes, which an owner needs to make room; one that fails
// otherwise for three seconds. Then the loop ends with the cause.
func TestHowLongADiskIsEndured(t *testing.T) {
	for name, c := range map[string]struct {
		refused error
		least   time.Duration
	}{
		"full":   {errFull, 10 * time.Minute},
		"broken": {errForTest, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said sentence
				d := &diary{refused: c.refused}
				l := loud(d, &said, newClock(virtualBoot, nil), factAndSend)
				starved := 0
				l.starved = func() { starved++ }
				begin := time.Now()
				end := runLoop(t, l)
				l.tell(step.Boot{})
				<-l.ended
				if held := time.Since(begin); held < c.least || held > c.least+2*retryFacts {
					t.Errorf("it held out for %s, want %s", held, c.least)
				}
				if err := end(); !errors.Is(err, c.refused) {
					t.Errorf("it ends with %v, want the cause", err)
				}
				if full := errors.Is(c.refused, syscall.ENOSPC); (starved > 0) != full {
					t.Errorf("told of a full disk %d times", starved)
				}
				if n := said.count("facts cannot be written"); n != 1 {
					t.Errorf("it is said %d times: %s", n, said.String())
				}
				if n := len(d.all()); n < int(c.least/retryFacts) {
					t.Errorf("it tried %d times in %s", n, c.least)
				}
			})
		})
	}
}

// When facts can be written again that is said, and what came meanwhile is done in its order,
// without anything that wakes the loop. A loop that had no trouble says nothing.
func TestAfterADiskFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said sentence
		d := &diary{}
		l := loud(d, &said, newClock(virtualBoot, nil), factAndSend)
		runLoop(t, l)
		l.tell(step.Boot{})
		synctest.Wait()
		if said.String() != "" {
			t.Errorf("without trouble it says %s", said.String())
		}
		d.refuse(errForTest)
		l.tell(step.Resume{})
		synctest.Wait()
		asked := 0
		if err := l.ask(t.Context(), func() { asked++ }); err != nil || asked != 1 {
			t.Errorf("a question meanwhile: %v, asked %d times", err, asked)
		}
		l.tell(step.Drain{})
		before := len(d.all())
		d.refuse(nil)
		time.Sleep(2 * retryFacts)
		var done []string
		for _, line := range d.all()[before:] {
			if strings.HasPrefix(line, "record") || line == "step.Send" {
				done = append(done, line)
			}
		}
		want := []string{"step.Send", "record step.Drain with 2 effects", "step.Send"}
		if !slices.Equal(done, want) {
			t.Errorf("afterwards %q, want %q", done, want)
		}
		if n := said.count("facts can be written again"); n != 1 {
			t.Errorf("that it goes on is said %d times: %s", n, said.String())
		}
	})
}

// While it waits for the disk a loop can be ended.
func TestALoopEndsWhileItWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said sentence
		d := &diary{refused: errFull}
		l := loud(d, &said, newClock(virtualBoot, nil), factAndSend)
		end := runLoop(t, l)
		l.tell(step.Boot{})
		synctest.Wait()
		begin := time.Now()
		if err := end(); !errors.Is(err, errFull) {
			t.Errorf("it ends with %v, want the cause", err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %s to end", took)
		}
	})
}

// deaf is a diary whose journal cannot be written.
type deaf struct{ *diary }

func (d deaf) Record(time.Time, step.Input, []step.Effect) error { return errForTest }

// A journal that cannot be written is said once, and stops nothing.
func TestAJournalThatCannotBeWritten(t *testing.T) {
	var said sentence
	d := &diary{}
	l := loud(d, &said, newClock(nil, nil), factAndSend)
	l.journal = deaf{d}
	for range 3 {
		l.tell(step.Boot{})
		if err := l.work(t.Context(), l.take()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"fact 1", "step.Send", "fact 1", "step.Send", "fact 1", "step.Send"}
	if got := d.all(); !slices.Equal(got, want) {
		t.Errorf("done: %q, want %q", got, want)
	}
	if n := said.count("the journal cannot be written"); n != 1 {
		t.Errorf("it is said %d times: %s", n, said.String())
	}
	said = sentence{}
	l.journal, l.unjournalled = d, false
	l.tell(step.Boot{})
	if err := l.work(t.Context(), l.take()); err != nil || said.String() != "" {
		t.Errorf("with a journal it says %s, %v", said.String(), err)
	}
}

// A loop without timers does not look at the clock at all; with one it sleeps until that is
// due, and no longer than longestNap, because the clock goes on during a suspend that no
// sleeper notices.
func TestHowLongALoopSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, slept atomic.Int64
		read := func() lrm.BootTime {
			looks.Add(1)
			return virtualBoot().Add(time.Duration(slept.Load()))
		}
		fired := make(chan time.Time, 1)
		var said sentence
		l := loud(&diary{}, &said, newClock(read, nil), func(now time.Time, in step.Input) []step.Effect {
			switch in := in.(type) {
			case step.StageProgress: // its number says when
				return []step.Effect{step.SetTimer{At: now.Add(time.Duration(in.Done))}}
			case step.TimerFired:
				fired <- time.Now()
			}
			return nil
		})
		runLoop(t, l)
		synctest.Wait()
		looks.Store(0)
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if n := looks.Load(); n != 0 {
			t.Errorf("without timers it looked at the clock %d times", n)
		}
		for _, wait := range []time.Duration{
			300 * time.Millisecond, longestNap, 2500 * time.Millisecond, 0,
		} {
			begin := time.Now()
			l.tell(step.StageProgress{Done: int64(wait)})
			if at := <-fired; at.Sub(begin) != wait {
				t.Errorf("a timer of %s fires after %s", wait, at.Sub(begin))
			}
		}
		l.tell(step.StageProgress{Done: int64(time.Hour)})
		synctest.Wait()
		begin := time.Now()
		slept.Store(int64(time.Hour)) // the machine was suspended
		if at := <-fired; at.Sub(begin) > longestNap {
			t.Errorf("after a suspend the timer fires after %s, want at most %s", at.Sub(begin), longestNap)
		}
		looks.Store(0)
		l.tell(step.StageProgress{Done: int64(time.Minute)})
		<-fired
		if n := looks.Load(); n > 4*int64(time.Minute/longestNap) {
			t.Errorf("it looked at the clock %d times in a minute", n)
		}
	})
}
