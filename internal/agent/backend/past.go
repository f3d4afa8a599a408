package backend

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Summary makes what lists show of a job that has ended.
func Summary(job broker.JobState) []byte {
	v := jobView(job)
	for _, id := range job.Job.After {
		v.After = append(v.After, view.Earlier{ID: id})
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil // it is read from the record
	}
	return text
}

// place is a job's place in lists.
type place struct {
	ms int64 // when it was submitted
	id grid.JobID
}

func placeOf(id grid.JobID, at time.Time) place { return place{at.UnixMilli(), id} }

// newer orders jobs, the one that was submitted last first.
func (p place) newer(o place) int {
	return cmp.Or(cmp.Compare(o.ms, p.ms), cmp.Compare(o.id, p.id))
}

// listed is a job on its way into a list.
type listed struct {
	place
	view view.JobView
}

// Jobs lists this agent's submissions, newest first: those that are open or have just ended,
// and those of the history.
func (b *Backend) Jobs(ctx context.Context, q view.JobQuery) ([]view.JobView, error) {
	if q.Prefix != "" {
		return b.jobsLike(ctx, q)
	}
	before, err := b.placeOf(ctx, q.Before)
	if err != nil {
		return nil, err
	}
	fits := func(p place) bool {
		return (q.Since.IsZero() || p.ms >= q.Since.UnixMilli()) &&
			(before.id == "" || p.newer(before) > 0)
	}
	// The machine first: what leaves it meanwhile is in the history then.
	jobs, err := b.here(ctx, fits, q.Limit)
	if err != nil {
		return nil, err
	}
	page := store.HistoryQuery{Since: q.Since, Limit: q.Limit}
	if before.id != "" {
		page.Before, page.ID = time.UnixMilli(before.ms), before.id
	}
	rows, err := b.agent.History().List(page)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		v, err := b.summary(row.Job, row.Summary)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, listed{placeOf(row.Job, row.Submitted), v})
	}
	return b.page(jobs, q.Limit), nil
}

// jobsLike lists jobs whose IDs begin alike.
func (b *Backend) jobsLike(ctx context.Context, q view.JobQuery) ([]view.JobView, error) {
	fits := func(p place) bool { return strings.HasPrefix(string(p.id), q.Prefix) }
	jobs, err := b.here(ctx, fits, q.Limit)
	if err != nil {
		return nil, err
	}
	ids, err := b.agent.History().WithPrefix(q.Prefix, q.Limit)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		text, err := b.agent.History().Summary(id)
		if err != nil {
			return nil, err
		}
		v, err := b.summary(id, text)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, listed{placeOf(id, v.Submitted.Time), v})
	}
	return b.page(jobs, q.Limit), nil
}

// page sorts a list, each job once, and cuts it.
func (b *Backend) page(jobs []listed, limit int) []view.JobView {
	slices.SortStableFunc(jobs, func(x, y listed) int { return x.newer(y.place) })
	jobs = slices.CompactFunc(jobs, func(x, y listed) bool { return x.id == y.id })
	views := []view.JobView{}
	for _, j := range jobs[:min(len(jobs), limit)] {
		b.fillEarlier(j.view.After)
		views = append(views, j.view)
	}
	return views
}

// here lists jobs of the machine, newest first.
func (b *Backend) here(
	ctx context.Context, fits func(place) bool, limit int,
) (jobs []listed, err error) {
	err = b.agent.AskBroker(ctx, func(m *broker.Machine) {
		var places []place
		for _, id := range m.Jobs() {
			at, _ := m.Submitted(id)
			if p := placeOf(id, at); fits(p) {
				places = append(places, p)
			}
		}
		slices.SortFunc(places, place.newer)
		for _, p := range places[:min(len(places), limit)] {
			if job, known := m.Job(p.id); known {
				v := jobView(job)
				v.After = earlier(m, job)
				jobs = append(jobs, listed{p, v})
			}
		}
	})
	return jobs, err
}

// placeOf finds a job's place; no job has none.
func (b *Backend) placeOf(ctx context.Context, id grid.JobID) (place, error) {
	if id == "" {
		return place{}, nil
	}
	var at time.Time
	var known bool
	err := b.agent.AskBroker(ctx, func(m *broker.Machine) { at, known = m.Submitted(id) })
	if err == nil && !known {
		at, err = b.agent.History().Submitted(id)
		known = !at.IsZero()
	}
	if err == nil && !known {
		err = fmt.Errorf("%w: before: no such job: %s", view.ErrNotFound, id)
	}
	return placeOf(id, at), err
}

