package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// handlers answers the operations of openapi.yaml. It holds no state but who is signed in.
type handlers struct {
	signing

	backend   Backend
	heartbeat time.Duration
}

var _ StrictServerInterface = (*handlers)(nil)

// jobID reads the ID of a path. A text that cannot be one names no job.
func jobID(text string) (grid.JobID, error) {
	id := grid.JobID(text)
	if id.Validate() != nil {
		return "", &view.Problem{
			Status: http.StatusNotFound, Detail: fmt.Sprintf("no job %q", text), Field: "id",
			Remedy: "a job's id has 16 characters; list the jobs to see them",
		}
	}
	return id, nil
}

// ListJobs answers GET /jobs.
func (h *handlers) ListJobs(
	ctx context.Context, r ListJobsRequestObject,
) (ListJobsResponseObject, error) {
	q := view.JobQuery{Limit: pageLimit(r.Params.Limit)}
	if r.Params.Since != nil {
		q.Since = *r.Params.Since
	}
	if r.Params.Prefix != nil {
		q.Prefix = *r.Params.Prefix
	}
	if r.Params.Before != nil {
		var err error
		if q.Before, err = jobID(*r.Params.Before); err != nil {
			return nil, err
		}
	}
	jobs, err := h.backend.Jobs(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	guest := visitOf(ctx).session.Guest
	for i := range jobs {
		if guest {
			jobs[i] = guestJob(jobs[i])
		}
		jobs[i] = fillJob(jobs[i])
	}
	return ListJobs200JSONResponse(orEmpty(jobs)), nil
}

// given takes over what a request says, if it does.
func given[T any](into, said *T) {
	if said != nil {
		*into = *said
	}
}

// orEmpty makes an absent list an empty one, which is written as [].
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func fillJob(job view.JobView) view.JobView {
	if job.Tasks == nil {
		job.Tasks = view.PhaseCounts{}
	}
	return job
}

// SubmitJob answers POST /jobs.
func (h *handlers) SubmitJob(
	ctx context.Context, r SubmitJobRequestObject,
) (SubmitJobResponseObject, error) {
	job, err := r.Body.Job()
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	key, err := keyOf(r.Params.IdempotencyKey)
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	id, err := h.backend.Submit(ctx, job, key)
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	return SubmitJob201JSONResponse{Id: string(id)}, nil
}

// GetJob answers GET /jobs/{id}.
func (h *handlers) GetJob(
	ctx context.Context, r GetJobRequestObject,
) (GetJobResponseObject, error) {
	id, err := jobID(r.Id)
	if err != nil {
		return nil, err
	}
	detail, err := h.backend.Job(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("show job %s: %w", id, err)
	}
	detail.Status = fillJob(detail.Status)
	return GetJob200JSONResponse(detail), nil
}

func (h *handlers) cancel(ctx context.Context, text string) error {
	id, err := jobID(text)
	if err != nil {
		return err
	}
	if err := h.backend.Cancel(ctx, id); err != nil {
		return fmt.Errorf("cancel job %s: %w", id, err)
	}
	return nil
}

// DeleteJob answers DELETE /jobs/{id}.
func (h *handlers) DeleteJob(
	ctx context.Context, r DeleteJobRequestObject,
) (DeleteJobResponseObject, error) {
	return DeleteJob204Response{}, h.cancel(ctx, r.Id)
}

// CancelJob answers POST /jobs/{id}/cancel.
func (h *handlers) CancelJob(
	ctx context.Context, r CancelJobRequestObject,
) (CancelJobResponseObject, error) {
	return CancelJob204Response{}, h.cancel(ctx, r.Id)
}

// HoldJob answers POST /jobs/{id}/hold.
func (h *handlers) HoldJob(
	ctx context.Context, r HoldJobRequestObject,
) (HoldJobResponseObject, error) {
	return HoldJob204Response{}, h.hold(ctx, r.Id, "hold", false)
}

// ReleaseJob answers POST /jobs/{id}/release.
func (h *handlers) ReleaseJob(
	ctx context.Context, r ReleaseJobRequestObject,
) (ReleaseJobResponseObject, error) {
	return ReleaseJob204Response{}, h.hold(ctx, r.Id, "release", true)
}

func (h *handlers) hold(ctx context.Context, text, verb string, release bool) error {
	id, err := jobID(text)
	if err != nil {
		return err
	}
	if err := h.backend.Hold(ctx, id, release); err != nil {
		return fmt.Errorf("%s job %s: %w", verb, id, err)
	}
	return nil
}

// MigrateJob answers POST /jobs/{id}/migrate.
func (h *handlers) MigrateJob(
	ctx context.Context, r MigrateJobRequestObject,
) (MigrateJobResponseObject, error) {
	id, err := jobID(r.Id)
	if err != nil {
		return nil, err
	}
	var wanted view.MoveRequest
	if r.Body != nil {
		wanted = *r.Body
	}
	if len(wanted.Tasks) > maxPage {
		return nil, fmt.Errorf("%w: tasks: want at most %d, have %d; name none to move all",
			grid.ErrInvalid, maxPage, len(wanted.Tasks))
	}
	if err := h.backend.Migrate(ctx, id, wanted); err != nil {
		return nil, fmt.Errorf("move job %s: %w", id, err)
	}
	return MigrateJob202Response{}, nil
}

// ForgetJob answers POST /jobs/{id}/forget.
func (h *handlers) ForgetJob(
	ctx context.Context, r ForgetJobRequestObject,
) (ForgetJobResponseObject, error) {
	id, err := jobID(r.Id)
	if err != nil {
		return nil, err
	}
	if err := h.backend.Forget(ctx, id); err != nil {
		return nil, fmt.Errorf("forget job %s: %w", id, err)
	}
	return ForgetJob204Response{}, nil
}

// ForgetJobs answers DELETE /jobs.
func (h *handlers) ForgetJobs(
	ctx context.Context, r ForgetJobsRequestObject,
) (ForgetJobsResponseObject, error) {
	n, err := h.backend.ForgetEnded(ctx, r.Params.EndedBefore)
	if err != nil {
		return nil, fmt.Errorf("forget jobs: %w", err)
	}
	return ForgetJobs200JSONResponse{Jobs: n}, nil
}

// ListTasks answers GET /jobs/{id}/tasks.
func (h *handlers) ListTasks(
	ctx context.Context, r ListTasksRequestObject,
) (ListTasksResponseObject, error) {
	id, err := jobID(r.Id)
	if err != nil {
		return nil, err
	}
	var from uint32
	given(&from, r.Params.From)
	tasks, err := h.backend.Tasks(ctx, id, from, pageLimit(r.Params.Limit))
	if err != nil {
		return nil, fmt.Errorf("list tasks of %s: %w", id, err)
	}
	if visitOf(ctx).session.Guest {
		for i := range tasks {
			tasks[i] = guestTask(tasks[i])
		}
	}
	return ListTasks200JSONResponse(orEmpty(tasks)), nil
}

// ListSites answers GET /sites.
func (h *handlers) ListSites(
	ctx context.Context, r ListSitesRequestObject,
) (ListSitesResponseObject, error) {
	sites, err := h.backend.Sites(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sites: %w", err)
	}
	q := pageQuery(r.Params.Limit, r.Params.After)
	sites, err = view.Page(sites, q, func(row view.SiteRow) grid.SiteID { return row.ID })
	if err != nil {
		return nil, fmt.Errorf("list sites: %w", err)
	}
	return ListSites200JSONResponse(orEmpty(sites)), nil
}

// ListGiven answers GET /given.
func (h *handlers) ListGiven(
	ctx context.Context, _ ListGivenRequestObject,
) (ListGivenResponseObject, error) {
	days, err := h.backend.Given(ctx)
	if err != nil {
		return nil, fmt.Errorf("list what was given: %w", err)
	}
	for i := range days {
		days[i].For = orEmpty(days[i].For)
	}
	return ListGiven200JSONResponse(orEmpty(days)), nil
}

// GetStatus answers GET /status.
func (h *handlers) GetStatus(
	ctx context.Context, _ GetStatusRequestObject,
) (GetStatusResponseObject, error) {
	status, err := h.backend.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("show status: %w", err)
	}
	if visitOf(ctx).session.Guest {
		status = guestStatus(status)
	}
	return GetStatus200JSONResponse(wholeStatus(status)), nil
}

