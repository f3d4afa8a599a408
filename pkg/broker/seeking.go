package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Before an attempt is ended to move its task, all sites are asked whether they would take it: by a
// probe, whose offers hold nothing. What they offer may be gone a moment later; then the task waits
// for a site with its state saved, and the one that it has left may take it, too.

// seek asks for offers for the tasks of a job that are to move and are not asked for yet, unless
// that is under way: then those that have come meanwhile are asked for after it.
func (m moves) seek(j *job) {
	if j.sought {
		return
	}
	var tasks []uint32
	for i := range j.tasks {
		switch t := &j.tasks[i]; {
		case t.moving.stage != moveSeeking || !t.active() || len(tasks) == maxPlaced:
		case m.can(j, t):
			tasks = append(tasks, uint32(i))
		default: // not now
			m.setTimer(timerMove, j.attempt(uint32(i)).String(), m.now.Add(moveLook))
		}
	}
	if len(tasks) == 0 {
		return
	}
	if m.cfg.NoSeeking {
		for _, i := range tasks {
			m.askLast(j, i)
		}
		return
	}
	p := &probe{job: m.scoutOf(j, tasks), seeks: j.id, tasks: tasks}
	m.probes.makeRoom(m.run)
	m.probes[p.id] = p
	j.sought = true
	m.herald.announce(p.job)
}

// scoutOf is a job of some tasks of another one, as far as sites have to know it to make offers.
func (m moves) scoutOf(j *job, tasks []uint32) *job {
	spec := j.spec
	spec.Count, spec.Items, spec.After = uint32(len(tasks)), nil, nil
	if len(j.spec.Items) > 0 {
		for _, i := range tasks {
			spec.Items = append(spec.Items, j.item(i))
		}
	}
	scout := makeJob(newProbeID(m.run), spec, m.now, &m.cfg)
	for k, i := range tasks {
		scout.tasks[k].counted = j.tasks[i].counted
	}
	scout.traits.moveWindow(spec.Spec.Window, m.ahead)
	scout.traits.probe, scout.how = true, &nearest{}
	m.herald.describe(scout)
	return scout
}

// found goes on with tasks for which all sites were asked: with as many as others offer to take.
func (m moves) found(p *probe) {
	standing := m.peers.standing(p.job)
	note := ""
	if refused := func(a Answer) bool { return a.Offer == nil }; p.hasAnswer(refused) {
		note = p.refusal()
	}
	j, known := m.jobs.all[p.seeks]
	if !known {
		return
	}
	j.sought = false
	for _, i := range p.tasks {
		t := &j.tasks[i]
		if t.moving.stage != moveSeeking || !m.can(j, t) {
			continue
		}
		at := slices.IndexFunc(standing, func(c *candidate) bool {
			return c.left > 0 && c.offer.Site != t.site
		})
		if at < 0 {
			m.stays(j, i, grid.ReasonNowhere, note)
			continue
		}
		standing[at].left--
		m.askLast(j, i)
	}
	m.seek(j)
}

// hasAnswer reports whether any site has answered so.
func (e *enquiry) hasAnswer(is func(Answer) bool) bool {
	return slices.ContainsFunc(sortedSites(e.answers), func(site grid.SiteID) bool {
		return is(e.answers[site])
	})
}
