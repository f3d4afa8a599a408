package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// content holds what the jobs of a group need beside their facts: inputs, modules, results,
// checkpoints. Who acts has all of it and asks the other members to keep it as well. What a site
// has computed counts when one more member has it (rule 17).
type content struct {
	jobs    map[grid.JobID]map[grid.CID]bool // wanted, where this agent acts
	held    map[grid.JobID]bool              // of which something is pinned here
	kept    map[grid.SiteID]map[grid.CID]bool
	refused map[grid.SiteID]map[grid.CID]pause        // by members that could not keep it
	absent  map[grid.CID]absence                      // wanted here, but no member could give it
	dropped map[grid.SiteID]map[grid.JobID][]grid.CID // members are to be told of it
	asked   map[uint64]keeping
	number  uint64
}

// pause lasts until something is tried again. It is twice as long each time.
type pause struct {
	until time.Time
	long  time.Duration
}

// absence stands for data that a job needs and that is not here.
type absence struct {
	job grid.JobID
	pause
}

// keeping is a Keep that was sent.
type keeping struct {
	site grid.SiteID
	cids []grid.CID
	at   time.Time
	done func(problem string) // when it is answered; nil: nobody waits
}

// Pauses and bounds of keeping.
const (
	keepWithin = 10 * time.Second // a Keep that is not answered by then is sent again
	keepAgain  = 10 * time.Minute // the longest pause of one that could not
	keepRounds = 16               // questions to one member at a time
)

func newContent() content {
	return content{
		jobs: map[grid.JobID]map[grid.CID]bool{}, held: map[grid.JobID]bool{},
		kept:    map[grid.SiteID]map[grid.CID]bool{},
		refused: map[grid.SiteID]map[grid.CID]pause{}, absent: map[grid.CID]absence{},
		dropped: map[grid.SiteID]map[grid.JobID][]grid.CID{},
		asked:   map[uint64]keeping{},
	}
}

// next is the pause after this one: a member that was out of reach for a moment is asked again
// soon, one without room seldom.
func (p pause) next(now time.Time) pause {
	long := min(max(2*p.long, keepWithin), keepAgain)
	return pause{until: now.Add(long), long: long}
}

// boot notes what the jobs need that are taken up, and fetches what is not here. It lets go of what
// they need no more: who acted before may have had no time to say so.
func (c *content) boot(g *jobs) {
	m := g.seen()
	if m == nil {
		return
	}
	for _, id := range m.Jobs() {
		g.known(m, id)
		needed := m.Data(id)
		for _, cid := range g.a.pins.keepOnly(jobOwner(id), needed) {
			g.stock.drop(id, cid)
		}
		c.want(g, id, needed...)
	}
}

// want notes what a job needs, pins it, and fetches what other members have of it.
func (c *content) want(g *jobs, id grid.JobID, cids ...grid.CID) {
	if len(cids) == 0 {
		return
	}
	if c.jobs[id] == nil {
		c.jobs[id] = map[grid.CID]bool{}
	}
	var missing []grid.CID
	for _, cid := range cids {
		c.jobs[id][cid] = true
		if !g.a.data.Has(cid) {
			missing = append(missing, cid)
		}
	}
	c.held[id] = true
	g.a.pins.hold(jobOwner(id), cids...)
	if others := g.others(); len(missing) > 0 && len(others) > 0 {
		g.a.spawn(func() {
			for _, cid := range missing {
				if err := g.fetch(cid, others); err == nil {
					g.a.pins.hold(jobOwner(id), cid)
					continue
				}
				g.soon(func() {
					c.absent[cid] = absence{id, c.absent[cid].next(g.clock.now())}
				})
			}
		})
	}
}

// seek fetches what no member could give before.
func (c *content) seek(g *jobs, now time.Time) {
	for _, cid := range slices.Sorted(maps.Keys(c.absent)) {
		switch a := c.absent[cid]; {
		case g.a.data.Has(cid) || !c.jobs[a.job][cid]:
			delete(c.absent, cid)
		case !now.Before(a.until):
			a.until = now.Add(collectTimeout) // of this fetch
			c.absent[cid] = a
			c.want(g, a.job, cid)
		}
	}
}

