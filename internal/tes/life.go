package tes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Pauses of a task that nothing is heard of.
const (
	retryAfter = 2 * time.Second  // when something could not be done now
	lookAfter  = 30 * time.Second // when everything is as it should be
)

// follow brings a task to its end, or returns when the context ends.
func (s *Tasks) follow(ctx context.Context, e *entry) {
	for {
		done, err := s.advance(ctx, e)
		if done || ctx.Err() != nil {
			return
		}
		pause := lookAfter
		if err != nil {
			pause = retryAfter
			s.cfg.Log.Debug("a task does not go on now", "task", e.id, "error", err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-e.poke:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// advance does what can be done for a task now. An error is one after which it is tried again.
func (s *Tasks) advance(ctx context.Context, e *entry) (done bool, err error) {
	r, err := s.store.load(e.id)
	if err != nil {
		return false, err
	}
	if r.End == nil && r.Job == nil {
		r, err = s.prepare(ctx, e, r)
	}
	if err == nil && r.End == nil && r.JobID == "" {
		r, err = s.submit(ctx, e, r)
	}
	if err == nil && r.End == nil {
		r, err = s.look(ctx, e, r)
	}
	return err == nil && r.End != nil, err
}

// prepare stores a task's data. What cannot be stored ends it.
func (s *Tasks) prepare(ctx context.Context, e *entry, r record) (record, error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	s.mu.Lock()
	e.stop = stop
	canceled := e.state == CANCELING
	s.mu.Unlock()
	if canceled || r.Canceled {
		return s.end(e, CANCELED, nil)
	}
	job, err := s.gather(reading, r)
	s.mu.Lock()
	e.stop = nil
	canceled = e.state == CANCELING
	s.mu.Unlock()
	switch {
	case canceled:
		return s.end(e, CANCELED, nil)
	case ctx.Err() != nil, errors.Is(err, view.ErrBusy):
		return r, errors.Join(err, ctx.Err())
	case err != nil:
		return s.end(e, SYSTEMERROR, logsOfFailure("the inputs cannot be stored: "+err.Error()))
	default:
		return s.store.change(e.id, func(r *record) { r.Job = &job })
	}
}

// gather stores the data of a task, and makes the job of it.
func (s *Tasks) gather(ctx context.Context, r record) (job grid.Job, err error) {
	w, err := check(r.Task, []string{"*"}, r.Mounts) // it was allowed when it was created
	if err != nil {
		return job, err
	}
	done, err := s.takeTurn(ctx)
	if err != nil {
		return job, err
	}
	defer done()
	var inputs []grid.Input
	for i := range w.inputs {
		in, wrong := s.putInput(ctx, &w, i)
		if wrong != nil {
			return job, fmt.Errorf("inputs[%d]: %w", i, wrong)
		}
		inputs = append(inputs, in)
	}
	text := w.script()
	script, err := put(ctx, s.backend, nil, nil, TesInput{Content: &text})
	if err != nil {
		return job, err
	}
	job = w.job(script, inputs)
	return job, job.Validate()
}

// putInput stores an input of a task.
func (s *Tasks) putInput(ctx context.Context, w *work, input int) (grid.Input, error) {
	if !w.isMount(input) {
		return put(ctx, s.backend, s.shelves, s.web, (*w.task.Inputs)[input])
	}
	s.carrying.Lock()
	defer s.carrying.Unlock()
	return putMount(ctx, s.backend, s.shelves, *(*w.task.Inputs)[input].Url)
}

// takeTurn waits until few other tasks read or write; done gives the turn back.
func (s *Tasks) takeTurn(ctx context.Context) (done func(), err error) {
	select {
	case s.busy <- struct{}{}:
		return func() { <-s.busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// submit hands a task's job over. It is done also for one that was cancelled meanwhile: the job may
// have been handed over before the agent ended, and is found by its key.
func (s *Tasks) submit(ctx context.Context, e *entry, r record) (record, error) {
	sum := sha256.Sum256([]byte("tes " + r.ID))
	id, err := s.backend.Submit(ctx, *r.Job, hex.EncodeToString(sum[:]))
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, view.ErrBusy):
		return r, err
	case r.Canceled:
		return s.end(e, CANCELED, nil)
	default:
		return s.end(e, SYSTEMERROR, logsOfFailure(err.Error()))
	}
	s.mu.Lock()
	s.byJob[id] = e
	s.mu.Unlock()
	return s.store.change(e.id, func(r *record) { r.JobID = id })
}

// look sees how far a task's job is, and ends the task with it.
func (s *Tasks) look(ctx context.Context, e *entry, r record) (record, error) {
	tasks, err := s.backend.Tasks(ctx, r.JobID, 0, 1)
	if errors.Is(err, view.ErrNotFound) {
		return s.end(e, SYSTEMERROR, logsOfFailure("its job "+string(r.JobID)+" was forgotten"))
	}
	if err != nil || len(tasks) == 0 {
		return r, errors.Join(err, errors.New("the job has no task"))
	}
	t := tasks[0]
	switch {
	case t.Phase.Ended():
		return s.finish(ctx, e, r, t)
	case r.Canceled:
		if err = s.backend.Cancel(ctx, r.JobID); err != nil {
			return r, err
		}
		return r, nil // its end is an event
	default:
		s.saw(e, stateOf(t.Phase))
		return r, nil
	}
}

// finish writes what a task has left, and ends it.
func (s *Tasks) finish(
	ctx context.Context, e *entry, r record, t view.TaskView,
) (record, error) {
	state := endOf(t)
	logs, notes := logsOf(r.JobID, s.cfg.Domain, t), []string{}
	if state != COMPLETE && t.Text != "" {
		notes = append(notes, t.Text)
	}
	if detail, err := s.backend.Job(ctx, r.JobID); err == nil {
		notes = append(notes, detail.Status.Reasons...)
	}
	if r.Canceled {
		state = CANCELED // also where the job was quicker: nothing is written any more
	}
	if state == CANCELED {
		return s.end(e, state, withNotes(logs, append(notes, r.Notes...)))
	}
	logs, newest := last(logs)
	err := s.collect(ctx, r, t, newest)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		notes = append(notes, err.Error())
		if state == COMPLETE {
			state = SYSTEMERROR
		}
	}
	return s.end(e, state, withNotes(logs, append(notes, r.Notes...)))
}

// collect writes the outputs of a task and reads what its script noted.
func (s *Tasks) collect(
	ctx context.Context, r record, t view.TaskView, into *TesTaskLog,
) error {
	w, err := check(r.Task, []string{"*"}, r.Mounts)
	if err != nil {
		return err
	}
	done, err := s.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	d := delivery{room: s.backend, shelves: s.shelves, work: w, found: map[string]view.OutputView{}}
	if r.Job != nil {
		d.before = r.Job.Spec.Inputs[1:] // the first is the script
	}
	for _, out := range t.Outputs {
		d.found[out.Path] = out
	}
	if notes, there := d.found[logDir]; there {
		_, body, wrong := s.backend.GetData(ctx, notes.CID)
		if wrong == nil {
			into.Logs, wrong = readRan(body, len(w.steps))
			err = errors.Join(wrong, body.Close())
		}
		err = errors.Join(err, wrong)
	}
	if len(w.mounts) > 0 {
		s.carrying.Lock()
		err = errors.Join(err, d.carry(ctx))
		s.carrying.Unlock()
	}
	var wrong error
	into.Outputs, wrong = d.deliver(ctx)
	return errors.Join(err, wrong)
}

// end keeps how a task has ended.
func (s *Tasks) end(e *entry, state TesState, logs []TesTaskLog) (record, error) {
	r, err := s.store.change(e.id, func(r *record) {
		if r.Canceled {
			state = CANCELED
		}
		if logs == nil {
			logs = withNotes([]TesTaskLog{}, r.Notes)
		}
		r.End = &ending{State: state, At: time.Now().UTC().Round(0), Logs: logs}
	})
	if err != nil {
		return r, err
	}
	s.mu.Lock()
	e.state, e.over = state, r.End.At
	s.open--
	delete(s.byJob, r.JobID)
	s.mu.Unlock()
	return r, nil
}

// logsOfFailure is the log of a task that never became a job.
func logsOfFailure(text string) []TesTaskLog { return withNotes(nil, []string{text}) }
