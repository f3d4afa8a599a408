package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// When a site with promised tasks falls silent, the controller of the domain says which of them
// leave it now, and the others stay: the site may be back before they start (ADR 68). It orders
// nothing. No task moves before its last lease is over, and one stays only as long as the
// controller speaks of its site and its start is not near: without a controller, and with one that
// has gone mute, all is as it was. What is to leave waits for another place from the controller's
// word on: it is held by the time that the lease is over, and who gets none hears so.

// remapping holds the controller, as far as is known, and which sites it has spoken of.
type remapping struct {
	*run
	jobs       *jobs
	peers      *peers
	controller step.Controller
	said       map[grid.SiteID]time.Time // when it last spoke of a failed site
}

// leave is a promised task of which a controller has said that it is to leave its site.
type leave struct {
	at    time.Time
	to    grid.SiteID // to be asked first; empty: none is known to have space
	stays bool        // its site is silent, its lease is over, and it was not named
	early bool        // it waits for another place, and its lease was not over
	moves bool        // its site is there and cannot keep it: it is to move with that site's help
}

// What the owner of a promised task is told while it is in danger.
const (
	noteGone = "its site is gone, and no other has a place in time; " +
		"it is kept in case that the site is back before its start"
	noteHeld    = "its site is gone; another one holds a place until it may be awarded"
	noteNowhere = "no other site can hold it now; others are asked until its start"
	noteShort   = "its site has promised more than it has now, and no other has a place in time"
	noteSilent  = "its site is silent and may be back before its start"
)

// maxSpoken bounds the failed sites that are remembered.
const maxSpoken = 1024

// onController takes that another site is the domain's controller, or none. Without one, nothing
// stays where nobody answers.
func (r *remapping) onController(in step.Controller) {
	if !in.IsValid() {
		return
	}
	r.controller = in
	if in.Site != "" {
		return
	}
	clear(r.said)
	for _, id := range r.jobs.served() {
		j := r.jobs.all[id]
		for i := range j.tasks {
			if j.tasks[i].leave.stays {
				r.setTimer(timerLease, j.attempt(uint32(i)).String(), r.now)
			}
		}
	}
}

// onRemap takes what the controller says of a site that has failed, and tells it which of the tasks
// that it names are not there.
func (r *remapping) onRemap(from grid.SiteID, msg protocol.Remap) {
	if from != r.controller.Site || msg.Term != r.controller.Term {
		r.reportRefused(eventRemapRefused, from, grid.AttemptID{}, grid.ReasonStale)
		return
	}
	if !msg.Partly {
		r.speaks(msg.Site)
	} else {
		r.warnAgain(msg)
	}
	answer := protocol.Remapped{Term: msg.Term, Number: msg.Number}
	for _, v := range msg.Moves {
		j, t := r.jobs.task(v.Task)
		if t == nil || t.site != msg.Site || !r.isThere(j, t) {
			answer.Elsewhere = append(answer.Elsewhere, v.Task)
			continue
		}
		t.leave.at, t.leave.to = r.now, v.To
		switch {
		case msg.Partly:
			t.leave.moves = r.mayMove(t)
		case t.leave.stays, r.leavesEarly(j, t): // it has waited for this
			r.setTimer(timerLease, j.attempt(v.Task.Index).String(), r.now)
		}
	}
	if len(answer.Elsewhere) > 0 {
		r.out.Send(from, answer)
	}
}

// isThere reports whether a promised task has not begun, and its site has it, or may be back with
// it while its lease lasts.
func (r *remapping) isThere(j *job, t *task) bool {
	return j.mayLeave(t) && (t.active() || t.awaitsLease(r.now))
}

// mayMove reports whether a named task is to move with its site's help.
func (r *remapping) mayMove(t *task) bool {
	return t.leave.to != "" && t.isSettled() && r.peers.reachable(t.site) && !r.cfg.NoRemapping
}

// warnAgain tells the owners of what a site holds that is there, and has promised more than it has:
// those of tasks that are to move and have no other place. Others need not fear any more.
func (r *remapping) warnAgain(msg protocol.Remap) {
	stuck := make(map[grid.TaskID]bool)
	for _, v := range msg.Moves {
		stuck[v.Task] = v.To == ""
	}
	for _, id := range r.jobs.ids() {
		j := r.jobs.all[id]
		for i := range j.tasks {
			t := &j.tasks[i]
			is := stuck[j.taskID(uint32(i))] && j.mayLeave(t) && t.note == ""
			if t.site != msg.Site || !t.isSettled() || !is && t.note != noteShort {
				continue
			}
			switch {
			case is:
				t.note = noteShort
				r.report(step.LevelWarn, eventNoOtherPlace, j.attempt(uint32(i)), t.site)
			case stuck[j.taskID(uint32(i))]:
				continue
			default:
				t.note = ""
			}
			r.saveTask(j, uint32(i))
		}
	}
}

// speaks notes that the controller looks after a site that has failed.
func (r *remapping) speaks(of grid.SiteID) {
	if _, known := r.said[of]; !known && len(r.said) >= maxSpoken {
		clear(r.said) // those that are left are named again soon
	}
	r.said[of] = r.now
}

