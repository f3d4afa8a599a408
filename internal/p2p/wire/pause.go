package wire

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff doubles from Low to High, each pause drawn from its upper half.
type Backoff struct{ Low, High, last time.Duration }

// Reset begins with the shortest pause again.
func (b *Backoff) Reset() { b.last = 0 }

// Next is the next pause; the longest where there is no hope.
func (b *Backoff) Next(hopeless bool) time.Duration {
	switch {
	case hopeless:
		b.last = b.High
	case b.last == 0:
		b.last = b.Low
	default:
		b.last = min(2*b.last, b.High)
	}
	return b.last/2 + rand.N(b.last/2+1) //nolint:gosec // jitter
}

// Later calls f after d, unless ctx ends before.
func Later(ctx context.Context, d time.Duration, f func()) {
	if Pause(ctx, d, nil) {
		f()
	}
}

// Pause waits for d, or until woken; it reports false when ctx ends before.
func Pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	}
	return ctx.Err() == nil
}