func (j *jobs) fetch(cid grid.CID, from []grid.SiteID) error {
	ctx, cancel := context.WithTimeout(j.a.ctx, collectTimeout)
	defer cancel()
	_, err := j.a.data.Fetch(ctx, cid, from, nil)
	return err
}

// discard forgets what only who acts has to know.
func (c *content) discard(*jobs) {
	held := c.held
	*c = newContent()
	c.held = held
}

// hold keeps a submission's data here and at the other members, or lets it go.
func (c *content) hold(g *jobs, e step.Hold) {
	if !e.Release {
		g.a.readers.belong(jobOwner(e.Job), g.owner)
		c.want(g, e.Job, e.CIDs...)
		c.look(g)
		return
	}
	g.a.release(e.Job)
	delete(c.jobs, e.Job)
	delete(c.held, e.Job)
	for _, site := range g.others() {
		delete(c.dropped[site], e.Job)
		c.say(g, site, protocol.Keep{Job: e.Job, Release: true})
	}
}

// drop keeps checkpoints no longer that later ones have replaced, here, and, when they are told,
// at the other members.
func (c *content) drop(g *jobs, e step.LetGo) {
	id := e.Attempt.Task.Job
	g.a.letGo(e)
	for _, cid := range e.CIDs {
		g.stock.drop(id, cid)
		delete(c.jobs[id], cid)
		delete(c.absent, cid)
	}
	for _, site := range g.others() {
		for _, cid := range e.CIDs {
			delete(c.kept[site], cid)
			delete(c.refused[site], cid)
		}
		if c.dropped[site] == nil {
			c.dropped[site] = map[grid.JobID][]grid.CID{}
		}
		// What a member that is away never hears of goes when the job ends.
		list := append(c.dropped[site][id], e.CIDs...)
		c.dropped[site][id] = list[max(len(list)-protocol.MaxKeepCIDs, 0):]
	}
}

// tellDropped tells a member what it need not keep any more.
func (c *content) tellDropped(g *jobs, site grid.SiteID) {
	for _, id := range slices.Sorted(maps.Keys(c.dropped[site])) {
		c.say(g, site, protocol.Keep{Job: id, Dropped: c.dropped[site][id]})
	}
	delete(c.dropped, site)
}

// collect fetches the outputs of a task; they count when one more member has them.
func (c *content) collect(g *jobs, e step.Collect) {
	g.a.spawn(func() {
		answer := g.a.collect(e)
		job := e.Attempt.Task.Job
		if answer.Problem != "" || len(e.Outputs) == 0 {
			g.tell(answer)
			return
		}
		g.soon(func() {
			c.share(g, job, e.Outputs, func(problem string) {
				answer.Problem, answer.Local = problem, problem != ""
				g.tell(answer)
			})
		})
	})
}

// pull fetches a checkpoint; it counts when one more member has it.
func (c *content) pull(g *jobs, e step.Pull) {
	g.a.spawn(func() {
		answer := g.a.pull(e)
		if answer.Problem != "" || answer.Reason != grid.ReasonNone {
			g.tell(answer)
			return
		}
		g.soon(func() {
			c.share(g, e.Attempt.Task.Job, []grid.CID{answer.CID}, func(problem string) {
				answer.Problem = problem
				g.tell(answer)
			})
		})
	})
}

// share asks the other members to keep what was fetched, and goes on when one of them has
// it, or none of them can.
func (c *content) share(g *jobs, id grid.JobID, cids []grid.CID, done func(problem string)) {
	c.want(g, id, cids...)
	var asked []grid.SiteID
	for _, site := range g.others() {
		if g.a.around.has(site) {
			asked = append(asked, site)
		}
	}
	if g.alone() {
		done("")
		return
	}
	if len(asked) == 0 {
		done("no standby can be reached that would keep it, too")
		return
	}
	open, over := len(asked), false
	for _, site := range asked {
		c.ask(g, site, id, cids, func(problem string) {
			open--
			if over || problem != "" && open > 0 {
				return
			}
			over = true
			if problem == noAnswer {
				done("no standby has answered that it keeps it, too")
				return
			}
			if problem != "" {
				g.a.reports.count("kept_by_one")
			}
			done("")
		})
	}
}

