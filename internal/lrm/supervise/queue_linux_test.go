package supervise

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// queued counts the attempts that wait for a supervisor.
func (pool *Pool) queued() int {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return len(pool.queue.waiting)
}

// turns lets so many attempts ask for a supervisor, and gives the channel of their turns in the
// order of their arrival.
func turns(t *testing.T, pool *Pool, most int) <-chan *child {
	t.Helper()
	got := make(chan *child, most)
	var asked sync.WaitGroup
	t.Cleanup(asked.Wait)
	for range most {
		asked.Go(func() {
			c, fresh, err := pool.obtain(t.Context())
			if err == nil && fresh == (c == nil) {
				got <- c
			}
		})
	}
	return got
}

// Of a burst of attempts few start supervisors at the same time. The others get those that come
// back, and start further ones when nothing does.
func TestABurstSharesItsSupervisors(t *testing.T) {
	t.Parallel()
	pool := shellPool(`echo 1; read x; true`)
	pool.pause = time.Hour
	const burst = 20
	most := launchMost()
	got := turns(t, pool, most+burst)
	for range most {
		if c := <-got; c != nil {
			t.Fatal("a supervisor from nowhere")
		}
	}
	await(t, "the others wait", func() bool { return pool.queued() == burst })
	c := launched(t, pool)
	for range burst / 2 { // attempts that end quickly
		pool.keep(c)
		if next := <-got; next != c {
			t.Fatal("it starts a further supervisor while one comes back")
		}
	}
	pool.landed()
	if pool.queued() != burst/2 {
		t.Fatal("it starts a further supervisor while one comes back")
	}
	pool.mu.Lock()
	pool.pause = 0 // as if nothing had come back for long
	pool.admit()
	pool.mu.Unlock()
	for range burst / 2 { // and some that do not
		if next := <-got; next != nil {
			t.Fatal("a supervisor that has an attempt")
		}
		pool.landed()
	}
	pool.keep(c)
	if pool.queued() != 0 || pool.take() != c {
		t.Error("the one that came back last does not wait for the next attempt")
	}
	c.dismiss()
}

// Who waits for too long starts a supervisor in any case; who gives up leaves nothing behind.
func TestNoAttemptWaitsForLong(t *testing.T) {
	t.Parallel()
	pool := shellPool(`echo 1; read x; true`)
	got := turns(t, pool, launchMost())
	for range launchMost() {
		<-got // supervisors that say nothing
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, _, err := pool.obtain(ctx)
		gone <- err
	}()
	await(t, "it waits", func() bool { return pool.queued() == 1 })
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("giving up: %v", err)
	}
	began := time.Now()
	c, fresh, err := pool.obtain(t.Context())
	if c != nil || !fresh || err != nil || time.Since(began) < queueMost {
		t.Errorf("after %s it has %v, %t, %v", time.Since(began), c, fresh, err)
	}
	for range launchMost() + 1 {
		pool.unused()
	}
	if q := pool.queue; q.launching != 0 || q.alive != 0 || len(q.waiting) != 0 {
		t.Errorf("it is left with %d starting, %d alive, %d waiting", q.launching, q.alive,
			len(q.waiting))
	}
}

// Real attempts of a burst all end, by fewer supervisors than there are attempts.
func TestABurstOfAttempts(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "launched")
	pool := shellPool("echo >>" + list + `; while read x; do
		echo '{"event":1,"pid":0}'; echo '{"exited":{"cause":1},"again":true}'
	done`)
	const burst = 40
	var all sync.WaitGroup
	for range burst {
		all.Go(func() {
			spec := Spec{Attempt: one()}
			p, err := pool.Start(t.Context(), t.TempDir(), spec, Hooks{
				Finish: func(Ending, bool) lrm.Result { return lrm.Result{} },
			})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err = p.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if text, err := os.ReadFile(list); err != nil || len(text) >= burst {
		t.Errorf("%d supervisors for %d attempts, %v", len(text), burst, err)
	}
	if pool.queue.alive != 0 || pool.queue.launching != 0 {
		t.Errorf("%d supervisors have an attempt, %d are being started, want none",
			pool.queue.alive, pool.queue.launching)
	}
	for c := pool.take(); c != nil; c = pool.take() {
		c.dismiss()
	}
}
