package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// commands matches the machines' replies with who waits for them.
type commands struct {
	mu      sync.Mutex
	last    uint64                     // guarded by mu
	waiting map[uint64]chan step.Reply // guarded by mu
}

func (c *commands) open() (uint64, chan step.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = make(map[uint64]chan step.Reply)
	}
	c.last++
	answer := make(chan step.Reply, 1)
	c.waiting[c.last] = answer
	return c.last, answer
}

func (c *commands) close(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, n)
}

func (c *commands) answer(r step.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.waiting[r.Command]; ok {
		answer <- r // it has room for the one reply
		delete(c.waiting, r.Command)
	}
}

// command tells the submitter's machine what a user wants, and waits for its
// reply.
func (a *Agent) command(ctx context.Context, input func(n uint64) step.Input) (grid.JobID, error) {
	n, answer := a.commands.open()
	defer a.commands.close(n)
	if err := a.broker.offer(input(n)); err != nil {
		return "", err
	}
	select {
	case r := <-answer:
		return r.Job, userError(r.Err)
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the agent: %w", ctx.Err())
	case <-a.broker.ended:
		return "", errEnded
	}
}

// userError names an error in the words of the API.
func userError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, step.ErrNoSuchJob):
		return fmt.Errorf("%w: %w", view.ErrNotFound, err)
	case errors.Is(err, step.ErrNotEnded), errors.Is(err, step.ErrAwaited):
		return fmt.Errorf("%w: %w", view.ErrConflict, err)
	case errors.Is(err, step.ErrTooManyJob):
		return fmt.Errorf("%w: %w", view.ErrTooLarge, err)
	case errors.Is(err, data.ErrDiskFull):
		return fmt.Errorf("%w: %w", view.ErrBusy, err)
	case errors.Is(err, data.ErrQuota), errors.Is(err, data.ErrTooLarge):
		return fmt.Errorf("%w: %w", view.ErrTooLarge, err)
	case errors.Is(err, data.ErrNotHeld):
		return fmt.Errorf("%w: %w", view.ErrNotFound, err)
	case errors.Is(err, data.ErrUnsupported):
		return fmt.Errorf("%w: %w", grid.ErrInvalid, err)
	default:
		return err
	}
}

// Submit makes a job durable and starts placing it. All its data must have been
// stored here before.
func (a *Agent) Submit(ctx context.Context, job grid.Job) (grid.JobID, error) {
	if err := a.needData(job); err != nil {
		return "", err
	}
	return a.command(ctx, func(n uint64) step.Input { return step.Submit{Command: n, Job: job} })
}

// needData reports data of a job that is not here: nobody else would have it.
func (a *Agent) needData(job grid.Job) error {
	missing := func(what string, cid grid.CID) error {
		if cid == "" || a.data.Has(cid) {
			return nil
		}
		return fmt.Errorf("%w: %s: %s is not stored at this agent; upload it first", grid.ErrInvalid, what, cid)
	}
	errs := []error{missing("module", job.Spec.Module.CID)}
	for _, in := range job.Spec.Inputs {
		errs = append(errs, missing("input "+in.Path, in.CID))
	}
	for i, item := range job.Items {
		for _, in := range item.Inputs {
			errs = append(errs, missing(fmt.Sprintf("item %d: input %s", i, in.Path), in.CID))
		}
	}
	return errors.Join(errs...)
}

// Cancel withdraws a job.
func (a *Agent) Cancel(ctx context.Context, id grid.JobID) error {
	_, err := a.command(ctx, func(n uint64) step.Input { return step.CancelJob{Command: n, Job: id} })
	return err
}

// Plan asks for offers and places nothing.
func (a *Agent) Plan(ctx context.Context, job grid.Job) (view.OfferTable, error) {
	id, err := a.command(ctx, func(n uint64) step.Input { return step.Probe{Command: n, Job: job} })
	if err != nil {
		return view.OfferTable{}, err
	}
	table, err := a.Offers(ctx, id)
	table.Job = ""
	return table, err
}

// PutData stores what a client uploads and keeps it for a while.
func (a *Agent) PutData(ctx context.Context, tar bool, body io.Reader) (view.DataRef, error) {
	add := a.data.AddFile
	if tar {
		add = a.data.AddTar
	}
	ref, err := add(ctx, body)
	if err != nil {
		return view.DataRef{}, userError(err)
	}
	if err := a.pins.upload(ref.CID, time.Now().Add(uploadKept)); err != nil {
		return view.DataRef{}, userError(err)
	}
	return view.DataRef{CID: ref.CID, Bytes: ref.Bytes, Dir: ref.Dir}, nil
}

// GetData opens stored data: a file's bytes or a directory's tar stream.
func (a *Agent) GetData(ctx context.Context, cid grid.CID) (view.DataRef, io.ReadCloser, error) {
	ref, err := a.StatData(ctx, cid)
	if err != nil {
		return ref, nil, err
	}
	open := a.data.Cat
	if ref.Dir {
		open = a.data.Tar
	}
	body, err := open(ctx, cid)
	return ref, body, userError(err)
}

// StatData says what is behind a CID.
func (a *Agent) StatData(_ context.Context, cid grid.CID) (view.DataRef, error) {
	ref, err := a.data.Stat(cid)
	if err != nil {
		return view.DataRef{}, userError(err)
	}
	return view.DataRef{CID: ref.CID, Bytes: ref.Bytes, Dir: ref.Dir}, nil
}

// EventsAfter gives the events that follow one.
func (a *Agent) EventsAfter(ctx context.Context, after uint64, limit int) ([]view.Event, error) {
	return a.events.EventsAfter(ctx, after, limit)
}

// Pause refuses new work for that long; 0 = until Resume.
func (a *Agent) Pause(ctx context.Context, span time.Duration) error {
	in := step.Pause{}
	if span > 0 {
		in.Until = a.clock.now().Add(span)
	}
	return a.order(ctx, in)
}

// Resume ends a pause.
func (a *Agent) Resume(ctx context.Context) error { return a.order(ctx, step.Resume{}) }

// order gives the site machine an owner's order and waits until it has it.
func (a *Agent) order(ctx context.Context, in step.Input) error {
	a.site.tell(in)
	return a.site.ask(ctx, func() {})
}

// Stop makes the agent end when nothing runs here any more, unless Resume calls
// that off; with now, what runs is stopped and moves elsewhere.
func (a *Agent) Stop(ctx context.Context, now bool) error {
	a.site.tell(step.Drain{Now: now})
	return a.site.ask(ctx, func() {
		if !a.stopping {
			a.stopping = true
			a.spawn(a.endWhenIdle)
		}
	})
}

// drainPoll is the pause between looks at whether a stopping site is idle;
// ackPatience is how long it waits for submitters to take note of ends. What
// they have not acknowledged by then is kept and told at the next start.
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

// addPath stores a file or directory of this machine.
func (a *Agent) addPath(ctx context.Context, path string, dir bool) (data.Ref, error) {
	if dir {
		return a.data.AddDir(ctx, path)
	}
	f, err := openRegular(path)
	if err != nil {
		return data.Ref{}, err
	}
	defer f.Close()
	return a.data.AddFile(ctx, f)
}

// heldNow lists the data that is here.
func (a *Agent) heldNow() []grid.CID {
	var cids []grid.CID
	for _, r := range a.data.Roots() {
		cids = append(cids, r.CID)
	}
	return cids
}
