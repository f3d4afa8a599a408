package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// What a saver waits for.
const (
	firstLook = 100 * time.Millisecond // until it looks for a state again; it doubles
	mostLook  = 2 * time.Second
	// asked is given to a program that is asked for a new state; then one that it has saved by
	// itself, since the last checkpoint, is taken.
	asked = 5 * time.Second
)

// saver takes the checkpoints of one running attempt. Its state belongs to the goroutine of run.
type saver struct {
	w      *workshop
	id     grid.AttemptID
	job    *work
	dir    lrm.StateDir
	work   string      // the task's digest
	last   fs.FileInfo // of the state that was taken, or that it went on from; nil: none
	able   bool        // the site was told that the program saves
	order  *step.Save  // the checkpoint to be taken
	before fs.FileInfo // the state that was there when that was asked for
	since  time.Time   // when
	told   string      // why the program saves none, as it says
}

func newSaver(w *workshop, a lrm.Attempt, job *work) *saver {
	s := &saver{w: w, id: a.ID, job: job, dir: a.StateDir(), work: a.Task.WorkDigest()}
	if a.StatePath != "" {
		s.last = s.dir.Look()
	}
	return s
}

// run looks for states until the attempt ends. A program that is still there at the first look is
// asked for one: that it saves one shows that it can.
func (s *saver) run(ctx context.Context) {
	pause, want := firstLook, true
	for {
		timer := time.NewTimer(pause)
		if s.able && s.order == nil { // nothing is to be done before one is wanted
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case order := <-s.job.saves:
			timer.Stop()
			s.order, s.before, s.since = &order, s.dir.Look(), time.Now()
			s.ask(true)
			pause = firstLook
		case <-timer.C:
			if want {
				s.ask(true)
				want = false
			}
			if pause = min(2*pause, mostLook); s.look(ctx) {
				pause = firstLook
			}
		}
	}
}

func (s *saver) ask(wanted bool) {
	if err := s.dir.Ask(wanted); err != nil {
		s.w.a.log.Debug("a program cannot be asked for its state",
			"attempt", s.id.String(), "error", err)
	}
}

// look does what a new state, if there is one, is good for, and reports whether there was one.
func (s *saver) look(ctx context.Context) bool {
	now := s.dir.Look()
	if now == nil || lrm.SameState(now, s.last) {
		return s.explain()
	}
	if !s.able {
		s.able = true
		s.ask(false)
		s.w.a.site.tell(step.CanSave{Attempt: s.id})
		return true
	}
	if s.order == nil || lrm.SameState(now, s.before) && time.Since(s.since) < asked {
		return false
	}
	s.take(ctx)
	return true
}

// explain passes on why the program saves no state, if it says so, and reports whether that ended
// the wish for one.
func (s *saver) explain() bool {
	why := s.dir.Problem()
	if why == "" {
		return false
	}
	if why != s.told {
		s.told = why
		s.w.a.log.Info("a program's state is not saved", "attempt", s.id.String(), "why", why)
	}
	if s.order == nil {
		return false
	}
	answer := step.Saved{Attempt: s.id, Problem: why, Took: time.Since(s.since)}
	s.order = nil
	s.ask(false)
	s.w.a.site.tell(answer)
	return true
}

// take makes a checkpoint of the state that is there.
func (s *saver) take(ctx context.Context) {
	begun := time.Now()
	answer := step.Saved{Attempt: s.id}
	c, info, err := s.store(ctx, s.order.Number)
	switch {
	case ctx.Err() != nil:
		return // the attempt has ended
	case err != nil:
		answer.Problem = err.Error()
		_ = s.w.a.disk.lacked(err)
	default:
		s.last = info
		answer.Checkpoint, answer.Age = c, max(begun.Sub(info.ModTime()), 0)
	}
	s.order, answer.Took = nil, time.Since(begun)
	s.ask(false)
	s.w.a.site.tell(answer)
}

// errTorn says that a state changed while it was read.
var errTorn = errors.New("the state changed while it was read: write another file and rename it")

// store makes the state, sealed, content of this site.
func (s *saver) store(
	ctx context.Context, number uint64,
) (c grid.Checkpoint, info fs.FileInfo, err error) {
	f, err := s.dir.Open()
	if err != nil {
		return c, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return c, nil, fmt.Errorf("look at state: %w", err)
	}
	seal, err := protocol.AppendSeal(nil, protocol.Seal{
		Task: s.id.Task, Token: s.id.Token, Number: number, Work: s.work, Bytes: info.Size(),
	})
	if err != nil {
		return c, nil, err
	}
	a := s.w.a
	all := io.MultiReader(io.LimitReader(f, info.Size()), bytes.NewReader(seal))
	if s.job.key != "" {
		if all, err = crypt.Encrypt(s.job.key, all); err != nil {
			return c, nil, err
		}
	}
	ref, err := a.data.AddState(ctx, all)
	if err != nil {
		return c, nil, fmt.Errorf("store state: %w", err)
	}
	if after, wrong := f.Stat(); wrong != nil || !lrm.SameState(info, after) {
		return c, nil, errTorn
	}
	holder := attemptOwner(s.id)
	if err := a.data.Charge(s.job.tenant, ref.CID); err != nil {
		return c, nil, fmt.Errorf("keep state: %w", err)
	}
	a.pins.charged(holder, s.job.tenant, ref.CID)
	a.pins.hold(holder, ref.CID)
	return grid.Checkpoint{
		Number: number, CID: ref.CID, Bytes: ref.Bytes, Percent: s.dir.Percent(),
	}, info, nil
}

// save tells an attempt's saver that a checkpoint is to be taken. There is one order at a time.
func (w *workshop) save(e step.Save) {
	job, ok := w.find(e.Attempt)
	if !ok {
		return
	}
	select {
	case job.saves <- e:
	default:
		w.a.site.tell(step.Saved{Attempt: e.Attempt, Problem: "another checkpoint is being taken"})
	}
}

// letGo keeps data no longer for an attempt or for a job.
func (a *Agent) letGo(e step.LetGo) {
	owner := attemptOwner(e.Attempt)
	if e.Attempt.Token == 0 {
		owner = jobOwner(e.Attempt.Task.Job)
	}
	a.pins.drop(owner, e.CIDs)
}
