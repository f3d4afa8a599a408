package site

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A program that can save its state shows it by doing so (CanSave). From then on a timer of its
// attempt is set: to take the next checkpoint, or to tell the submitter of the last one again. No
// other checkpoint is taken before the submitter has answered, so a link that is slow sets the
// pace, and one that is down costs nothing.

// timerSave is an attempt's; its ID is the attempt's as text.
const timerSave = "save"

// How long the submitter is waited for before it is told again.
const (
	firstRetell = 2 * time.Second // it doubles
	mostRetell  = time.Minute
)

// saving follows an attempt's checkpoints.
type saving struct {
	from   []grid.Checkpoint // that its award carried, the latest first
	able   bool              // its program saves its state
	asked  bool              // Save was emitted and is not answered
	number uint64            // the highest that any checkpoint of the task is known to have
	base   time.Duration     // run time that is in the checkpoint it went on from
	ran    time.Duration     // run time here, until since
	since  time.Time         // of running; zero: it does not run
	taken  time.Time         // when the latest one was asked for
	cost   time.Duration     // of the latest; 0: none was taken
	counts time.Duration     // from asking for one until it counts, see countsWithin; 0: none has
	left   int64             // checkpoints in a row that were left out, see leavesOut
	untold grid.Checkpoint   // not answered by the submitter; its number is 0 if there is none
	retell time.Duration     // the last pause before it was told again
	kept   []grid.CID        // that are held for it here, the latest last
	held   uint64            // the number of the last that counts

	interval time.Duration // adapted after each that counts, see adapt; 0: as it began
}

// newSaving is for an attempt that was awarded with these checkpoints.
func newSaving(from []grid.Checkpoint) saving {
	s := saving{from: from}
	for _, c := range from {
		s.number = max(s.number, c.Number)
	}
	return s
}

// runs and rests measure the run time.
func (s *saving) runs(now time.Time) {
	if s.since.IsZero() {
		s.since = now
	}
}

func (s *saving) rests(now time.Time) {
	s.ran, s.since = s.runTime(now), time.Time{}
}

// runTime is that of this attempt so far, frozen time left out.
func (s *saving) runTime(now time.Time) time.Duration {
	if s.since.IsZero() {
		return s.ran
	}
	return s.ran + max(now.Sub(s.since), 0)
}

// isSaved reports whether checkpoints are taken of the attempt.
func (a *attempt) isSaved() bool {
	return a.saving.able && a.phase >= phaseStarting && a.phase <= phaseFrozen
}

// onStagedSaved notes where an attempt goes on from.
func (m *Machine) onStagedSaved(a *attempt, in step.Staged) {
	for _, refused := range in.Refused {
		r := about(a.id, a.submitter)
		r.Reason, r.Value = refused.Reason, float64(refused.Number)
		m.out.Report(step.LevelWarn, eventSavedRefused, r)
	}
	at := slices.IndexFunc(a.saving.from, func(c grid.Checkpoint) bool {
		return c.Number == in.Saved
	})
	if in.Saved == 0 || at < 0 {
		return
	}
	a.saving.base = a.saving.from[at].Worked
	r := about(a.id, a.submitter)
	r.Value = float64(in.Saved)
	m.out.Report(step.LevelInfo, eventGoesOn, r)
}

// onCanSave hears for the first time that an attempt's program saves its state.
func (m *Machine) onCanSave(in step.CanSave) {
	a := m.find(in.Attempt, phaseStarting, phaseFrozen)
	if a == nil || a.saving.able || a.task.Checkpoint.Off {
		return
	}
	a.saving.able, a.saving.taken = true, m.now
	m.saveAfter(a, m.saveInterval(a)-a.saving.runTime(m.now))
	m.reviewLeave(a)
	if m.now.Sub(a.leaving.asked) < askedAgain { // its submitter waits for that
		m.sendMovable(a, m.leavesFor(a), m.askedSave(a))
	}
}

func (m *Machine) saveAfter(a *attempt, pause time.Duration) {
	m.out.SetTimer(timerSave, a.id.String(), m.now.Add(max(pause, 0)))
}