// wholeStatus has empty lists where there are none.
func wholeStatus(s view.AgentStatus) view.AgentStatus {
	s.Addresses, s.Kinds = orEmpty(s.Addresses), orEmpty(s.Kinds)
	s.Running, s.Faults = orEmpty(s.Running), orEmpty(s.Faults)
	s.Notices, s.Reach.Relays = orEmpty(s.Notices), orEmpty(s.Reach.Relays)
	if s.Counters == nil {
		s.Counters = map[string]int64{}
	}
	return s
}

// PauseSite answers POST /pause.
func (h *handlers) PauseSite(
	ctx context.Context, r PauseSiteRequestObject,
) (PauseSiteResponseObject, error) {
	order, err := pauseOrder(r.Body)
	if err != nil {
		return nil, err
	}
	pause := func() error { return h.backend.Pause(ctx, order.Span) }
	if order.Leave {
		pause = func() error { return h.backend.Leave(ctx, order.Span, order.StopAfter) }
	}
	if err := pause(); err != nil {
		return nil, fmt.Errorf("pause site: %w", err)
	}
	return PauseSite204Response{}, nil
}

// pauseOrder reads how a site is to be paused.
func pauseOrder(body *PauseRequest) (view.PauseOrder, error) {
	var p PauseRequest
	if body != nil {
		p = *body
	}
	span, errSpan := wholeSpan("for_seconds", p.ForSeconds)
	stop, errStop := wholeSpan("stop_after_seconds", p.StopAfterSeconds)
	leaves := p.AfterCheckpoint != nil && *p.AfterCheckpoint
	if stop > 0 && !leaves {
		errStop = fmt.Errorf("%w: stop_after_seconds: want after_checkpoint with it",
			grid.ErrInvalid)
	}
	if err := cmp.Or(errSpan, errStop); err != nil {
		return view.PauseOrder{}, err
	}
	return view.PauseOrder{Span: span, Leave: leaves, StopAfter: stop}, nil
}

