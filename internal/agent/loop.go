package agent

import (
	"container/heap"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// journal writes down what a machine is told and what it wants; facts are
// durable when Apply returns.
type journal interface {
	Record(now time.Time, in step.Input, effects []step.Effect) error
	Apply(facts []step.Fact) error
}

// errOverloaded answers an input that finds the queue full, errEnded a question
// that comes after the loop has ended.
var (
	errOverloaded = fmt.Errorf("%w: too much is waiting for it; try again", view.ErrBusy)
	errEnded      = fmt.Errorf("%w: it is stopping", view.ErrBusy)
)

// queueLimit bounds the inputs that wait for a machine. Messages beyond are
// dropped, as a network would; inputs from this machine's own parts, which are
// few, are always accepted.
const queueLimit = 1 << 16

// longestNap bounds how long a loop sleeps: the runtime's timers do not count
// time of suspend, the machines' clock does.
const longestNap = time.Second

// loop owns one machine. Only its goroutine touches the fields below the line.
type loop struct {
	name    string
	log     *slog.Logger
	clock   clock
	perform func(step.Effect) // carries out an effect that is no timer and no fact
	starved func()            // hears that the disk is full
	hold    endurance         // with a disk that takes no facts

	mu    sync.Mutex
	queue []task        // guarded by mu
	wake  chan struct{} // capacity 1: a token means that the queue is not empty
	ended chan struct{} // closed when run has returned

	machine step.Machine
	journal journal
	turn    func(context.Context, []task) error // what is done with a batch: work, or a group's
	timers  timerHeap
	byKey   map[step.TimerKey]*timer

	unjournalled bool // the journal failed and that was said
}

// task is an input, one of a member of a group, or a question that is asked between two inputs.
type task struct {
	input  step.Input
	member standby.Input
	ask    func()
}

func newLoop(
	name string, m step.Machine, j journal, c clock, log *slog.Logger, perform func(step.Effect),
) *loop {
	l := &loop{
		name: name, log: log, clock: c, perform: perform, wake: make(chan struct{}, 1),
		ended:   make(chan struct{}),
		starved: func() {}, hold: endurance{full: 10 * time.Minute, broken: 3 * time.Second},
		machine: m, journal: j, byKey: make(map[step.TimerKey]*timer),
	}
	l.turn = l.work
	return l
}

// tell queues an input that must not be lost.
func (l *loop) tell(in step.Input) { _ = l.push(task{input: in}, false) }

// offer queues an input unless too much is waiting.
func (l *loop) offer(in step.Input) error { return l.push(task{input: in}, true) }

// soon runs a function on the loop's goroutine, between two steps.
func (l *loop) soon(do func()) { _ = l.push(task{ask: do}, false) }

// ask runs a function on the loop's goroutine, between two steps, and waits. When
// it returns an error the function did not run and never will.
func (l *loop) ask(ctx context.Context, question func()) error {
	done := make(chan struct{})
	var taken atomic.Bool // by the loop, or by giving up
	answer := func() {
		defer close(done)
		if !taken.Swap(true) {
			question()
		}
	}
	if err := l.push(task{ask: answer}, true); err != nil {
		return err
	}
	var err error
	select {
	case <-done:
		return nil
	case <-l.ended:
		err = errEnded
	case <-ctx.Done():
		err = ctx.Err()
	}
	if taken.Swap(true) { // it is being answered now
		<-done
		return nil
	}
	return fmt.Errorf("ask the %s machine: %w", l.name, err)
}

// answers waits until the loop has come to a question that asks nothing, however much is waiting
// before it.
func (l *loop) answers(ctx context.Context) error {
	done := make(chan struct{})
	l.soon(func() { close(done) })
	select {
	case <-done:
		return nil
	case <-l.ended:
		return errEnded
	case <-ctx.Done():
		return fmt.Errorf("ask the %s machine: %w", l.name, ctx.Err())
	}
}

func (l *loop) push(t task, bounded bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bounded && len(l.queue) >= queueLimit {
		return errOverloaded
	}
	l.queue = append(l.queue, t)
	l.rouse()
	return nil
}

// rouse wakes the loop.
func (l *loop) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *loop) take() []task {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.queue
	l.queue = nil
	return batch
}

