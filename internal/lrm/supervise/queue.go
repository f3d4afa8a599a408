package supervise

import (
	"context"
	"runtime"
	"slices"
	"time"
)

const (
	// launchPause is the time after a supervisor's return in which no further one is started, if
	// some are there: where attempts end that quickly, the next returns before another has started.
	launchPause = 100 * time.Millisecond
	// queueMost limits the time that an attempt waits for a supervisor.
	queueMost = 2 * time.Second
)

// queue holds the attempts of a burst back until there is a supervisor for them. To start one takes
// more of the processor than most small attempts do, so that a burst of these is over sooner with
// few supervisors, used again, than with one for each. Its fields are guarded by the pool's mu.
type queue struct {
	waiting   []chan *child // in the order of their arrival; a nil child: start one
	launching int           // supervisors that are being started and have said nothing yet
	alive     int           // supervisors with an attempt, those being started included
	returned  time.Time     // when one came back last
	retry     *time.Timer   // looks again when the pause is over
}

// launchMost limits the supervisors that are started at the same time; from as many on there are
// pauses.
func launchMost() int { return max(runtime.GOMAXPROCS(0), 2) }

// obtain gives an idle supervisor, or says that it is this attempt's turn to start a fresh one.
// Then landed must be called when that has said something, and gone when it has ended.
func (pool *Pool) obtain(ctx context.Context) (c *child, fresh bool, err error) {
	pool.mu.Lock()
	if c = pool.takeIdle(); c == nil {
		c = pool.takeWarm()
	}
	if c != nil {
		pool.queue.alive++
		pool.mu.Unlock()
		return c, false, nil
	}
	turn := make(chan *child, 1)
	pool.queue.waiting = append(pool.queue.waiting, turn)
	pool.admit()
	pool.mu.Unlock()
	late := time.NewTimer(queueMost)
	defer late.Stop()
	select {
	case c = <-turn:
	case <-late.C:
		c = pool.withdraw(turn)
	case <-ctx.Done():
		if c = pool.withdraw(turn); c == nil {
			pool.unused()
		} else {
			pool.keep(c)
		}
		return nil, false, ctx.Err()
	}
	return c, c == nil, nil
}

// withdraw takes an attempt out of the queue, as if it were its turn, or gives what it has just
// got there.
func (pool *Pool) withdraw(turn chan *child) *child {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	q := &pool.queue
	if at := slices.Index(q.waiting, turn); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
		q.launching++
		q.alive++
		return nil
	}
	return <-turn
}

// unused gives back the turn to start a supervisor.
func (pool *Pool) unused() {
	pool.landed()
	pool.gone()
}

// admit lets those who wait longest start supervisors, as many as may be started now. The caller
// holds mu.
func (pool *Pool) admit() {
	q := &pool.queue
	for len(q.waiting) > 0 && q.launching < launchMost() {
		pause := pool.pause - time.Since(q.returned)
		if pause > 0 && q.alive >= launchMost() {
			if q.retry != nil {
				q.retry.Stop()
			}
			q.retry = time.AfterFunc(pause, func() {
				pool.mu.Lock()
				defer pool.mu.Unlock()
				pool.admit()
			})
			return
		}
		q.launching++
		q.alive++
		q.waiting[0] <- nil
		q.waiting = slices.Delete(q.waiting, 0, 1)
	}
}

// landed tells that a supervisor that was being started has said something, or failed.
func (pool *Pool) landed() {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	pool.queue.launching--
	pool.admit()
}

// gone tells that a supervisor with an attempt is no more.
func (pool *Pool) gone() {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	pool.queue.alive--
	pool.admit()
}

// hand gives a supervisor that came back to the attempt that waits longest. The caller holds mu.
func (pool *Pool) hand(c *child) bool {
	q := &pool.queue
	q.returned = time.Now()
	if len(q.waiting) == 0 {
		q.alive--
		return false
	}
	c.used, _ = processTime(c.cmd.Process.Pid)
	q.waiting[0] <- c
	q.waiting = slices.Delete(q.waiting, 0, 1)
	return true
}
