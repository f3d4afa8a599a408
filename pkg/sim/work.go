package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// attempt is one simulated sandbox.
type attempt struct {
	id         grid.AttemptID
	begun      bool // the sandbox was made
	running    bool
	left       time.Duration // run time still to come
	since      time.Duration // of running, when it last started or resumed
	leaseUntil time.Duration
	exit       grid.Exit
	generation int // of the events that belong to its present state
	staging    bool
	suspended  bool          // its site's owner needs the machine
	hangs      bool          // it makes no progress and answers nothing
	stopping   bool          // it is to end
	saves      bool          // its program saves its state
	work       string        // with saves: the task's digest
	base       time.Duration // with saves: run time in the state that it began with
	whole      time.Duration // with saves: run time of the task, base included
}

// diskBps stands in for a disk of unknown rate, bit/s.
const diskBps = 800_000_000

func sortedAttempts(attempts map[grid.AttemptID]*attempt) []grid.AttemptID {
	return slices.SortedFunc(maps.Keys(attempts), grid.AttemptID.Compare)
}

func (h *host) startAttempt(e step.StartAttempt) {
	w := h.world
	estimate := w.estimates[e.Attempt.Task.Job]
	run, exit := estimate, grid.Exit{Cause: grid.CauseExited}
	if w.cfg.Run != nil {
		run, exit = w.cfg.Run(e.Task, estimate, h.spec)
	} else {
		exit.Outputs = []grid.Produced{
			{Path: "/out/result", CID: h.outputOf(e.Task), Bytes: 1 << 10},
		}
	}
	exit.Wall = run
	a := &attempt{id: e.Attempt, left: run, leaseUntil: h.trueTime(e.LeaseUntil), exit: exit}
	h.attempts[e.Attempt] = a
	h.goOn(a, e.Task)
	a.generation++
	h.attemptAfter(a, h.starting(), func() {
		if !w.cfg.NoWatchdog && w.elapsed >= a.leaseUntil { // it slept meanwhile
			h.end(a, grid.Exit{Cause: grid.CauseStopped, Text: "the lease ended before the start"})
			return
		}
		a.begun, a.hangs = true, h.stuck != 0
		if !a.suspended && !a.hangs {
			h.resume(a)
		}
		h.step(roleSite, step.AttemptStarted{Attempt: a.id})
		if a.suspended {
			h.step(roleSite, step.AttemptFrozen{Attempt: a.id})
		}
		if a.saves {
			h.step(roleSite, step.CanSave{Attempt: a.id})
		}
	})
}

// outputCID makes a content identifier that depends on the task alone, as a
// deterministic program's output would.
func outputCID(id grid.TaskID) grid.CID {
	return grid.CID(fmt.Sprintf("simout%sx%d", id.Job, id.Index))
}

// attemptAfter does something with an attempt after a while, unless its state
// changes before.
func (h *host) attemptAfter(a *attempt, d time.Duration, do func()) {
	generation := a.generation
	h.after(d, func() {
		if a.generation == generation && h.attempts[a.id] == a {
			do()
		}
	})
}

// resume lets an attempt run until its end or its lease's, whichever is first.
func (h *host) resume(a *attempt) {
	w := h.world
	a.running, a.since = true, w.elapsed
	a.generation++
	w.trace.running(h, a.id, w.elapsed)
	h.seeAttempt(SightRuns, a.id)
	if w.cfg.NoWatchdog || w.elapsed+a.left <= a.leaseUntil {
		h.attemptAfter(a, a.left, func() { h.end(a, a.exit) })
		return
	}
	h.attemptAfter(a, a.leaseUntil-w.elapsed, func() {
		h.pauseAttempt(a)
		h.step(roleSite, step.AttemptFrozen{Attempt: a.id})
	})
}