// onSaveTimer takes the next checkpoint, or tells of the last one again.
func (m *Machine) onSaveTimer(a *attempt) {
	s := &a.saving
	switch {
	case !a.isSaved() || s.asked:
		m.out.Report(step.LevelDebug, eventStale, about(a.id, a.submitter))
	case s.untold.Number != 0:
		m.sendCheckpointed(a)
	case m.leavesOut(a):
		m.saveAfter(a, m.saveInterval(a))
	default:
		m.takeSave(a)
	}
}

func (m *Machine) takeSave(a *attempt) {
	s := &a.saving
	s.asked, s.taken = true, m.now
	s.number++
	m.out.Emit(step.Save{Attempt: a.id, Number: s.number})
}

// onSaved tells the submitter of a checkpoint that was taken.
func (m *Machine) onSaved(in step.Saved) {
	a := m.find(in.Attempt, phaseStarting, phaseFrozen)
	if a == nil {
		return // what it has left goes with the attempt
	}
	s, c := &a.saving, in.Checkpoint
	if !s.asked || in.Problem == "" && c.Number != s.number {
		m.out.Report(step.LevelDebug, eventStale, about(a.id, a.submitter))
		return
	}
	s.asked = false
	if c.Worked == 0 {
		c.Worked = s.base + max(s.runTime(m.now)-max(in.Age, 0), 0)
	}
	if err := c.Validate(); in.Problem == "" && err != nil {
		in.Problem = err.Error()
	}
	if in.Problem != "" {
		r := about(a.id, a.submitter)
		r.Text = in.Problem
		m.out.Report(step.LevelWarn, eventSaveFailed, r)
		pause := m.saveInterval(a)
		if m.isToLeave(a) {
			pause = min(pause, hurrySave)
		}
		m.saveAfter(a, pause)
		return
	}
	s.cost, s.untold, s.retell = in.Took, c, firstRetell/2
	s.kept = append(s.kept, c.CID)
	r := about(a.id, a.submitter)
	r.Value = float64(c.Number)
	m.out.Report(step.LevelDebug, eventSaved, r)
	m.sendCheckpointed(a)
}

func (m *Machine) sendCheckpointed(a *attempt) {
	a.saving.retell = min(2*a.saving.retell, mostRetell)
	m.out.Send(a.submitter, protocol.Checkpointed{Attempt: a.id, Checkpoint: a.saving.untold})
	m.saveAfter(a, a.saving.retell)
}

// onCheckpointHeld hears that a checkpoint counts, or why it does not. What is older than the one
// before is let go.
func (m *Machine) onCheckpointHeld(from grid.SiteID, msg protocol.Held) {
	a := m.find(msg.Attempt, phaseStarting, phaseFrozen)
	switch {
	case a == nil:
		return
	case a.submitter != from:
		m.out.Report(step.LevelWarn, eventNotSubmitter, about(msg.Attempt, from))
		return
	case a.saving.untold.Number != msg.Number:
		m.out.Report(step.LevelDebug, eventStale, about(msg.Attempt, from))
		return
	}
	s := &a.saving
	s.untold = grid.Checkpoint{}
	s.counts = max(m.now.Sub(s.taken), s.counts*3/4, leastSaveCost)
	r := about(a.id, from)
	r.Value = float64(msg.Number)
	last := len(s.kept) - 1
	if msg.Reason != grid.ReasonNone {
		r.Reason = msg.Reason
		m.out.Report(step.LevelWarn, eventSavedRefused, r)
		m.letGo(a, s.kept[last:])
		s.kept = s.kept[:last]
	} else {
		s.held = msg.Number
		m.adapt(a)
		m.out.Report(step.LevelInfo, eventSavedCounts, r)
		if old := len(s.kept) - grid.MaxSaved; old > 0 {
			m.letGo(a, s.kept[:old])
			s.kept = slices.Clone(s.kept[old:])
		}
	}
	pause := m.saveInterval(a) - m.now.Sub(s.taken)
	if a.leaving.again {
		a.leaving.again, pause = false, 0
	}
	m.saveAfter(a, pause)
}

func (m *Machine) letGo(a *attempt, cids []grid.CID) {
	m.out.Emit(step.LetGo{Attempt: a.id, CIDs: slices.Clone(cids)})
}

// endSaving is for an attempt that ends: no further checkpoint is taken of it.
func (m *Machine) endSaving(a *attempt) {
	if a.saving.able {
		m.stopTimers(a, timerSave)
	}
	a.saving.rests(m.now)
	a.saving.able, a.saving.asked = false, false
	m.stopLeaving(a)
}
