package supervise

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// Warmed is a supervisor that waits, with an empty sandbox, for a further attempt of the key of
// those before.
type Warmed struct {
	Root string // the host's directory that the sandbox has as its root; it may be moved

	pool *Pool
	key  string
	c    *child
	gone func(root string)
	free time.Time // since when it waits
}

// hold keeps a supervisor whose sandbox is still to be emptied: Vacate comes soon, or it ends.
func (p *process) hold(c *child) {
	p.pool.gone()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = c
	c.expiry = time.AfterFunc(p.pool.idleTime, func() {
		if c := p.letGo(); c != nil {
			c.dismiss()
			p.hooks.Gone("")
		}
	})
}

// letGo takes the supervisor from the attempt, nil if it has none.
func (p *process) letGo() *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.kept
	p.kept = nil
	return c
}

// Vacate implements lrm.Vacater.
func (p *process) Vacate() {
	c := p.letGo()
	if c == nil {
		return
	}
	c.expiry.Stop()
	root, err := p.hooks.Empty()
	if err != nil {
		go func() { // nobody waits for its end
			c.dismiss()
			p.hooks.Gone(root)
		}()
		return
	}
	p.pool.offer(&Warmed{Root: root, pool: p.pool, key: p.spec.Warm.Key, c: c, gone: p.hooks.Gone})
}

// offer keeps a warm sandbox for its next attempt, for a moment.
func (pool *Pool) offer(w *Warmed) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if len(pool.warm) >= idleMost {
		go w.Dismiss()
		return
	}
	w.free = time.Now()
	pool.warm = append(pool.warm, w)
	w.c.expiry = time.AfterFunc(pool.idleTime, func() {
		if pool.claim(func(other *Warmed) bool { return other == w }) != nil {
			w.Dismiss()
		}
	})
}

// Warmed takes the sandbox of a key that became free last, nil if there is none. It must be started
// or dismissed then.
func (pool *Pool) Warmed(key string) *Warmed {
	for {
		w := pool.claim(func(w *Warmed) bool { return w.key == key })
		if w == nil || !hasExited(w.c.cmd.Process.Pid) {
			return w
		}
		go w.Dismiss()
	}
}

// takeWarm takes the supervisor whose sandbox has been free for longest, nil if none has been so
// for a while: by then the job of the sandbox has probably ended. Another attempt is given to that
// supervisor sooner than to a new one, and the sandbox ends. The caller holds mu.
func (pool *Pool) takeWarm() *child {
	if len(pool.warm) == 0 || time.Since(pool.warm[0].free) < pool.warmTime {
		return nil
	}
	w := pool.warm[0]
	pool.warm = slices.Delete(pool.warm, 0, 1)
	w.c.expiry.Stop()
	w.c.evicted = func() { w.gone(w.Root) }
	used, _ := processTime(w.c.cmd.Process.Pid)
	w.c.used, w.c.warmUsed = used+w.c.warmUsed, 0 // soon it has waited for the sandbox
	return w.c
}

func (pool *Pool) claim(fits func(*Warmed) bool) *Warmed {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	for i, w := range slices.Backward(pool.warm) {
		if fits(w) {
			pool.warm = slices.Delete(pool.warm, i, i+1)
			w.c.expiry.Stop()
			return w
		}
	}
	return nil
}

// Dismiss ends the sandbox.
func (w *Warmed) Dismiss() {
	w.c.dismiss()
	w.gone(w.Root)
}

// Start hands the sandbox a spec of its key. After an error the sandbox is still to be dismissed.
func (w *Warmed) Start(
	ctx context.Context, dir string, spec Spec, hooks Hooks,
) (lrm.Process, error) {
	// The sandbox is there: to tell how to make one would be most of the order.
	spec.Enclosure, spec.Warm = nil, &Warm{Key: spec.Warm.Key, Task: spec.Warm.Task}
	line, err := order(dir, &spec)
	if err != nil {
		return nil, err
	}
	w.c.used, _ = processTime(w.c.cmd.Process.Pid)
	if err := writeLine(w.c.stdin, line, specDeadline(ctx)); err != nil {
		return nil, fmt.Errorf("start in a warm sandbox: %w", err)
	}
	w.pool.mu.Lock()
	w.pool.queue.alive++
	w.pool.mu.Unlock()
	return w.pool.follow(w.c, spec, hooks, false), nil
}