func (h *host) pauseAttempt(a *attempt) {
	if !a.running {
		return
	}
	a.running = false
	a.generation++
	a.left -= h.world.elapsed - a.since
	h.world.trace.stopped(h, a.id, h.world.elapsed)
	h.seeAttempt(SightFrozen, a.id)
}

func (h *host) extendLease(e step.ExtendLease) {
	a, ok := h.attempts[e.Attempt]
	if !ok || a.staging {
		return
	}
	a.leaseUntil = max(a.leaseUntil, h.trueTime(e.LeaseUntil))
	if a.leaseUntil <= h.world.elapsed {
		return
	}
	frozen := !a.running && a.begun && !a.suspended && !a.hangs
	if a.running {
		h.pauseAttempt(a)
		h.resume(a)
	} else if frozen {
		h.resume(a)
		h.later(0, roleSite, step.AttemptResumed{Attempt: a.id})
	}
}

// suspend freezes an attempt for its owner's sake.
func (h *host) suspend(id grid.AttemptID) {
	a, ok := h.attempts[id]
	if !ok || a.staging || a.suspended {
		return
	}
	a.suspended = true
	if a.running {
		h.pauseAttempt(a)
		h.later(0, roleSite, step.AttemptFrozen{Attempt: a.id})
	}
}

// proceed ends suspend. The attempt runs on if its lease does.
func (h *host) proceed(id grid.AttemptID) {
	a, ok := h.attempts[id]
	if !ok || !a.suspended {
		return
	}
	a.suspended = false
	if a.begun && !a.running && !a.hangs && a.leaseUntil > h.world.elapsed {
		h.resume(a)
		h.later(0, roleSite, step.AttemptResumed{Attempt: a.id})
	}
}

func (h *host) stopAttempt(id grid.AttemptID) {
	a, ok := h.attempts[id]
	if !ok { // its inputs are here and it was not started: there is nothing to stop
		h.later(time.Millisecond, roleSite, step.AttemptExited{
			Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped},
		})
		return
	}
	h.pauseAttempt(a)
	a.generation++
	took := time.Millisecond
	if a.hangs {
		a.stopping, took = true, h.stuck
	}
	h.attemptAfter(a, took, func() { h.end(a, grid.Exit{Cause: grid.CauseStopped}) })
}

func (h *host) end(a *attempt, exit grid.Exit) {
	h.pauseAttempt(a)
	delete(h.attempts, a.id)
	h.seeAttempt(SightGone, a.id)
	var added []grid.CID
	for _, out := range append(slices.Clone(exit.Outputs), exit.Stdout, exit.Stderr) {
		if out.CID == "" {
			continue
		}
		h.store(out.CID, out.Bytes)
		h.disk.pin(out.CID, a.id.String())
		added = append(added, out.CID)
	}
	if len(added) > 0 {
		h.step(roleSite, step.HeldChanged{Added: added})
	}
	h.step(roleSite, step.AttemptExited{Attempt: a.id, Exit: exit})
}

// stage moves what is missing from its holder, one transfer after the other.
func (h *host) stage(e step.Stage) {
	a := &attempt{id: e.Attempt, staging: true}
	h.attempts[e.Attempt] = a
	need := e.Inputs
	if e.Module.CID != "" {
		need = append([]grid.Input{e.Module}, need...)
	}
	staged, saved := h.choose(e)
	need = append(slices.Clip(need), saved...)
	var missing int64
	for _, in := range need {
		if _, has := h.disk.held[in.CID]; !has {
			missing += in.Bytes
		}
	}
	begun, generation := h.world.elapsed, a.generation
	h.bring(need, missing, e.From, h.lagging(h.world.cfg.Lags.Stage, missing, func() {
		if a.generation != generation || h.attempts[a.id] != a {
			return
		}
		took := h.world.elapsed - begun
		delete(h.attempts, e.Attempt)
		if problem := h.stagingProblem(missing, e.From); problem != "" {
			h.step(roleSite, step.Staged{
				Attempt: e.Attempt, Took: took, Problem: problem, Local: h.lacks(problem),
			})
			return
		}
		added := h.keep(need)
		h.step(roleSite, step.HeldChanged{Added: added})
		staged.Bytes, staged.Took = missing, took
		h.step(roleSite, staged)
	}))
}

