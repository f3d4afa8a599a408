package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// puppet is an adapter, and the one process that it starts, whose strings a test pulls.
type puppet struct {
	lrm.Adapter
	started  chan lrm.Attempt
	events   chan lrm.Event
	over     chan struct{}
	end      func() // closes events and over, once
	finished lrm.Result

	mu      sync.Mutex
	fails   error // of what it is told; guarded by mu
	calls   []string
	cpu     time.Duration
	unknown bool // how much of the processor it has used
}

func newPuppet() *puppet {
	p := &puppet{
		Adapter: fake.New(fake.Config{}), started: make(chan lrm.Attempt, 1),
		events: make(chan lrm.Event, 16), over: make(chan struct{}),
		finished: lrm.Result{Exit: grid.Exit{Cause: grid.CauseExited}},
	}
	p.end = sync.OnceFunc(func() { close(p.events); close(p.over) })
	return p
}

// Start implements lrm.Adapter.
func (p *puppet) Start(_ context.Context, a lrm.Attempt) (lrm.Process, error) {
	p.started <- a
	return p, nil
}

func (p *puppet) note(format string, args ...any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
	return p.fails
}

func (p *puppet) called() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

func (p *puppet) fail(with error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = with
}

// SetLease implements lrm.Control.
func (p *puppet) SetLease(until lrm.BootTime) error { return p.note("lease %d", until) }

// Suspend implements lrm.Control.
func (p *puppet) Suspend(on bool) error { return p.note("suspend %t", on) }

// Stop implements lrm.Control. What it is told it does when it does not fail.
func (p *puppet) Stop(why string) error {
	err := p.note("stop: %s", why)
	if err == nil {
		p.end()
	}
	return err
}

// CPUTime implements lrm.Meter.
func (p *puppet) CPUTime() (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cpu, !p.unknown
}

// Events implements lrm.Watch.
func (p *puppet) Events() <-chan lrm.Event { return p.events }

// Wait implements lrm.Watch.
func (p *puppet) Wait(ctx context.Context) (lrm.Result, error) {
	select {
	case <-p.over:
		return p.finished, nil
	case <-ctx.Done():
		return lrm.Result{}, ctx.Err()
	}
}

// play makes a bench with a puppet that has been started.
func play(t *testing.T, task grid.Task, tune ...func(*Config)) (*bench, *puppet, lrm.Attempt) {
	t.Helper()
	p := newPuppet()
	c := plans(t, 2)[1]
	c.Adapters = map[grid.WorkKind]lrm.Adapter{grid.KindWasm: p}
	for _, change := range tune {
		change(&c)
	}
	b := newBenchOf(t, c)
	t.Cleanup(p.end)
	b.stage()
	b.begin(time.Hour, task)
	select {
	case at := <-p.started:
		return b, p, at
	case <-time.After(patience):
		t.Fatal("the attempt is not started")
		return nil, nil, lrm.Attempt{}
	}
}

// list gives all that the site was told of one type, in order.
func list[I any](b *bench) (found []I) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, in := range b.heard {
		if same, is := in.(I); is {
			found = append(found, same)
		}
	}
	return found
}