// summary reads what a list shows of a job of the history.
func (b *Backend) summary(id grid.JobID, text []byte) (v view.JobView, err error) {
	if len(text) > 0 && json.Unmarshal(text, &v) == nil {
		return v, nil
	}
	job, _, err := b.archived(id)
	return jobView(job), err
}

// archived reads a job of the history; known says whether it is there.
func (b *Backend) archived(id grid.JobID) (job broker.JobState, known bool, err error) {
	record, _, err := b.agent.History().Record(id)
	if err != nil || record == nil {
		return job, false, err
	}
	job, err = broker.ReadRecord(id, record)
	return job, err == nil, err
}

// fillEarlier completes what is shown of earlier jobs that only the history knows.
func (b *Backend) fillEarlier(list []view.Earlier) {
	for i := range list {
		if list[i].Phase == "" {
			list[i].Phase, _ = b.archivedPhase(list[i].ID) // unknown: as one that is forgotten
		}
	}
}

// archivedPhase says how a job of the history has ended; empty: it is not there.
func (b *Backend) archivedPhase(id grid.JobID) (view.Phase, error) {
	text, err := b.agent.History().Summary(id)
	if err != nil {
		return "", err
	}
	at, err := b.agent.History().Submitted(id)
	if err != nil || at.IsZero() {
		return "", err
	}
	v, err := b.summary(id, text)
	return v.Phase, err
}

// madeBefore is the job of the history that the same request made.
func (b *Backend) madeBefore(job grid.Job, key string) (grid.JobID, error) {
	id, err := b.agent.History().Made(key)
	if err != nil || id == "" {
		return "", err
	}
	made, known, err := b.archived(id)
	if err != nil || !known {
		return "", err
	}
	if made.Asked != nil {
		made.Job = *made.Asked
	}
	one, errOne := json.Marshal(made.Job)
	other, errOther := json.Marshal(job)
	if err := errors.Join(errOne, errOther); err != nil {
		return "", err
	}
	if !bytes.Equal(one, other) {
		return "", userError(fmt.Errorf("%w (it made job %s)", step.ErrKeyUsed, id))
	}
	return id, nil
}

// doneBefore lists those of the jobs that one comes after that the history has as done. One
// that it has as failed is an error.
func (b *Backend) doneBefore(job grid.Job) ([]grid.JobID, error) {
	var done []grid.JobID
	for _, id := range job.After {
		switch phase, err := b.archivedPhase(id); {
		case err != nil:
			return nil, err
		case phase == "":
		case phase == view.PhaseDone, phase == view.PhaseOver:
			done = append(done, id)
		default:
			return nil, fmt.Errorf("%w: after: job %s has ended as %s; submit it again, or leave it out",
				grid.ErrInvalid, id, phase)
		}
	}
	return done, nil
}

// Forget drops what is known of a job that has ended, and its outputs.
func (b *Backend) Forget(ctx context.Context, id grid.JobID) error {
	_, err := b.command(ctx, func(n uint64) step.Input { return step.ForgetJob{Command: n, Job: id} })
	archived, wrong := b.agent.ForgetArchived(id)
	if err == nil || archived {
		b.agent.ForgetRounds(id)
	}
	if wrong != nil {
		return wrong
	}
	if archived {
		return nil
	}
	return err
}

// ForgetEnded drops all that ended before a time, and returns how many jobs that were.
func (b *Backend) ForgetEnded(ctx context.Context, before time.Time) (int, error) {
	var ids []grid.JobID
	err := b.agent.AskBroker(ctx, func(m *broker.Machine) {
		for _, id := range m.Jobs() {
			if job, _ := m.Job(id); !job.Ended.IsZero() && job.Ended.Before(before) {
				ids = append(ids, id)
			}
		}
	})
	if err != nil {
		return 0, err
	}
	forgotten := 0
	for _, id := range ids {
		if b.Forget(ctx, id) == nil { // one that another waits for stays
			forgotten++
		}
	}
	//nolint:contextcheck // what is forgotten is told, even if the one who asked has left
	archived, err := b.agent.ForgetArchivedBefore(before)
	return forgotten + archived, err
}