func (h *host) keep(inputs []grid.Input) []grid.CID {
	var added []grid.CID
	for _, in := range inputs {
		if _, has := h.disk.held[in.CID]; !has {
			h.store(in.CID, in.Bytes)
			added = append(added, in.CID)
		}
	}
	return added
}

// stagingProblem says why data that is missing cannot come from a site.
func (h *host) stagingProblem(missing int64, from grid.SiteID) string {
	if missing == 0 {
		return ""
	}
	if _, reached := h.reaches(from); !reached {
		return "the holder cannot be reached"
	}
	if h.disk.full {
		return diskIsFull
	}
	return ""
}

// diskIsFull is the problem of a site that cannot store what it is to have.
const diskIsFull = "no space left on the device"

// lacks reports whether a problem is this site's own. The machines are told of it first.
func (h *host) lacks(problem string) bool {
	if problem == diskIsFull {
		h.tellSpace()
	}
	return problem == diskIsFull
}

// collect brings outputs to the submitter.
func (h *host) collect(e step.Collect) {
	var bytes int64
	e.From = h.holder(e.From)
	if from, known := h.world.hosts[e.From]; known {
		for _, cid := range e.Outputs {
			bytes += from.disk.held[cid]
		}
	}
	h.transfer(bytes, e.From, h.lagging(h.world.cfg.Lags.Collect, bytes, func() {
		problem := h.fetch(e)
		h.step(roleBroker, step.Collected{
			Attempt: e.Attempt, Problem: problem, Local: h.lacks(problem),
		})
	}))
}

// fetch takes outputs from where they are, or says why it cannot.
func (h *host) fetch(e step.Collect) string {
	from, reached := h.reaches(e.From)
	if !reached {
		return "the site cannot be reached"
	}
	for _, cid := range e.Outputs {
		bytes, has := from.disk.has(cid)
		if !has {
			return "the site does not have it"
		}
		if _, here := h.disk.has(cid); h.disk.full && !here {
			return diskIsFull
		}
		h.store(cid, bytes)
		h.disk.pin(cid, jobPin(e.Attempt.Task.Job))
	}
	return ""
}

// historyPin is for whom the data of ended jobs is kept.
const historyPin = "history"

// jobPin is for whom a submitter keeps data.
func jobPin(job grid.JobID) string { return "job " + string(job) }

// hold makes the submitter's data present, as an upload before the submission
// does.
func (h *host) hold(e step.Hold) {
	if e.Release {
		h.disk.unpin(jobPin(e.Job))
		return
	}
	for _, cid := range e.CIDs {
		h.disk.pin(cid, jobPin(e.Job))
		if _, has := h.disk.held[cid]; !has {
			h.store(cid, 0)
		}
	}
	h.later(0, roleSite, step.HeldChanged{Added: e.CIDs})
}

func (h *host) discard(e step.Discard) {
	delete(h.attempts, e.Attempt)
	h.disk.unpin(e.Attempt.String())
	h.seeAttempt(SightGone, e.Attempt)
}

// historyWait is the time that the history takes to write ended jobs.
const historyWait = 5 * time.Millisecond

// archive keeps ended jobs on the host's disk, and what they have left.
func (h *host) archive(e step.Archive) {
	if h.disk.broken {
		return
	}
	var ids []grid.JobID
	for _, j := range e.Jobs {
		h.disk.past[j.Job] = j
		for _, cid := range j.Outputs {
			h.disk.pin(cid, historyPin)
		}
		ids = append(ids, j.Job)
	}
	h.later(historyWait, roleBroker, step.Archived{Jobs: ids})
}
