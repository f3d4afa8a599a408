package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A task moves on purpose because its user wants it, or because its site does, or the domain's
// controller, as its site cannot keep all that it has promised. Three things come
// before its attempt is ended, each only when the one before is done: another site offers
// (seeking.go), the site is asked for a last checkpoint, and that counts. Until then the attempt
// goes on, and if one of them comes to nothing it stays where it is. It is ended by its site, which
// says so like any end; should it fall silent, its lease ends as always. So no two attempts run at
// the same time, and the move is nobody's fault.

// moveStage says how far a move is.
type moveStage uint8

const (
	moveNone     moveStage = iota
	moveSeeking            // other sites are asked whether they offer
	moveSaving             // a last checkpoint is awaited
	moveStopping           // the site is to end the attempt
)

// String is the stage as people see it; empty: there is none.
func (s moveStage) String() string {
	return [...]string{"", "seeking", "saving", "stopping"}[s]
}

// moving is an attempt's way to another site.
type moving struct {
	stage moveStage
	why   grid.Reason // of its site; ReasonNone: its user wants it
	anew  bool        // it moves also if it then begins anew
	by    time.Time   // when the stage is given up
	heard bool        // saving: the site has answered
	next  uint64      // saving: the checkpoint that is awaited; 0: none is
	saves bool        // saving: its program saves its state
	begun bool        // saving: the attempt was started
	stays grid.Reason // why the last move came to nothing; ReasonNone: none has
	note  string      // the same for people, with what can be done
}

// What a user reads of a move that came to nothing, besides its Reason.
const (
	noteAnew   = "it would begin anew; --restart moves it so"
	noteOld    = "its site does not answer; it may be of an earlier version"
	noteUnread = "its program was asked for its state and has not saved"
)

// The times of a move.
const (
	moveRepeat = 2 * time.Second  // until the site is asked again that has not answered
	moveLook   = 10 * time.Second // the same when it has
	saveWithin = 10 * time.Minute // a last checkpoint that does not count by then is given up
	stopWithin = 30 * time.Second // an attempt that is not ended by then is fenced off
)

// moves follows the tasks that move.
type moves struct {
	*run
	enquiries
	peers  *peers
	herald herald
	rights rights
}

// onTasks begins to move tasks of a job, as its user wants it.
func (m moves) onTasks(in step.MoveTasks) {
	reply := step.Reply{Command: in.Command, Job: in.Job}
	j, known := m.jobs.all[in.Job]
	switch {
	case !known:
		reply.Err = step.ErrNoSuchJob
	case j.traits.whole:
		reply.Err = step.ErrTogether
	case j.of > 0:
		reply.Err = step.ErrCopied
	case j.traits.promise:
		reply.Err = step.ErrPromised
	default:
		reply.Err = m.each(j, in)
	}
	m.out.Emit(reply)
}

func (m moves) each(j *job, in step.MoveTasks) error {
	for _, i := range in.Tasks {
		if i >= uint32(len(j.tasks)) {
			return step.ErrNoTask
		}
	}
	indexes := in.Tasks
	if len(indexes) == 0 {
		for i := range j.tasks {
			indexes = append(indexes, uint32(i))
		}
	}
	begun := false
	for _, i := range indexes {
		t := &j.tasks[i]
		if !m.can(j, t) {
			continue
		}
		begun = true
		if t.moving.stage == moveNone {
			m.begin(j, i, moving{anew: in.Anew})
			continue
		}
		t.moving.why, t.moving.anew = grid.ReasonNone, t.moving.anew || in.Anew
		m.saveTask(j, i)
	}
	if !begun {
		return step.ErrNotRunning
	}
	m.seek(j)
	return nil
}

// can reports whether a task has an attempt at one site that has accepted it.
func (m moves) can(j *job, t *task) bool {
	return t.active() && t.phase != grid.PhaseAwarded && !t.queued() && !t.over &&
		!m.isAstray(t) && !j.isPresumed(m.now) && !j.traits.whole && j.of == 0 &&
		(!j.traits.promise || t.moving.stage != moveNone && t.startedAt.IsZero())
}

