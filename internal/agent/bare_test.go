package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// ear is a machine that does nothing but listen.
type ear struct {
	mu    sync.Mutex
	heard []step.Input // guarded by mu
}

func (e *ear) machine() scripted {
	return func(_ time.Time, in step.Input) []step.Effect {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, in)
		return nil
	}
}

// heardOf lists what an ear was told of one type, in order.
func heardOf[I step.Input](e *ear) (list []I) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, in := range e.heard {
		if same, is := in.(I); is {
			list = append(list, same)
		}
	}
	return list
}

// sentence is a log that a test reads while it is written.
type sentence struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	hook func(string) // called for each line, by its writer; nil = nothing
}

func (s *sentence) Write(p []byte) (int, error) {
	if s.hook != nil {
		s.hook(string(p))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *sentence) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// count says how often a text stands in the log.
func (s *sentence) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Count(s.text.Bytes(), []byte(text))
}

// letter is a message that an agent sent.
type letter struct {
	to      grid.SiteID
	message protocol.Message
}

// bare is an agent without network, data and disk, whose machines only listen. What it sends
// is kept here.
type bare struct {
	*Agent
	ofSite, ofBroker ear
	said             sentence
	mu               sync.Mutex
	letters          []letter // guarded by mu
	end              func() error
}

// newBare makes one and runs its loops until the end of the test, or of its bubble.
func newBare(t *testing.T) *bare {
	t.Helper()
	b := &bare{}
	log := slog.New(slog.NewTextHandler(&b.said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a := &Agent{
		readers: newReaders(),
		log:     log, clock: newClock(virtualBoot, nil), started: time.Now(), checks: newChecks(),
		events: view.NewEventLog(64, 1), ready: make(chan struct{}),
	}
	a.reports = newReporter(nil, log, a.events)
	a.cfg.Taps.Sending = func(to grid.SiteID, m protocol.Message) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.letters = append(b.letters, letter{to, m})
		return false
	}
	a.ctx, a.leave = context.WithCancelCause(context.Background())
	b.Agent = a
	quiet := func(step.Effect) {}
	a.site = newLoop(siteName, b.ofSite.machine(), &diary{}, a.clock, log, quiet)
	a.broker = newLoop(brokerName, b.ofBroker.machine(), &diary{}, a.clock, log, quiet)
	a.wireHeeding(newHeeding())
	close(a.ready)
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ran <- a.Run(ctx) }()
	b.end = sync.OnceValue(func() error {
		cancel()
		err := <-ran
		a.leave(errStopped)
		a.group.Wait()
		return err
	})
	t.Cleanup(func() {
		if err := b.end(); err != nil {
			t.Errorf("the agent ends with %v", err)
		}
	})
	return b
}

// virtualBoot is a boot clock that goes with time.Now, also in a bubble.
func virtualBoot() lrm.BootTime { return lrm.BootTime(time.Now().UnixNano()) }

func (b *bare) sent() []letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]letter(nil), b.letters...)
}

// settle waits until both machines have heard all that they were told so far.
func (b *bare) settle(t *testing.T) {
	t.Helper()
	for _, l := range []*loop{b.site, b.broker} {
		if err := l.ask(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
	}
}

var errForTest = errors.New("as the test says")
