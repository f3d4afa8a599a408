package sim

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The programs of Config.Saves save their states when they are asked to, and go on from one. A
// state is the run time that is in it.

// What saving takes, and how large a state is.
const (
	saveTakes  = 200 * time.Millisecond
	stateBytes = 100_000
)

// state is the content of a checkpoint, and its seal.
type state struct {
	seal   protocol.Seal
	worked time.Duration
}

// stateCID names the checkpoint of an attempt.
func stateCID(id grid.AttemptID, number uint64) grid.CID {
	return grid.CID(
		fmt.Sprintf("simsaved%sx%dx%dx%d", id.Task.Job, id.Task.Index, id.Token, number),
	)
}

// saves reports whether a task's program saves its state.
func (w *World) saves(t grid.Task) bool {
	return w.cfg.Saves != nil && !t.Checkpoint.Off && w.cfg.Saves(t)
}

// goOn takes from an attempt's run time what is in the state that was laid out for it, and notes
// both.
func (h *host) goOn(a *attempt, task grid.Task) {
	base := h.bases[a.id]
	delete(h.bases, a.id)
	if !h.world.saves(task) {
		return
	}
	a.saves, a.work, a.base = true, task.WorkDigest(), min(base, a.left)
	a.left -= a.base
	a.exit.Wall = a.left
	a.whole = a.base + a.left
	h.world.trace.Begun[a.id] = a.base
}

// worked is the run time of the task that an attempt has come to.
func (h *host) worked(a *attempt) time.Duration {
	left := a.left
	if a.running {
		left -= h.world.elapsed - a.since
	}
	return a.whole - left
}

// save lets an attempt's program save its state, as soon as it runs.
func (h *host) save(e step.Save) {
	h.after(saveTakes, func() {
		a, there := h.attempts[e.Attempt]
		switch {
		case !there || a.staging || !a.saves:
		case !a.running:
			h.save(e)
		case h.disk.full:
			h.step(roleSite, step.Saved{Attempt: e.Attempt, Problem: diskIsFull})
		default:
			cid, worked := stateCID(e.Attempt, e.Number), h.worked(a)
			h.world.states[cid] = state{worked: worked, seal: protocol.Seal{
				Task: e.Attempt.Task, Token: e.Attempt.Token, Number: e.Number, Work: a.work,
			}}
			h.store(cid, stateBytes)
			h.disk.pin(cid, e.Attempt.String())
			h.step(roleSite, step.HeldChanged{Added: []grid.CID{cid}})
			h.step(roleSite, step.Saved{
				Attempt: e.Attempt, Took: saveTakes,
				Checkpoint: grid.Checkpoint{
					Number: e.Number, CID: cid, Bytes: stateBytes, Worked: max(worked, 1),
				},
			})
		}
	})
}

// pull brings a checkpoint to the submitter.
func (h *host) pull(e step.Pull) {
	h.transfer(e.Checkpoint.Bytes, e.From, func() {
		c := e.Checkpoint
		answer := step.Pulled{Attempt: e.Attempt, Number: c.Number, CID: c.CID}
		from, reached := h.reaches(e.From)
		switch {
		case !reached:
			answer.Problem = "the site cannot be reached"
		case h.disk.full:
			answer.Problem = diskIsFull
		default:
			bytes, has := from.disk.has(c.CID)
			if !has {
				answer.Problem = "the site does not have it"
				break
			}
			want := protocol.Seal{Task: e.Attempt.Task, Number: c.Number, Work: e.Work}
			answer.Reason = h.world.states[c.CID].seal.Against(want)
			if answer.Reason == grid.ReasonNone {
				h.store(c.CID, bytes)
				h.disk.pin(c.CID, jobPin(e.Attempt.Task.Job))
			}
		}
		h.step(roleBroker, answer)
	})
}

// choose picks the checkpoint that is laid out for an attempt, as data to be fetched.
func (h *host) choose(e step.Stage) (result step.Staged, in []grid.Input) {
	result.Attempt = e.Attempt
	for _, c := range e.Saved {
		why := grid.ReasonSavedMissing
		_, has := h.disk.has(c.CID)
		if from, reached := h.reaches(e.From); !has && reached {
			_, has = from.disk.has(c.CID)
		}
		if has {
			want := protocol.Seal{Task: e.Attempt.Task, Number: c.Number, Work: e.Work}
			why = h.world.states[c.CID].seal.Against(want)
		}
		if why == grid.ReasonNone {
			result.Saved = c.Number
			h.bases[e.Attempt] = h.world.states[c.CID].worked
			return result, []grid.Input{{CID: c.CID, Bytes: c.Bytes}}
		}
		refused := step.RefusedCheckpoint{Number: c.Number, Reason: why}
		result.Refused = append(result.Refused, refused)
	}
	return result, nil
}

// letGo keeps data no longer for an attempt or a job.
func (h *host) letGo(e step.LetGo) {
	owner := e.Attempt.String()
	if e.Attempt.Token == 0 {
		owner = jobPin(e.Attempt.Task.Job)
	}
	for _, cid := range e.CIDs {
		h.disk.letGo(cid, owner)
	}
}

// wentBack finds attempts that began behind the checkpoint that counted when they were awarded.
func (o *Oracle) wentBack(w *World) []Finding {
	var findings []Finding
	counted := make(map[grid.TaskID]time.Duration)
	wanted := make(map[grid.AttemptID]time.Duration)
	for _, n := range w.trace.Notes {
		id := n.Report.Attempt
		j := o.jobs[id.Task.Job]
		if j == nil || j.Mortal || !n.Broker {
			continue
		}
		switch n.Report.Event {
		case "checkpoint_counts":
			counted[id.Task] = w.states[stateCID(id, uint64(n.Report.Value))].worked
		case "awarded", "awarded_rival":
			wanted[id] = counted[id.Task]
		}
	}
	for _, id := range w.order {
		for _, at := range w.begunAt(id) {
			if began := w.trace.Begun[at]; began < wanted[at] {
				findings = append(findings, Finding{
					flawBack, id, at.Task.Job,
					fmt.Sprintf("%s began at %s, and %s counted", at, began, wanted[at]),
				})
			}
		}
	}
	return findings
}

// begunAt lists the attempts that ran at a site, each once.
func (w *World) begunAt(site grid.SiteID) (list []grid.AttemptID) {
	seen := make(map[grid.AttemptID]bool)
	for _, i := range w.trace.Intervals {
		if _, saves := w.trace.Begun[i.Attempt]; saves && i.Site == site && !seen[i.Attempt] {
			seen[i.Attempt] = true
			list = append(list, i.Attempt)
		}
	}
	return list
}
