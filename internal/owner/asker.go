package owner

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// asker asks somebody now and then whether the machine is shared. It belongs to one goroutine, but
// for what mu guards.
type asker struct {
	every time.Duration // from an answer to the next question
	// ask asks once, within a bound; about comes from use. It belongs to one goroutine.
	ask func(ctx context.Context, about []string) yield.Said

	about    []string      // empty: nothing is asked
	end      func()        // ends asking, and waits for that; nil: nothing is asked
	answered chan struct{} // closed when this was answered; nil: nothing is asked

	mu   sync.Mutex
	said yield.Said // guarded by mu; the last one
}

// use asks about this from now on, at first without delay; about nothing it does not ask. Until
// there is an answer, that to the question before stays, or, where there was none, the machine is
// shared.
func (a *asker) use(ctx context.Context, about []string) {
	if slices.Equal(about, a.about) {
		return
	}
	if len(a.about) == 0 {
		a.note(yield.Said{})
	}
	a.stop()
	if len(about) == 0 {
		return
	}
	a.about, a.answered = slices.Clone(about), make(chan struct{})
	first := sync.OnceFunc(func() { close(a.answered) })
	asking, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	a.end = func() { cancel(); <-done }
	go func() {
		defer close(done)
		a.keepAsking(asking, first)
	}()
}

// await waits for the first answer.
func (a *asker) await(ctx context.Context) {
	if a.answered == nil {
		return
	}
	select {
	case <-a.answered:
	case <-ctx.Done():
	}
}

// stop ends asking.
func (a *asker) stop() {
	if a.end != nil {
		a.end()
		a.end, a.about, a.answered = nil, nil, nil
	}
}

// keepAsking asks until the context ends, which is before a.about changes.
func (a *asker) keepAsking(ctx context.Context, first func()) {
	for {
		said := a.ask(ctx, a.about)
		if ctx.Err() != nil {
			return
		}
		a.note(said)
		first()
		select {
		case <-time.After(a.every):
		case <-ctx.Done():
			return
		}
	}
}

func (a *asker) note(said yield.Said) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = said
}

// verdict is the last answer; where nothing is asked the machine is shared.
func (a *asker) verdict() yield.Said {
	if len(a.about) == 0 {
		return yield.Said{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said
}