// onRemap begins to move what the domain's controller has named at a site that is there, and has
// promised more than it has. A promise moves for nothing else.
func (m moves) onRemap(msg protocol.Remap) {
	for _, v := range msg.Moves {
		j, t := m.jobs.task(v.Task)
		if t != nil && t.leave.moves {
			t.leave.moves = false
			m.begin(j, v.Task.Index, moving{anew: true})
			m.seek(j)
		}
	}
}

func (m moves) begin(j *job, index uint32, mv moving) {
	t := &j.tasks[index]
	mv.stage = moveSeeking
	t.moving = mv
	m.saveTask(j, index)
	m.out.Report(step.LevelInfo, eventMoveBegun, step.Report{
		Attempt: j.attempt(index), Site: t.site, Reason: mv.why,
	})
}

// onMovable hears that a site had rather not go on with an attempt, or has changed its mind, or
// what it answers when it is asked for a last checkpoint.
func (m moves) onMovable(from grid.SiteID, msg protocol.Movable) {
	j, t := m.jobs.current(from, msg.Attempt)
	if t == nil || !m.can(j, t) {
		return
	}
	index, mv := msg.Attempt.Task.Index, &t.moving
	switch {
	case mv.stage == moveStopping:
	case msg.Reason == grid.ReasonNone && mv.why != grid.ReasonNone && mv.stage != moveNone:
		m.stays(j, index, grid.ReasonNone, "")
	case mv.stage == moveSaving:
		if !mv.heard || msg.Next < mv.next {
			mv.next = msg.Next
		}
		mv.heard, mv.saves, mv.begun = true, msg.Saves, msg.Begun
		m.mayStop(j, index)
	case mv.stage == moveNone && msg.Reason != grid.ReasonNone &&
		(len(t.counted) > 0 || msg.Saves || !msg.Begun):
		m.begin(j, index, moving{why: msg.Reason})
		m.seek(j)
	}
}

// askLast asks a task's site for a last checkpoint, now that another site offers.
func (m moves) askLast(j *job, index uint32) {
	mv := &j.tasks[index].moving
	mv.stage, mv.heard, mv.by = moveSaving, false, m.now.Add(saveWithin)
	if m.cfg.NoLastSave {
		m.stop(j, index)
		return
	}
	m.send(j, index, moveRepeat)
}

// send tells a task's site what is next, and that again after a while.
func (m moves) send(j *job, index uint32, again time.Duration) {
	t, id := &j.tasks[index], j.attempt(index)
	m.out.Send(t.site, protocol.Move{Attempt: id, Stop: t.moving.stage == moveStopping})
	m.setTimer(timerMove, id.String(), m.now.Add(again))
}

// mayStop ends an attempt that is to move when its last checkpoint counts, or none is to be
// expected: a frozen program saves nothing, and what it has saved before counts. One that has
// saved in an earlier attempt will in this one.
func (m moves) mayStop(j *job, index uint32) {
	t := &j.tasks[index]
	mv, saved := &t.moving, len(t.counted) > 0
	switch {
	case mv.stage != moveSaving || !mv.heard || mv.next > t.latest():
	case !mv.begun || mv.anew || saved && (mv.saves || t.phase == grid.PhaseFrozen):
		m.stop(j, index)
	case !saved:
		m.stays(j, index, grid.ReasonCannotSave, noteAnew)
	}
}

// stop lets a task's site end the attempt. The task is awarded again when it has.
func (m moves) stop(j *job, index uint32) {
	mv := &j.tasks[index].moving
	mv.stage, mv.by = moveStopping, m.now.Add(stopWithin)
	m.saveTask(j, index)
	m.send(j, index, moveRepeat)
}

