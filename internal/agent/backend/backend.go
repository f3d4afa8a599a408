package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Backend shows a running agent to its users and takes their orders. It is safe for
// concurrent use.
type Backend struct {
	agent   *agent.Agent
	cfg     agent.Config // as the agent was told
	mesh    *p2p.Mesh
	data    *data.Store
	members *member.Registry
	links   *member.Links
	events  *view.EventLog
}

// New gives an agent a face. The agent's life stays with its caller: what is asked
// after it has ended is answered with view.ErrBusy.
func New(a *agent.Agent) *Backend {
	s := a.Stores()
	b := &Backend{
		agent: a, cfg: a.Config(), mesh: s.Mesh, data: s.Data, members: s.Members,
		links: s.Links, events: s.Events,
	}
	a.OnSteering(b.answerSteering)
	return b
}

// command gives the submitter's machine an order and waits for its reply.
func (b *Backend) command(
	ctx context.Context, input func(n uint64) step.Input,
) (grid.JobID, error) {
	id, err := b.agent.Command(ctx, input)
	return id, userError(err)
}

// userError names an error in the words of the API.
func userError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, step.ErrNoSuchJob), errors.Is(err, step.ErrNoTask):
		return fmt.Errorf("%w: %w", view.ErrNotFound, err)
	case errors.Is(err, step.ErrNotEnded), errors.Is(err, step.ErrAwaited),
		errors.Is(err, step.ErrKeyUsed), errors.Is(err, step.ErrNotRunning),
		errors.Is(err, step.ErrTogether), errors.Is(err, step.ErrCopied),
		errors.Is(err, step.ErrPromised), errors.Is(err, step.ErrEnded),
		errors.Is(err, step.ErrBegun), errors.Is(err, step.ErrKept):
		return fmt.Errorf("%w: %w", view.ErrConflict, err)
	case errors.Is(err, step.ErrTooManyJob):
		return fmt.Errorf("%w: %w", view.ErrTooLarge, err)
	case errors.Is(err, data.ErrDiskFull), errors.Is(err, step.ErrNoSpace):
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
// stored here before. A request that is repeated with its key makes no second job.
func (b *Backend) Submit(ctx context.Context, job grid.Job, key string) (grid.JobID, error) {
	job, err := b.withKey(job)
	if err != nil {
		return "", err
	}
	made, err := b.madeBefore(job, key)
	if made != "" || err != nil {
		return made, err
	}
	if err = b.needData(job); err != nil {
		return "", err
	}
	done, err := b.doneBefore(job)
	if err != nil {
		return "", err
	}
	return b.command(ctx, func(n uint64) step.Input {
		return step.Submit{Command: n, Job: job, Key: key, Done: done}
	})
}

