package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	patience   = 30 * time.Second // with an agent that does not answer
	pollEvery  = time.Second      // when no event says that something changed
	cancelTime = 5 * time.Second

	// Between two looks at a job pass at least so long: little at first, so that a
	// short job is not made long by looking, and more when it goes on.
	firstPause = 20 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// watch calls seen with the job's status whenever something changed, until seen
// says that it is enough or the context ends. An agent that goes away is waited
// for with patience.
func (a *app) watch(ctx context.Context, id grid.JobID,
	seen func(view.JobView) (bool, error),
) error {
	return a.watchAll(ctx, []grid.JobID{id}, func(views []view.JobView) (bool, error) {
		return seen(views[0])
	})
}

// watchAll does the same for several jobs, in their order.
func (a *app) watchAll(ctx context.Context, ids []grid.JobID,
	seen func([]view.JobView) (bool, error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	news := newNews()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Its errors are found by the polls too.
		_ = a.client.Events(ctx, view.FromNow, patience, func(e view.Event) error {
			// At a gap, and at the beginning, something may have happened before.
			if slices.Contains(ids, e.Job) || e.Kind == "gap" || e.Kind == "now" {
				news.tell(e.EndsJob())
			}
			return nil
		})
	}()
	defer func() {
		cancel()
		<-done
	}()
	answered, views := time.Now(), make([]view.JobView, len(ids))
	for pause := firstPause; ; pause = min(pause*3/2, lastPause) {
		err := a.lookAtJobs(ctx, ids, views)
		switch {
		case err == nil:
			answered = time.Now()
			if enough, wrong := seen(views); wrong != nil || enough {
				return wrong
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, client.ErrUnreachable) || time.Since(answered) > patience:
			return err
		}
		if err := news.await(ctx, pause); err != nil {
			return err
		}
	}
}

// news are changes that were not looked at yet.
type news struct {
	some chan struct{} // anything
	ends chan struct{} // a job has ended
}

func newNews() news { return news{some: make(chan struct{}, 1), ends: make(chan struct{}, 1)} }

// tell notes a change.
func (n news) tell(ends bool) {
	told := []chan struct{}{n.some}
	if ends {
		told = append(told, n.ends)
	}
	for _, c := range told {
		select {
		case c <- struct{}{}:
		default: // it is noted already
		}
	}
}

// await waits for a change, for pollEvery at most, but not less than pause: only an end, of which
// there is one for each job, is looked at immediately.
func (n news) await(ctx context.Context, pause time.Duration) error {
	if err := pauseFor(ctx, pause, n.ends); err != nil {
		return err
	}
	return pauseFor(ctx, pollEvery, n.some)
}

// lookAtJobs asks for the jobs that had not ended when they were last looked at.
func (a *app) lookAtJobs(ctx context.Context, ids []grid.JobID, last []view.JobView) error {
	for i, id := range ids {
		if last[i].Phase.Ended() {
			continue
		}
		detail, err := a.client.Job(ctx, id)
		if err != nil {
			return err
		}
		last[i] = detail.Status
	}
	return nil
}