// noAnswer is the problem of a Keep that was not answered.
const noAnswer = "no answer"

// ask sends a Keep.
func (c *content) ask(
	g *jobs, site grid.SiteID, id grid.JobID, cids []grid.CID, done func(problem string),
) {
	c.say(g, site, protocol.Keep{Job: id, CIDs: cids})
	c.asked[c.number] = keeping{site: site, cids: cids, at: g.clock.now(), done: done}
}

// say sends a member a Keep with the next number, and, unless all is released, with the sites that
// may have the data.
func (c *content) say(g *jobs, site grid.SiteID, m protocol.Keep) {
	c.number++
	m.Owner, m.Number = g.owner, c.number
	if !m.Release {
		awarded := g.a.readers.admitted(jobOwner(m.Job))
		m.Awarded = awarded[:min(len(awarded), protocol.MaxKeepSites)]
	}
	g.a.sendQuietly(site, m)
}

// onKept takes a member's answer.
func (c *content) onKept(g *jobs, from grid.SiteID, m protocol.Kept) {
	q, known := c.asked[m.Number]
	if !known || q.site != from {
		return
	}
	delete(c.asked, m.Number)
	for _, cid := range q.cids {
		if m.Problem == "" {
			note(c.kept, from, cid, true)
			delete(c.refused[from], cid)
		} else {
			note(c.refused, from, cid, c.refused[from][cid].next(g.clock.now()))
		}
	}
	if m.Problem != "" {
		g.log.Debug("a standby keeps no copy", "site", string(from), "problem", m.Problem)
	}
	if q.done != nil {
		q.done(m.Problem)
	}
}

func note[V any](table map[grid.SiteID]map[grid.CID]V, site grid.SiteID, cid grid.CID, v V) {
	if table[site] == nil {
		table[site] = map[grid.CID]V{}
	}
	table[site][cid] = v
}

// look asks connected members for what they do not keep yet.
func (c *content) look(g *jobs) {
	if !g.acts() || g.alone() {
		return
	}
	now := g.clock.now()
	c.seek(g, now)
	open := map[grid.SiteID]int{}
	waits := map[grid.SiteID]map[grid.CID]bool{}
	for number, q := range c.asked {
		if now.Sub(q.at) < keepWithin {
			open[q.site]++
			for _, cid := range q.cids {
				note(waits, q.site, cid, true)
			}
			continue
		}
		delete(c.asked, number)
		if q.done != nil {
			q.done(noAnswer)
		}
	}
	others := g.others()
	maps.DeleteFunc(c.dropped, func(site grid.SiteID, _ map[grid.JobID][]grid.CID) bool {
		return !slices.Contains(others, site)
	})
	for _, site := range others {
		if !g.a.around.has(site) {
			delete(c.kept, site) // it says again what it has when it is back
			continue
		}
		c.tellDropped(g, site)
		for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
			lacks := c.lacking(site, id, now, waits[site])
			if len(lacks) > 0 && open[site] < keepRounds {
				open[site]++
				c.ask(g, site, id, lacks[:min(len(lacks), protocol.MaxKeepCIDs)], nil)
			}
		}
	}
}

// lacking lists what a member is to be asked to keep of a job. What it could not keep is asked for
// alone: one file that is too large must not keep the others away.
func (c *content) lacking(
	site grid.SiteID, id grid.JobID, now time.Time, waits map[grid.CID]bool,
) (lacks []grid.CID) {
	var again []grid.CID
	for _, cid := range slices.Sorted(maps.Keys(c.jobs[id])) {
		p, refused := c.refused[site][cid]
		switch {
		case c.kept[site][cid] || waits[cid]:
		case !refused:
			lacks = append(lacks, cid)
		case !now.Before(p.until):
			again = append(again, cid)
		}
	}
	if len(lacks) == 0 && len(again) > 0 {
		return again[:1]
	}
	return lacks
}

// given reports whether the owner's agent has all that this one has.
func (c *content) given(g *jobs) bool {
	for id := range c.jobs {
		for cid := range c.jobs[id] {
			_, refused := c.refused[g.owner][cid]
			if !c.kept[g.owner][cid] && !refused && g.a.data.Has(cid) {
				return false
			}
		}
	}
	return true
}
