package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// stage fetches and lays out what a task needs.
func (w *workshop) stage(e step.Stage) {
	ctx, cancel := context.WithCancel(w.a.ctx)
	job := &work{
		cancel: cancel, dir: w.attemptDir(e.Attempt), submitter: e.From, tenant: w.tenant(e.From),
		saves: make(chan step.Save, 1),
	}
	w.mu.Lock()
	w.attempts[e.Attempt] = job
	w.mu.Unlock()
	w.a.readers.belong(attemptOwner(e.Attempt), e.From)
	w.spawn(job, func() {
		defer cancel()
		start := time.Now()
		moved, err := w.prepare(ctx, e, job)
		result := step.Staged{Attempt: e.Attempt}
		if err == nil && len(e.Saved) > 0 {
			var more int64
			more, err = w.layOutState(ctx, e, job, &result)
			moved += more
		}
		if w.enter(job, workStaged) {
			w.stoppedIdle(e.Attempt)
			return
		}
		result.Bytes, result.Took = moved, time.Since(start)
		if err != nil {
			result.Problem, result.Local = err.Error(), w.a.disk.lacked(err)
		} else {
			w.a.reports.timings.staging.Observe(result.Took.Seconds())
		}
		w.a.site.tell(result)
	})
}

// tenant is the submitter whose share counts; the site's own jobs have the whole quota.
func (w *workshop) tenant(submitter grid.SiteID) grid.SiteID {
	if submitter == w.a.mesh.Self() {
		return ""
	}
	return submitter
}

// spawn lets a goroutine work on an attempt.
func (w *workshop) spawn(job *work, do func()) {
	job.idle.Add(1)
	w.a.spawn(func() {
		defer job.idle.Done()
		do()
	})
}

// enter moves an attempt to a state, and reports whether it was stopped
// meanwhile.
func (w *workshop) enter(job *work, state workState) (stopped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	job.state = state
	return job.stopped
}

func (w *workshop) stoppedIdle(id grid.AttemptID) {
	w.a.site.tell(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
}

func (w *workshop) prepare(ctx context.Context, e step.Stage, job *work) (int64, error) {
	if err := w.spares.take(job.dir); err != nil {
		return 0, err
	}
	key, err := w.a.openKey(e.Key)
	if err != nil {
		return 0, err
	}
	job.key = key
	moved, err := w.fetch(ctx, e, job.tenant)
	if err != nil {
		return moved, err
	}
	if e.Module.CID != "" {
		if job.module, err = w.modules.take(ctx, key, e.Module.CID); err != nil {
			return moved, err
		}
		job.cid = e.Module.CID
	}
	for i, in := range e.Inputs {
		path := filepath.Join(job.dir, fmt.Sprintf("in-%d", i))
		if err := layOut(ctx, w.a.data, key, in, path); err != nil {
			return moved, fmt.Errorf("lay out %s: %w", in.Path, err)
		}
		job.inputs = append(job.inputs, lrm.Bind{SandboxPath: in.Path, HostPath: path, Dir: in.Dir})
	}
	return moved, nil
}

// fetch moves what is not here yet, and says how far it is.
func (w *workshop) fetch(ctx context.Context, e step.Stage, tenant grid.SiteID) (int64, error) {
	all := e.Inputs
	if e.Module.CID != "" {
		all = append([]grid.Input{e.Module}, all...)
	}
	var total, done, moved int64
	for _, in := range all {
		total += in.Bytes
	}
	holder := attemptOwner(e.Attempt)
	sources := w.a.heeding.members(e.From)
	var told time.Time
	for _, in := range all {
		before := done
		result, err := w.a.data.FetchFor(ctx, tenant, in.CID, sources, func(got, _ int64) {
			if time.Since(told) < progressEvery {
				return
			}
			told = time.Now()
			w.a.site.tell(step.StageProgress{Attempt: e.Attempt, Done: min(before+got, total), Total: total})
		})
		moved += result.Bytes
		if err != nil {
			return moved, fmt.Errorf("fetch %s: %w", in.Path, err)
		}
		w.a.pins.charged(holder, tenant, in.CID)
		w.a.pins.hold(holder, in.CID)
		done += in.Bytes
	}
	return moved, nil
}

// progressEvery is the pause between two words on how far staging is.
const progressEvery = 250 * time.Millisecond