// pauseFor waits for a time, a change or the end of the context.
func pauseFor(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// finish follows a job to its end, prints and writes what it left, and gives its
// code as an error.
func (a *app) finish(ctx context.Context, id grid.JobID, f following) error {
	last, err := a.follow(ctx, id, f)
	if err != nil {
		return a.interrupted(ctx, last, id, f, err)
	}
	structured := !a.parsable && (a.config.Output == "json" || a.config.Output == "yaml")
	f.printLogs = f.printLogs && last.Count == 1 && !structured && !a.parsable
	if err := a.bringHome(ctx, last, f); err != nil {
		return &codeError{code: exitOurs, cause: err}
	}
	if structured {
		if err := a.show(result{value: last, names: []string{string(id)}}); err != nil {
			return err
		}
	}
	return a.ending(ctx, last)
}

// bringHome prints and writes what a job has left.
func (a *app) bringHome(ctx context.Context, v view.JobView, f following) error {
	prints, done := f.printLogs && !v.Started.IsZero(), v.Phase == view.PhaseDone
	if !prints && !done {
		return nil
	}
	tasks, err := a.client.AllTasks(ctx, v.ID)
	if err != nil {
		return err
	}
	if prints && len(tasks) == 1 {
		a.printLogs(ctx, v.ID, tasks[0])
	}
	if !done {
		return nil
	}
	return a.writeOutputs(ctx, tasks, f.folder)
}

// follow shows a job's progress until it has ended.
func (a *app) follow(ctx context.Context, id grid.JobID, f following) (view.JobView, error) {
	var last view.JobView
	shown := progress{app: a}
	err := a.watch(ctx, id, func(v view.JobView) (bool, error) {
		last = v
		shown.show(ctx, v)
		if f.noWait && v.Phase == view.PhaseWaiting && v.Started.IsZero() {
			return false, a.giveUp(ctx, v)
		}
		return v.Phase.Ended(), nil
	})
	return last, err
}

// giveUp withdraws a job that no site has capacity for now.
func (a *app) giveUp(ctx context.Context, v view.JobView) error {
	if err := a.client.Cancel(ctx, v.ID); err != nil {
		return err
	}
	return &codeError{
		code: exitNever,
		cause: fmt.Errorf(
			"job %s: no site has capacity now, withdrawn (--no-wait); `submit why %s` says why", v.ID, v.ID,
		),
	}
}

// awaitPlacement waits until the job was placed or cannot be.
func (a *app) awaitPlacement(ctx context.Context, id grid.JobID, f following) error {
	return a.watch(ctx, id, func(v view.JobView) (bool, error) {
		switch {
		case v.Phase == view.PhaseRefused:
			return true, a.ending(ctx, v)
		case f.noWait && v.Phase == view.PhaseWaiting:
			return true, a.giveUp(ctx, v)
		default:
			return v.Phase != view.PhaseAnnounced && v.Phase != view.PhaseWaiting, nil
		}
	})
}

// A job that is not waited for is watched for firstRound: by then the sites have answered
// once, and a refusal is reported while somebody is there to read it. An agent that has just
// started does not trust such a refusal yet; it asks again, within bootRounds.
const (
	firstRound = 900 * time.Millisecond
	bootRounds = 8 * time.Second
)

// awaitFirstRound waits until the sites have answered, and reports a refusal. An answer
// that is still open then, and an interrupt, are no errors: the job goes on.
func (a *app) awaitFirstRound(ctx context.Context, id grid.JobID, _ following) error {
	within, cancel := context.WithTimeout(ctx, bootRounds)
	defer cancel()
	began := time.Now()
	err := a.watch(within, id, func(v view.JobView) (bool, error) {
		switch v.Phase {
		case view.PhaseRefused:
			return true, a.ending(ctx, v)
		case view.PhaseAnnounced, view.PhaseWaiting:
			refused := a.isRefusedSoFar(within, v)
			answered := v.Phase == view.PhaseWaiting && !refused
			return answered || !refused && time.Since(began) > firstRound, nil
		default:
			return true, nil
		}
	})
	if within.Err() != nil && errors.Is(err, within.Err()) {
		return nil
	}
	return err
}

// isRefusedSoFar reports whether every site has answered that the job never fits.
func (a *app) isRefusedSoFar(ctx context.Context, v view.JobView) bool {
	offers, err := a.client.Offers(ctx, v.ID)
	return err == nil && offers.Never && offers.Answered >= offers.Members
}

// interrupted says how to go on when following ended before the job.
func (a *app) interrupted(ctx context.Context, last view.JobView, id grid.JobID, f following,
	err error,
) error {
	if ctx.Err() == nil {
		if !last.Started.IsZero() && codeOf(err) != exitNever {
			return &codeError{
				code: exitOurs,
				cause: fmt.Errorf("follow job %s: %w; the job goes on, `submit wait %s` follows it again",
					id, err, id),
			}
		}
		return err
	}
	if !f.cancelOnInterrupt {
		a.say(
			"\ndetached; job %s goes on. `submit wait %s` follows it again, `submit get %s` fetches its "+
				"outputs, `submit cancel %s` ends it.",
			id, id, id, id,
		)
		return &codeError{code: exitDetached}
	}
	return a.cancelled(ctx, fmt.Sprintf("job %s", id), func(ctx context.Context) error {
		return a.client.Cancel(ctx, id)
	})
}

// cancelled ends what was followed, after an interrupt, and says so.
func (a *app) cancelled(
	ctx context.Context, what string, end func(context.Context) error,
) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	if err := end(grace); err != nil {
		return fmt.Errorf("cancel %s: %w", what, err)
	}
	a.say("\n%s cancelled", what)
	return &codeError{code: exitDetached}
}
