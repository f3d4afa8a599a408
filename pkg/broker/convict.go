package broker

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A site whose result was outvoted has computed wrongly, by intent or not. It is blamed, passed
// over as after any breach, and trusted no more. What it has of this owner's tasks is taken away:
// they go on elsewhere, without what it has saved. Its results that nobody has confirmed are to be
// confirmed now, as long as their job goes on; of jobs that have ended they are reported, since
// somebody may have used them.

// convict draws the consequences of a result that was outvoted.
func (c comparison) convict(id grid.AttemptID, liar *task, right string) {
	site := liar.site
	text := fmt.Sprintf("wrong result: %s, and others agree on %s",
		liar.digest[:shortDigest], right[:shortDigest])
	c.m.out.Report(step.LevelWarn, eventOutvoted, step.Report{Attempt: id, Site: site, Text: text})
	c.m.peers.breach(site, liar.awardedAt, text)
	c.m.peers.blame(c.m.jobs, liar, fault.Wrong)
	c.m.saveTask(c.j, id.Task.Index)
	c.m.peers.distrust(site)
	if c.m.cfg.NoDisown {
		return
	}
	for _, other := range c.m.jobs.ids() {
		of := comparison{c.m, c.m.jobs.all[other]}
		if of.j.ended.IsZero() {
			of.disown(site)
		} else {
			of.reportUnconfirmed(site)
		}
	}
}

// disown takes everything of a job away from a site that has lied.
func (c comparison) disown(site grid.SiteID) {
	j, taken := c.j, false
	delete(j.offers, site)
	for i := range j.tasks {
		t := &j.tasks[i]
		if old := t.disown(site); len(old) > 0 {
			c.m.letGo(j.taskID(uint32(i)), old)
			c.m.saveTask(j, uint32(i))
		}
		if t.awaitsNothing(site) {
			c.m.saveTask(j, uint32(i))
		}
		if t.site == site && t.active() && !t.queued() && !j.traits.passive && !j.traits.whole {
			c.takeAway(uint32(i))
			taken = true
		}
	}
	for first := range j.of {
		if c.isUnconfirmed(first, site) {
			c.reopen(first)
			taken = true
		}
	}
	if taken {
		c.m.compare = append(c.m.compare, j.id)
	}
}

// awaitsNothing takes it that attempts of a task that were given up at a site neither come back nor
// bring a result any more, and reports whether one could have.
func (t *task) awaitsNothing(site grid.SiteID) (changed bool) {
	if t.returnable() && t.site == site {
		t.silence, changed = silence{}, true
	}
	for i := range t.tries {
		if try := &t.tries[i]; try.Lost && try.Site == site {
			try.Lost, changed = false, true
		}
	}
	return changed
}

// takeAway moves a task from a site that has lied. Its attempt may hold a lease: nothing else of
// the task is started before that has ended, also after a restart.
func (c comparison) takeAway(index uint32) {
	const why = "taken away: its site has given a wrong result"
	t := &c.j.tasks[index]
	c.m.rights.callOff(c.j, index, why)
	t.top = max(t.top, t.token) + 1
	t.remember(t.site)
	c.m.requeue(c.j, index)
}

// isUnconfirmed reports whether the result of a task is that of a site alone.
func (c comparison) isUnconfirmed(first uint32, site grid.SiteID) bool {
	head := &c.j.tasks[first]
	if head.chosen == 0 || !c.j.traits.copies.Compares() {
		return false
	}
	return c.j.tasks[c.j.stands(first)].site == site && len(c.j.ballot(first, false).best) == 1
}

// reopen takes back that a task has its result: another site is to confirm it first.
func (c comparison) reopen(first uint32) {
	head := &c.j.tasks[first]
	if c.j.hasFailed(first) {
		c.j.failed--
	}
	head.chosen, head.doubted = 0, true
	c.m.saveTask(c.j, first)
	c.j.pending = append(c.j.pending, first)
	c.m.out.Report(step.LevelWarn, eventReopened, step.Report{
		Attempt: c.j.attempt(first), Site: c.m.cfg.Here,
		Text: "its result is that of a site that has given a wrong one",
	})
}

// reportUnconfirmed says which results of a job that has ended are those of a site alone that has
// lied.
func (c comparison) reportUnconfirmed(site grid.SiteID) {
	for first := range c.j.of {
		if c.isUnconfirmed(first, site) {
			c.m.out.Report(step.LevelWarn, eventUnconfirmed, step.Report{
				Attempt: c.j.attempt(first), Site: site,
				Text: "delivered, and its site has given a wrong result since",
			})
		}
	}
}
