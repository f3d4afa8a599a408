package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func cancelOf(n uint64) step.Input { return step.CancelJob{Command: n} }

// A command is answered by the reply with its number, whatever else is replied, and is
// forgotten then.
func TestACommandGetsItsOwnReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		type outcome struct {
			id  grid.JobID
			err error
		}
		outcomes := make([]chan outcome, 2)
		for i := range outcomes {
			outcomes[i] = make(chan outcome, 1)
			go func() {
				id, err := b.Command(t.Context(), cancelOf)
				outcomes[i] <- outcome{id, err}
			}()
			synctest.Wait()
		}
		told := heardOf[step.CancelJob](&b.ofBroker)
		if len(told) != 2 || told[0].Command == told[1].Command {
			t.Fatalf("the machine is told %+v, want two commands of different numbers", told)
		}
		b.perform(step.Reply{Command: told[1].Command + 1, Job: "nobody's"})
		b.perform(step.Reply{Command: told[1].Command, Job: "second", Err: errForTest})
		b.perform(step.Reply{Command: told[1].Command, Job: "again"}) // it has its answer
		b.perform(step.Reply{Command: told[0].Command, Job: "first"})
		if got := <-outcomes[0]; got != (outcome{"first", nil}) {
			t.Errorf("the first command: %+v", got)
		}
		if got := <-outcomes[1]; got != (outcome{"second", errForTest}) {
			t.Errorf("the second command: %+v", got)
		}
		if n := len(b.commands.waiting); n != 0 {
			t.Errorf("%d commands still wait", n)
		}
	})
}

// Who gives up gets the reason, and nobody waits for the reply any more. After the end of the
// machine no command is answered.
func TestACommandWithoutReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := b.Command(ctx, cancelOf); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a command without a reply: %v, want the deadline", err)
		}
		if n := len(b.commands.waiting); n != 0 {
			t.Errorf("%d commands still wait", n)
		}
		if err := b.end(); err != nil {
			t.Error(err)
		}
		if _, err := b.Command(t.Context(), cancelOf); !errors.Is(err, view.ErrBusy) {
			t.Errorf("a command after the end: %v, want ErrBusy", err)
		}
		if err := b.Order(t.Context(), step.Resume{}); !errors.Is(err, view.ErrBusy) {
			t.Errorf("an order after the end: %v, want ErrBusy", err)
		}
	})
}

// A command that finds the queue full is refused and was not told.
func TestACommandIsRefusedWhenTooMuchWaits(t *testing.T) {
	b := &Agent{broker: newLoop(brokerName, nil, nil, newClock(nil, nil), nil, nil)}
	b.broker.queue = make([]task, queueLimit)
	if _, err := b.Command(t.Context(), cancelOf); !errors.Is(err, errOverloaded) {
		t.Errorf("a command to a full queue: %v, want %v", err, errOverloaded)
	}
}

// An order is heard when it returns.
func TestAnOrderIsHeardWhenItReturns(t *testing.T) {
	b := newBare(t)
	for n := range 20 {
		if err := b.Order(t.Context(), step.Pause{}); err != nil {
			t.Fatal(err)
		}
		if got := len(heardOf[step.Pause](&b.ofSite)); got != n+1 {
			t.Fatalf("%d orders heard after %d", got, n+1)
		}
	}
	if got := len(heardOf[step.Pause](&b.ofBroker)); got != 0 {
		t.Errorf("the submitter's machine heard %d of the site's orders", got)
	}
}

// The site's name for the wall clock's time follows it as far as the machines were told.
func TestNowIsWhatTheMachinesKnow(t *testing.T) {
	h := &hands{}
	a := &Agent{clock: h.clock()}
	h.pass(time.Hour)
	h.wall.Add(int64(time.Hour))
	if got := a.Now().Sub(time.Unix(0, 0)); got != time.Hour {
		t.Errorf("it shows %s before the machines are told, want an hour", got)
	}
	a.clock.follow()
	if got := a.Now().Sub(time.Unix(0, 0)); got != 2*time.Hour {
		t.Errorf("it shows %s afterwards, want two hours", got)
	}
}
