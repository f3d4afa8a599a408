package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A checkpoint counts when this site holds it, has looked at its seal, and has written so down:
// from then on the task is awarded with it, and its site may let go of older ones. A checkpoint
// that is with its site alone would be lost together with what it is to make good.

// takings follow the checkpoints that sites have taken.
type takings struct {
	*run
	jobs *jobs
}

// onCheckpointed hears of a checkpoint that a site has taken, and fetches it.
func (m takings) onCheckpointed(from grid.SiteID, msg protocol.Checkpointed) {
	id, c := msg.Attempt, msg.Checkpoint
	j, t := m.jobs.current(from, id)
	if t == nil || !t.active() || t.phase == grid.PhaseAwarded || m.isAstray(t) {
		return // a lease that it asks for tells it more
	}
	switch why := j.refusesSaved(t, c); {
	case t.latest() == c.Number && t.counts(c.CID): // the answer was lost
		m.sendHeld(from, id, c.Number, grid.ReasonNone)
	case why != grid.ReasonNone:
		m.refuseSaved(from, id, c.Number, why)
	case t.pulling != c:
		t.pulling = c
		if m.cfg.NoHolding {
			m.countSaved(j, id, from)
			return
		}
		work := j.work(id.Task.Index).WorkDigest()
		m.out.Emit(step.Pull{
			Attempt: id, Checkpoint: c, Work: work, From: from, Key: j.spec.Encryption.Key,
		})
	}
}

// refusesSaved says why a checkpoint cannot be one of a task, without looking at it.
func (j *job) refusesSaved(t *task, c grid.Checkpoint) grid.Reason {
	switch {
	case j.traits.unsaved:
		return grid.ReasonInvalid
	case c.Number <= t.latest():
		return grid.ReasonSavedOld
	case c.Bytes > j.mostSaved():
		return grid.ReasonDisk // a program cannot have saved more than it may write
	default:
		return grid.ReasonNone
	}
}

// onPulled: a checkpoint is here, or is none.
func (m takings) onPulled(in step.Pulled) {
	id := in.Attempt
	j, t := m.jobs.task(id.Task)
	if t == nil || t.token != id.Token || t.phase.Ended() ||
		in.Number == 0 || t.pulling.Number != in.Number {
		m.strandedSaved(in)
		return
	}
	switch site := t.site; {
	case in.Reason != grid.ReasonNone:
		t.pulling = grid.Checkpoint{}
		m.refuseSaved(site, id, in.Number, in.Reason)
	case in.Problem != "": // its site tells of it again
		t.pulling = grid.Checkpoint{}
		m.out.Report(step.LevelDebug, eventPullFailed, step.Report{
			Attempt: id, Site: site, Text: in.Problem,
		})
	default:
		m.countSaved(j, id, site)
	}
}

// strandedSaved lets go of a checkpoint that came too late.
func (m takings) strandedSaved(in step.Pulled) {
	_, t := m.jobs.task(in.Attempt.Task)
	if in.Reason == grid.ReasonNone && in.Problem == "" && (t == nil || !t.counts(in.CID)) {
		m.letGo(in.Attempt.Task, []grid.CID{in.CID})
	}
}

// countSaved counts the checkpoint that was pulled.
func (m takings) countSaved(j *job, id grid.AttemptID, site grid.SiteID) {
	t := &j.tasks[id.Task.Index]
	c := t.pulling
	t.pulling = grid.Checkpoint{}
	old := t.enter(counted{Checkpoint: c, site: site, at: m.now})
	m.saveTask(j, id.Task.Index)
	m.letGo(id.Task, old)
	m.out.Report(step.LevelInfo, eventSavedCounts, step.Report{
		Attempt: id, Site: site, Value: float64(c.Number),
	})
	m.sendHeld(site, id, c.Number, grid.ReasonNone)
}

func (m takings) refuseSaved(site grid.SiteID, id grid.AttemptID, number uint64, why grid.Reason) {
	m.reportRefused(eventSavedRefused, site, id, why)
	m.sendHeld(site, id, number, why)
}

func (m takings) sendHeld(site grid.SiteID, id grid.AttemptID, number uint64, why grid.Reason) {
	m.out.Send(site, protocol.Held{Attempt: id, Number: number, Reason: why})
}
