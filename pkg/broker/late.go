package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// An attempt that was given up because its site was silent may have ended well there. Its
// result counts as long as no other has come: what has been computed is not computed again.
// That starts nothing, so no task runs twice for it; what was begun since is fenced off, and
// should the result not be had after all, the task rests until that has no lease any more.

// What can be begun no more, as its window or its reservation is over, waits for such a result.

// resultWait is the time in which a site that is heard again tells how attempts ended: longer
// than the longest pause between two words about an end.
const resultWait = 35 * time.Second

// lost notes that a task's attempt was given up at its site. One that has spoken of other things
// since it last spoke of the attempt is there, and has little to tell of it; so is another run
// that speaks for the site.
func (p *peers) lost(t *task) {
	other, known := p.all[t.site]
	if !known {
		return
	}
	other.lostAt = p.now
	if t.over || p.isAbandoned(t) || other.lastSeen.After(t.at.Add(p.cfg.Lease)) {
		other.backAt = p.now.Add(1)
	}
}

// mayBring reports whether an attempt of a task that was given up may still bring a result: it
// may have begun, and its site has not been there since, or only just now. Nobody waits longer
// than maxAway for that.
func (p *peers) mayBring(j *job, t *task) bool {
	if j.traits.passive || j.traits.whole {
		return false
	}
	return slices.ContainsFunc(t.tries, func(try Try) bool {
		begun := !try.StartedAt.IsZero() || !try.EndedAt.Before(j.traits.window.Earliest())
		since := latest(try.EndedAt, p.bootedAt)
		other, known := p.all[try.Site]
		if !try.Lost || !begun || !known || !p.now.Before(since.Add(maxAway)) {
			return false
		}
		back := other.backSince(since)
		return back.IsZero() || p.now.Before(back.Add(resultWait))
	})
}

// backSince is when a member was there again after a moment: it was heard, or has been connected
// silently; zero: not yet. One that takes work and never speaks of it is there as well.
func (p *member) backSince(at time.Time) time.Time {
	switch {
	case p.backAt.After(at):
		return p.backAt
	case p.connected:
		return latest(at, p.watched.since)
	}
	return timeZero
}

// lostTry finds the attempt that brings a good result after it was given up. Parts are none:
// they have all been started again. What a site has begun again itself it cannot keep apart
// from what it had ended.
func (l *jobs) lostTry(from grid.SiteID, msg protocol.Exited) (Try, bool) {
	j, t := l.task(msg.Attempt.Task)
	if t == nil || t.phase.Ended() || t.phase == grid.PhaseCollecting || j.traits.whole ||
		msg.Exit.Status() != 0 || j.missing(msg.Attempt.Task.Index, msg.Exit) != "" || t.isAt(from) {
		return Try{}, false
	}
	at := slices.IndexFunc(t.tries, func(try Try) bool {
		return try.Lost && try.Token == msg.Attempt.Token && try.Site == from
	})
	if at < 0 {
		return Try{}, false
	}
	return t.tries[at], true
}

// bringsNothing takes it that an attempt has ended without a result that counts: none is awaited
// of it any more.
func (r *run) bringsNothing(l *jobs, from grid.SiteID, id grid.AttemptID) {
	if j, t := l.task(id.Task); t != nil && t.bringsNothing(from, id.Token) {
		r.saveTask(j, id.Task.Index)
	}
}

func (t *task) bringsNothing(site grid.SiteID, token grid.Token) (changed bool) {
	for i := range t.tries {
		if try := &t.tries[i]; try.Lost && try.Site == site && try.Token == token {
			try.Lost, changed = false, true
		}
	}
	return changed
}

// isAt reports whether a site has the task now, or queues it.
func (t *task) isAt(site grid.SiteID) bool {
	queues := slices.ContainsFunc(t.rivals, func(r rival) bool { return r.site == site })
	return t.active() && (t.site == site || queues)
}

// recall makes an attempt that was given up the task's again: its result is here to be
// fetched.
func (m *Machine) recall(try Try, msg protocol.Exited) {
	j, t := m.jobs.task(msg.Attempt.Task)
	index := msg.Attempt.Task.Index
	until := m.rights.callOff(j, index, "stopped: an earlier attempt has brought the result")
	desk{m, j}.unwait(index)
	t.top = max(t.token, t.top)
	t.attempt = attempt{
		token: try.Token, site: try.Site, distance: try.Distance, awardedAt: try.AwardedAt,
		startedAt: try.StartedAt, leaseEnd: until, long: t.long, blamed: try.Blamed,
	}
	t.silence = silence{}
	m.report(step.LevelInfo, eventResultLate, msg.Attempt, try.Site)
	m.judge(j, t, msg)
	m.keep(j, index, msg.Exit)
	m.collect(j, index)
}

// callOff fences off what a task has at its site, and says until when that may still run.
func (r rights) callOff(j *job, index uint32, why string) (until time.Time) {
	t, id := &j.tasks[index], j.attempt(index)
	switch {
	case t.queued():
		for _, other := range t.rivals {
			r.fence(other.site, []grid.AttemptID{above(id.Task, t.top)})
		}
		t.rivals = nil
		r.stopTimer(timerRivals, id.Task.String())
	case t.active():
		r.fence(t.site, []grid.AttemptID{above(id.Task, id.Token)})
		r.stopTimer(timerLease, id.String())
		t.log(why, r.now)
		until = t.leaseEnd
	}
	return until
}