// needData reports data of a job that is not here: nobody else would have it.
func (b *Backend) needData(job grid.Job) error {
	missing := func(what string, cid grid.CID) error {
		if cid == "" || b.data.Has(cid) {
			return nil
		}
		return fmt.Errorf("%w: %s: %s is not stored at this agent; upload it first",
			grid.ErrInvalid, what, cid)
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
func (b *Backend) Cancel(ctx context.Context, id grid.JobID) error {
	_, err := b.command(ctx, func(n uint64) step.Input { return step.CancelJob{Command: n, Job: id} })
	return err
}

// Hold keeps a job that has not begun from being placed, or lets it go on.
func (b *Backend) Hold(ctx context.Context, id grid.JobID, release bool) error {
	_, err := b.command(ctx, func(n uint64) step.Input {
		return step.HoldJob{Command: n, Job: id, Release: release}
	})
	return err
}

// Migrate begins to move running tasks to other sites.
func (b *Backend) Migrate(ctx context.Context, id grid.JobID, r view.MoveRequest) error {
	_, err := b.command(ctx, func(n uint64) step.Input {
		return step.MoveTasks{Command: n, Job: id, Tasks: r.Tasks, Anew: r.Restart}
	})
	return err
}

// Plan asks for offers and places nothing.
func (b *Backend) Plan(ctx context.Context, job grid.Job) (view.OfferTable, error) {
	id, err := b.command(ctx, func(n uint64) step.Input { return step.Probe{Command: n, Job: job} })
	if err != nil {
		return view.OfferTable{}, err
	}
	table, err := b.Offers(ctx, id)
	table.Job = ""
	return table, err
}

// PutData stores what a client uploads and keeps it for a while.
func (b *Backend) PutData(ctx context.Context, tar bool, body io.Reader) (view.DataRef, error) {
	add := b.data.AddFile
	if tar {
		add = b.data.AddTar
	}
	return b.keep(add(ctx, body))
}

// PutExecutable stores a program that a client uploads and keeps it for a while.
func (b *Backend) PutExecutable(ctx context.Context, body io.Reader) (view.DataRef, error) {
	return b.keep(b.data.AddExecutable(ctx, body))
}

// keep holds what was uploaded for a while.
func (b *Backend) keep(ref data.Ref, err error) (view.DataRef, error) {
	if err == nil {
		err = b.agent.KeepUpload(ref.CID)
	}
	if err != nil {
		return view.DataRef{}, userError(err)
	}
	return refView(ref), nil
}

func refView(ref data.Ref) view.DataRef {
	return view.DataRef{CID: ref.CID, Bytes: ref.Bytes, Dir: ref.Dir, Executable: ref.Executable}
}

// GetData opens stored data: a file's bytes or a directory's tar stream.
func (b *Backend) GetData(ctx context.Context, cid grid.CID) (view.DataRef, io.ReadCloser, error) {
	if err := b.agent.Bring(ctx, cid); err != nil {
		return view.DataRef{}, nil, userError(err)
	}
	ref, err := b.StatData(ctx, cid)
	if err != nil {
		return ref, nil, err
	}
	open := b.data.Cat
	if ref.Dir {
		open = b.data.Tar
	}
	body, err := open(ctx, cid)
	return ref, body, userError(err)
}

// StatData says what is behind a CID.
func (b *Backend) StatData(_ context.Context, cid grid.CID) (view.DataRef, error) {
	ref, err := b.data.Stat(cid)
	if err != nil {
		return view.DataRef{}, userError(err)
	}
	return refView(ref), nil
}

// EventsAfter gives the events that follow one.
func (b *Backend) EventsAfter(ctx context.Context, after uint64, limit int) ([]view.Event, error) {
	return b.events.EventsAfter(ctx, after, limit)
}

// Pause refuses new work for that long; 0 = until Resume.
func (b *Backend) Pause(ctx context.Context, span time.Duration) error {
	return b.pause(ctx, "", view.PauseOrder{Span: span})
}

// Leave is Pause, and jobs that can go on elsewhere move there when their state is saved.
func (b *Backend) Leave(ctx context.Context, span, stopAfter time.Duration) error {
	return b.pause(ctx, "", view.PauseOrder{Span: span, Leave: true, StopAfter: stopAfter})
}

// pause pauses this site, for its owner or for the site that orders it from afar.
func (b *Backend) pause(ctx context.Context, by grid.SiteID, p view.PauseOrder) error {
	now := b.agent.Now()
	in := step.Pause{By: by, Leave: p.Leave}
	if p.Span > 0 {
		in.Until = now.Add(p.Span)
	}
	if p.StopAfter > 0 {
		in.StopAt = now.Add(p.StopAfter)
	}
	return b.agent.Order(ctx, in)
}

// Resume ends a pause.
func (b *Backend) Resume(ctx context.Context) error { return b.agent.Order(ctx, step.Resume{}) }

// Recover goes on with the own jobs without their standbys, which are named and lost for good.
func (b *Backend) Recover(ctx context.Context, without []grid.SiteID) error {
	return userError(b.agent.Recover(ctx, without))
}

// Stop makes the agent end as soon as nothing runs here any more, unless Resume
// calls that off; with now, running attempts are stopped and move elsewhere.
func (b *Backend) Stop(ctx context.Context, now bool) error { return b.agent.Leave(ctx, now) }