// run lets the machine live until the context ends. It is called once. A panic of the machine is
// a broken invariant: the machine stops, and its journal tells why.
func (l *loop) run(ctx context.Context) (err error) {
	defer close(l.ended)
	defer func() {
		if r := recover(); r != nil {
			l.log.Error("the machine broke an invariant",
				"machine", l.name, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s machine: %v", l.name, r)
		}
	}()
	for ctx.Err() == nil {
		if batch := l.gather(); len(batch) > 0 {
			if err := l.turn(ctx, batch); err != nil {
				return err
			}
			continue
		}
		l.nap(ctx)
	}
	return nil
}

// gather takes all that is to be done now: what waits in the queue, then the timers that are
// due.
func (l *loop) gather() []task {
	batch := l.take()
	for {
		due, ok := l.due()
		if !ok {
			return batch
		}
		batch = append(batch, task{input: step.TimerFired{Key: due}})
	}
}

func (l *loop) nap(ctx context.Context) {
	d := longestNap
	if len(l.timers) == 0 {
		d = time.Hour
	} else if next := l.timers[0].at.Sub(l.clock.now()); next < d {
		d = max(0, next)
	}
	alarm := time.NewTimer(d)
	defer alarm.Stop()
	select {
	case <-l.wake:
	case <-alarm.C:
	case <-ctx.Done():
	}
}

// work lets the machine take a batch of inputs; their facts become durable
// together, before anything else that the machine wants is done. A firing that an earlier
// input of the batch has overtaken is dropped (rule 5 of pkg/step): the machine has set that
// timer anew, or wants it no more, since the firing was taken.
func (l *loop) work(ctx context.Context, batch []task) error {
	var facts []step.Fact
	var effects []step.Effect
	var questions []func()
	overtaken := make(map[step.TimerKey]struct{})
	for _, t := range batch {
		if t.ask != nil {
			questions = append(questions, t.ask)
			continue
		}
		if fired, is := t.input.(step.TimerFired); is {
			if _, dropped := overtaken[fired.Key]; dropped {
				continue
			}
		}
		now := l.clock.now()
		wanted := l.machine.Step(now, t.input)
		l.heedJournal(l.journal.Record(now, t.input, wanted))
		for _, e := range wanted {
			switch e := e.(type) {
			case step.Persist:
				facts = append(facts, e.Fact)
				continue
			case step.SetTimer:
				overtaken[e.Key] = struct{}{}
			case step.StopTimer:
				overtaken[e.Key] = struct{}{}
			}
			effects = append(effects, e)
		}
	}
	if len(facts) > 0 {
		if err := l.remember(ctx, func() error { return l.journal.Apply(facts) }); err != nil {
			return fmt.Errorf("facts of the %s machine: %w", l.name, err)
		}
	}
	for _, e := range effects {
		l.carryOut(e)
	}
	for _, q := range questions {
		q()
	}
	return nil
}

// heedJournal says once that the journal could not be written: replay will end there, and the facts
// are what matters.
func (l *loop) heedJournal(err error) {
	if err != nil && !l.unjournalled {
		l.unjournalled = true
		l.log.Error("the journal cannot be written; replay will miss what follows",
			"machine", l.name, "error", err)
	}
}

func (l *loop) carryOut(e step.Effect) {
	switch e := e.(type) {
	case step.SetTimer:
		l.setTimer(e.Key, e.At)
	case step.StopTimer:
		l.stopTimer(e.Key)
	default:
		l.perform(e)
	}
}

func (l *loop) setTimer(key step.TimerKey, at time.Time) {
	l.stopTimer(key)
	t := &timer{key: key, at: at}
	l.byKey[key] = t
	heap.Push(&l.timers, t)
}

func (l *loop) stopTimer(key step.TimerKey) {
	if t, set := l.byKey[key]; set {
		heap.Remove(&l.timers, t.place)
		delete(l.byKey, key)
	}
}

// due takes the first timer whose time has come.
func (l *loop) due() (step.TimerKey, bool) {
	if len(l.timers) == 0 || l.timers[0].at.After(l.clock.now()) {
		return step.TimerKey{}, false
	}
	key := l.timers[0].key
	l.stopTimer(key)
	return key, true
}

type timer struct {
	key   step.TimerKey
	at    time.Time
	place int // in the heap
}

type timerHeap []*timer

func (h *timerHeap) Len() int           { return len(*h) }
func (h *timerHeap) Less(i, j int) bool { return (*h)[i].at.Before((*h)[j].at) }
func (h *timerHeap) Swap(i, j int) {
	timers := *h
	timers[i], timers[j] = timers[j], timers[i]
	timers[i].place, timers[j].place = i, j
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	t, _ := x.(*timer)
	t.place = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}