// mayLeave reports whether a task is one that a controller is asked about: it was promised a place
// by itself, and has not begun.
func (j *job) mayLeave(t *task) bool {
	return j.traits.promise && !j.traits.whole && j.of == 0 && t.startedAt.IsZero()
}

// stays reports whether a task whose site is silent stays there: the controller has spoken of that
// site since the last lease was granted, has not named the task, and there is still time.
func (r *remapping) stays(j *job, t *task) bool {
	granted := t.leaseEnd.Add(-j.traits.lease - r.cfg.margin(j.traits.lease))
	if t.deaf() || r.isAbandoned(t) { // it would not be heard of when it is back
		return false
	}
	return !r.cfg.NoRemapping && r.controller.Site != "" && j.mayLeave(t) &&
		r.said[t.site].After(granted) && !t.leave.at.After(granted) &&
		r.guardOf(j, t).After(r.now)
}

// leavesEarly reports whether another place is looked for although the lease of a task lasts: it
// was named, its site is away for this one, too, and that lease is over before it can begin.
func (r *remapping) leavesEarly(j *job, t *task) bool {
	if r.cfg.NoRemapping || t.leave.at.IsZero() || !t.active() || !j.mayLeave(t) ||
		r.peers.reachable(t.site) || t.over || t.deaf() || r.isAbandoned(t) {
		return false
	}
	return t.leaseEnd.After(r.now) && (j.startOf(t).After(t.leaseEnd) || r.cfg.NoLeaseWait)
}

// leftEarly notes that a task waits for another place, though its lease lasts. A restart has to
// know of the lease. Its owner hears immediately if the controller knows of no place.
func (r *remapping) leftEarly(j *job, index uint32) {
	t, id := &j.tasks[index], j.attempt(index)
	t.leave.early = true
	t.top = max(t.top, t.token) + 1
	if r.cfg.NoLeaseWait {
		t.rest = r.now
	}
	r.setTimer(timerLease, id.String(), t.leaseEnd)
	if t.leave.to == "" {
		t.note = noteGone
		r.out.Report(step.LevelWarn, eventNoOtherPlace, step.Report{
			Attempt: id, Site: t.site, Reason: grid.ReasonNowhere,
		})
	}
	r.saveTask(j, index)
}

// isOver reports whether the lease of a task that left early is over now.
func (l *leave) isOver(t *task, now time.Time) bool {
	return l.early && t.returnable() && !t.leaseEnd.After(now)
}

// guardOf is when a task leaves its silent site at the latest, whether it was named or not.
func (r *remapping) guardOf(j *job, t *task) time.Time {
	return j.startOf(t).Add(-r.cfg.RemapGuard)
}

// keep lets a task stay at its silent site.
func (r *remapping) keep(j *job, index uint32) {
	t, id := &j.tasks[index], j.attempt(index)
	r.setTimer(timerLease, id.String(), r.guardOf(j, t))
	if t.leave.stays {
		return
	}
	t.leave.stays = true
	r.peers.fellSilent(t.site)
	r.peers.blame(r.jobs, t, fault.Silent)
	t.note = noteSilent
	r.saveTask(j, index)
	r.out.Report(step.LevelInfo, eventStays, step.Report{Attempt: id, Site: t.site})
}

// heardOf takes that the site of a task that stayed there is back.
func (r *remapping) heardOf(j *job, t *task, id grid.AttemptID) {
	if !t.leave.stays && !t.leave.early && t.leave.at.IsZero() || t.moving.stage != moveNone {
		return // or it is on its way to the site that was named
	}
	if t.leave.stays {
		t.note = ""
		r.saveTask(j, id.Task.Index)
		r.report(step.LevelInfo, eventAttemptReturned, id, t.site)
	}
	t.leave = leave{}
}

// target is the site that the controller has named for what waits, empty if there is none.
func (j *job) target() grid.SiteID {
	for _, i := range j.waiting {
		if to := j.tasks[i].leave.to; to != "" {
			return to
		}
	}
	return ""
}

// wantedFirst brings the site that the controller has named before all others, and reports whether
// it is among them.
func (j *job) wantedFirst(all []*candidate) bool {
	want := j.target()
	at := slices.IndexFunc(all, func(c *candidate) bool { return c.offer.Site == want })
	if want == "" || at < 0 {
		return false
	}
	c := all[at]
	copy(all[1:at+1], all[:at])
	all[0] = c
	return true
}

// warn tells the owners of what was promised a place, and has lost it, that no other site has one.
// Each hears it once, as soon as all have been asked: its site may be back, and
// until its start others are asked.
func (d desk) warn() {
	for _, i := range d.j.waiting {
		t := &d.j.tasks[i]
		if t.promise != grid.PromiseOpen || t.note != "" && t.note != noteHeld {
			continue
		}
		t.note = noteNowhere
		d.save(i)
		d.report(step.LevelWarn, eventNoOtherPlace, step.Report{
			Attempt: d.j.attempt(i), Site: t.site, Reason: grid.ReasonNowhere,
		})
	}
}