// wholeSpan reads seconds that may be left out and may not be below 0.
func wholeSpan(field string, seconds *float32) (time.Duration, error) {
	if seconds == nil {
		return 0, nil
	}
	span := view.Duration(float64(*seconds))
	if span < 0 {
		return 0, fmt.Errorf("%w: %s: want at least 0, have %v",
			grid.ErrInvalid, field, span.Seconds())
	}
	return span, nil
}

// ResumeSite answers POST /resume.
func (h *handlers) ResumeSite(
	ctx context.Context, _ ResumeSiteRequestObject,
) (ResumeSiteResponseObject, error) {
	if err := h.backend.Resume(ctx); err != nil {
		return nil, fmt.Errorf("resume site: %w", err)
	}
	return ResumeSite204Response{}, nil
}

// ListenSite answers POST /listen.
func (h *handlers) ListenSite(
	ctx context.Context, r ListenSiteRequestObject,
) (ListenSiteResponseObject, error) {
	if err := h.backend.Listen(ctx, r.Body.Addresses); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return ListenSite204Response{}, nil
}

// RecoverJobs answers POST /recover.
func (h *handlers) RecoverJobs(
	ctx context.Context, r RecoverJobsRequestObject,
) (RecoverJobsResponseObject, error) {
	without := make([]grid.SiteID, 0, len(r.Body.Without))
	for _, site := range r.Body.Without {
		without = append(without, grid.SiteID(site))
	}
	if err := h.backend.Recover(ctx, without); err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	return RecoverJobs204Response{}, nil
}

// StopSite answers POST /stop.
func (h *handlers) StopSite(
	ctx context.Context, r StopSiteRequestObject,
) (StopSiteResponseObject, error) {
	now := r.Body != nil && r.Body.Now != nil && *r.Body.Now
	if err := h.backend.Stop(ctx, now); err != nil {
		return nil, fmt.Errorf("stop site: %w", err)
	}
	return StopSite202Response{}, nil
}
