package agent

import (
	"context"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Leave makes the agent end as soon as nothing runs here any more, unless Resume
// calls that off; with now, running attempts are stopped and move elsewhere.
func (a *Agent) Leave(ctx context.Context, now bool) error {
	a.site.tell(step.Drain{Now: now})
	return a.site.ask(ctx, func() {
		if !a.stopping {
			a.stopping = true
			a.spawn(a.endWhenIdle)
		}
	})
}

// drainPoll is the pause between checks whether a stopping site is idle;
// ackPatience bounds its wait for submitters to acknowledge exits. Exits that
// are not acknowledged by then are kept and reported at the next start.
const (
	drainPoll   = 100 * time.Millisecond
	ackPatience = 10 * time.Second
)

// endWhenIdle ends the agent when nothing runs here any more and the submitters
// have what they want. It gives up when the site drains no more.
func (a *Agent) endWhenIdle() {
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	var idleSince time.Time
	for {
		var status site.Status
		err := a.site.ask(a.ctx, func() {
			status = a.siteMachine.Status()
			a.stopping = status.Draining
		})
		if err != nil || !status.Draining {
			return
		}
		running, kept := countAttempts(status)
		if running > 0 {
			idleSince = time.Time{}
		} else if idleSince.IsZero() {
			idleSince = time.Now()
		}
		if running == 0 && (kept == 0 || time.Since(idleSince) > ackPatience) {
			a.HandOver()
			a.leave(errStopped)
			return
		}
		select {
		case <-tick.C:
		case <-a.ctx.Done():
			return
		}
	}
}

// countAttempts counts the attempts that live, and the ended ones whose
// submitters have not acknowledged it.
func countAttempts(s site.Status) (running, kept int) {
	for _, at := range s.Attempts {
		if at.Exit == 0 {
			running++
		} else {
			kept++
		}
	}
	return running, kept
}