// stays ends a move that came to nothing: the attempt goes on where it is.
func (m moves) stays(j *job, index uint32, why grid.Reason, note string) {
	t := &j.tasks[index]
	t.moving = moving{stays: why, note: note}
	m.stopTimer(timerMove, j.attempt(index).String())
	m.saveTask(j, index)
	m.out.Report(step.LevelInfo, eventMoveStays, step.Report{
		Attempt: j.attempt(index), Site: t.site, Reason: why, Text: note,
	})
}

// onTimer repeats what a site was told for a move, or gives a stage of it up.
func (m moves) onTimer(id grid.AttemptID) {
	j, t := m.jobs.task(id.Task)
	if t == nil || t.token != id.Token || !t.active() {
		return
	}
	index, late := id.Task.Index, !m.now.Before(t.moving.by)
	switch stage := t.moving.stage; {
	case stage == moveSeeking:
		m.seek(j)
	case stage == moveSaving && late && !t.moving.heard:
		m.stays(j, index, grid.ReasonVersion, noteOld)
	case stage == moveSaving && late:
		m.stays(j, index, grid.ReasonCannotSave, noteUnread)
	case stage == moveSaving && t.moving.heard:
		m.send(j, index, moveLook)
	case stage == moveStopping && late:
		m.rights.fence(t.site, []grid.AttemptID{m.overdue(j, id)})
	case stage != moveNone:
		m.send(j, index, moveRepeat)
	}
}

// saved looks whether a checkpoint that counts is the last one of an attempt that is to move.
func (m moves) saved(id grid.AttemptID) {
	if j, t := m.jobs.task(id.Task); t != nil && t.token == id.Token && t.active() {
		m.mayStop(j, id.Task.Index)
	}
}

// isMoved reports whether an end is that of an attempt that was to move. One that its site has
// stopped before it was told to is one, too.
func (t *task) isMoved(exit grid.Exit) bool {
	return t.moving.stage != moveNone && exit.Cause == grid.CauseStopped
}

// moved awards a task elsewhere whose attempt was ended for that. Its site comes last now. It has
// failed nothing, and the task has lost nothing that would have it rest.
func (m *Machine) moved(j *job, index uint32) {
	t, id := &j.tasks[index], j.attempt(index)
	t.bringsNothing(t.site, t.token)
	t.log("moved"+because(t.moving.why), m.now)
	t.remember(t.site)
	delete(j.offers, t.site)
	m.stopTimer(timerMove, id.String())
	m.out.Report(step.LevelInfo, eventMoved, step.Report{
		Attempt: id, Site: t.site, Reason: t.moving.why,
	})
	t.moving = moving{}
	m.requeue(j, index)
}

// endMove is for a task that has ended, or is about to.
func (r *run) endMove(j *job, index uint32) {
	if mv := &j.tasks[index].moving; mv.stage != moveNone {
		r.stopTimer(timerMove, j.attempt(index).String())
		*mv = moving{}
	}
}

// because is ": reason", empty where there is none.
func because(why grid.Reason) string {
	if why == grid.ReasonNone {
		return ""
	}
	return ": " + why.String()
}

// resume begins a move again, after a restart of this machine or a silence of the site.
func (m moves) resume(j *job, index uint32) {
	t := &j.tasks[index]
	if t.moving.stage == moveNone {
		return
	}
	t.moving = moving{stage: moveSeeking, why: t.moving.why, anew: t.moving.anew}
	m.setTimer(timerMove, j.attempt(index).String(), m.now.Add(max(m.cfg.BootGrace, moveRepeat)))
}

// moveFact is a move as a part of taskFact.
type moveFact struct {
	Why  grid.Reason `json:"why,omitempty"`
	Anew bool        `json:"anew,omitempty"`
}

func (mv *moving) fact() *moveFact {
	if mv.stage == moveNone {
		return nil
	}
	return &moveFact{Why: mv.why, Anew: mv.anew}
}

func restoreMove(f *moveFact) moving {
	if f == nil {
		return moving{}
	}
	return moving{stage: moveSeeking, why: f.Why, anew: f.Anew}
}
