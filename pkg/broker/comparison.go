package broker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Results of a task's copies are compared when all that ended in a Step is known. A result counts
// when as many sites as are needed have given it. Where they cannot any more, a further copy is
// begun, up to the most that a task may have. Who was outvoted has lied: see convict.go.

// comparison is about the copies of one job's tasks.
type comparison struct {
	m *Machine
	j *job
}

// compareNext compares what is to be compared in the next job, and reports whether there was one.
func compareNext(m *Machine) bool {
	if len(m.compare) == 0 {
		return false
	}
	id := m.compare[0]
	m.compare = m.compare[1:]
	if j, known := m.jobs.all[id]; known {
		comparison{m, j}.settle()
	}
	return true
}

// recount has the tasks looked at again of which all copies have ended and nothing was decided.
func (j *job) recount(r *run) {
	for first := range j.of {
		if !j.tasks[first].isRuled() && j.ballot(first, false).open == 0 {
			j.pending = append(j.pending, first)
		}
	}
	if len(j.pending) > 0 {
		r.compare = append(r.compare, j.id)
	}
}

// settle decides on the tasks of which copies have ended.
func (c comparison) settle() {
	pending := c.j.pending
	c.j.pending = nil
	if !c.j.ended.IsZero() {
		return
	}
	slices.Sort(pending)
	for _, first := range slices.Compact(pending) {
		if !c.j.tasks[first].isRuled() {
			c.rule(first)
		}
	}
	if c.m.endIfDone(c.j); c.j.ended.IsZero() {
		c.m.placeAgain(c.j)
	}
}

// ballot counts the results of a task's copies.
type ballot struct {
	best   []uint32 // copies whose result most sites have given; as many: the one heard of first
	votes  []uint32 // copies with a vote, ascending
	kinds  int      // different results
	open   int      // copies that may still bring one
	barren []uint32 // copies that have ended without one
}

// ballot counts them. A site has one vote, however many copies it had, unless all votes are alike.
func (r *roster) ballot(first uint32, alike bool) ballot {
	var n ballot
	same := make(map[string][]uint32)
	voted := make(map[grid.SiteID]bool)
	for _, i := range r.copies(first) {
		switch t := &r.tasks[i]; {
		case !t.phase.Ended():
			n.open++
		case !t.hasVoted():
			n.barren = append(n.barren, i)
		case !voted[t.site] || alike:
			voted[t.site] = true
			n.votes = append(n.votes, i)
			same[t.digest] = append(same[t.digest], i)
		}
	}
	n.kinds = len(same)
	for _, i := range n.votes {
		if with := same[r.tasks[i].digest]; len(with) > len(n.best) {
			n.best = with
		}
	}
	return n
}

// needed counts the sites that have to give the same result of a task.
func (c comparison) needed(first uint32) int {
	rule := c.j.traits.copies
	if rule.Draws() && !c.j.tasks[first].doubted || c.m.cfg.NoComparing {
		return 1
	}
	return int(rule.Agreed())
}

// rule decides on a task, begins further copies of it, or leaves it to those that are under way.
func (c comparison) rule(first uint32) {
	n, need := c.j.ballot(first, c.m.cfg.NoApart), c.needed(first)
	if need == 1 && len(n.votes) > 0 && c.doubts(first, n.votes[0]) {
		c.doubt(first)
		need = c.needed(first)
	}
	if need == 1 {
		c.ruleAlone(first, n)
		return
	}
	missing := need - len(n.best) - n.open
	switch {
	case len(n.best) >= need:
		c.choose(first, n.best[0], n)
	case missing <= 0: // those under way can bring it
	case len(n.votes) > 0 && !c.wasRefused(n) && c.rouse(first, missing):
	case n.open > 0: // they cannot bring it, and have to end
	case n.kinds == 1 && c.j.traits.copies.Draws(): // nobody was there to confirm it
		c.choose(first, n.best[0], n)
	default:
		c.give(first, c.disagreement(n, need))
	}
}

// ruleAlone decides on a task of which one result is enough: the first good one, or when there is
// none to come, another.
func (c comparison) ruleAlone(first uint32, n ballot) {
	good := slices.IndexFunc(n.votes, func(i uint32) bool {
		return c.j.tasks[i].phase == grid.PhaseDone
	})
	switch {
	case good >= 0:
		c.choose(first, n.votes[good], n)
	case n.open > 0:
	case len(n.votes) > 0:
		c.choose(first, n.votes[0], n)
	default:
		c.give(first, c.disagreement(n, 1))
	}
}

// wasRefused reports whether a copy found no place, and is not to wait for one.
func (c comparison) wasRefused(n ballot) bool {
	return slices.ContainsFunc(n.barren, func(i uint32) bool {
		return c.j.tasks[i].phase == grid.PhaseRefused
	})
}

// doubts reports whether chance wants the result of a site to be confirmed, and somebody could.
func (c comparison) doubts(first, copied uint32) bool {
	rule, site := c.j.traits.copies, c.j.tasks[copied].site
	return rule.Draws() && c.m.peers.doubts(c.j.taskID(first), site, rule) &&
		c.hasOther(first, site)
}

// hasOther reports whether a site other than those that had a task may take it, now or later.
func (c comparison) hasOther(first uint32, site grid.SiteID) bool {
	used := append(c.j.usedBy(first), site)
	for _, other := range sortedSites(c.j.answers) {
		if c.m.peers.reachable(other) && !c.j.answers[other].neverFits() &&
			!slices.Contains(used, other) {
			return true
		}
	}
	return false
}

// doubt notes that a result is to be confirmed.
func (c comparison) doubt(first uint32) {
	c.j.tasks[first].doubted = true
	c.m.saveTask(c.j, first)
}

// rouse begins as many further copies of a task as it may, and reports whether it has begun one.
func (c comparison) rouse(first uint32, copies int) bool {
	some := false
	for range copies {
		i, roused := c.j.rouse(first)
		if !roused {
			break
		}
		some = true
		c.m.saveTask(c.j, i)
		c.m.out.Report(step.LevelInfo, eventCopyBegun, step.Report{
			Attempt: grid.AttemptID{Task: c.j.taskID(i)}, Site: c.m.cfg.Here,
			Value: float64(i/c.j.of + 1),
		})
	}
	return some
}

// pairUp begins a second copy of tasks that were just awarded, where chance wants their results to
// be confirmed and the user wants that to take no longer.
func (c comparison) pairUp(awarded []uint32) {
	if !c.j.traits.copies.Auto {
		return
	}
	for _, i := range awarded {
		if i < c.j.of && !c.j.tasks[i].doubted && c.doubts(i, i) {
			c.doubt(i)
			c.rouse(i, c.needed(i)-len(c.j.copies(i)))
		}
	}
}

// choose makes the result of a copy that of its task. Other copies are called off; who has
// confirmed it has earned trust, who gave another result where several agreed has lied.
func (c comparison) choose(first, chosen uint32, n ballot) {
	j, head, winner := c.j, &c.j.tasks[first], &c.j.tasks[chosen]
	head.chosen = (chosen-first)/j.of + 1
	if winner.phase == grid.PhaseFailed {
		j.failed++
	}
	c.callOffOthers(first)
	c.m.saveTask(j, first)
	c.m.reportEnd(grid.AttemptID{Task: j.taskID(first), Token: winner.token}, winner)
	if len(n.best) < int(j.traits.copies.Agreed()) || !j.traits.copies.Compares() {
		c.m.peers.praise(winner)
		return
	}
	for _, i := range n.votes {
		t := &j.tasks[i]
		if slices.Contains(n.best, i) {
			c.m.peers.vouch(t.site)
			c.m.peers.praise(t)
			continue
		}
		t.outvoted = true
		c.convict(j.attempt(i), t, winner.digest)
	}
}

// callOffOthers ends the copies of a task that nobody needs any more.
func (c comparison) callOffOthers(first uint32) {
	const why = "another copy has brought the result"
	for _, i := range c.j.copies(first) {
		t := &c.j.tasks[i]
		if t.phase.Ended() {
			continue
		}
		if t.phase == grid.PhaseCollecting {
			c.m.stopTimer(timerCollect, c.j.attempt(i).String())
			c.m.rights.acknowledge(t.site, c.j.attempt(i))
		}
		c.m.rights.callOff(c.j, i, why)
		t.exit = &grid.Exit{Cause: grid.CauseStopped, Text: why}
		c.m.endTask(c.j, i, grid.PhaseCancelled)
	}
}

// give ends a task without a result.
func (c comparison) give(first uint32, why grid.Exit) {
	head := &c.j.tasks[first]
	head.ruling = &why
	c.j.failed++
	c.callOffOthers(first)
	c.m.saveTask(c.j, first)
	c.m.out.Report(step.LevelWarn, eventNoAgreement, step.Report{
		Attempt: grid.AttemptID{Task: c.j.taskID(first)}, Site: c.m.cfg.Here, Text: why.Text,
	})
}

// disagreement says why a task has no result: the reason of a copy if none has brought one, else
// who says what.
func (c comparison) disagreement(n ballot, need int) grid.Exit {
	reason := ""
	if len(n.barren) > 0 {
		if why := c.j.tasks[n.barren[len(n.barren)-1]].exit; why != nil && len(n.votes) == 0 {
			return *why
		} else if why != nil {
			reason = "; another copy: " + why.Text
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "no %d of %d copies agree%s", need, len(n.votes)+len(n.barren), reason)
	for _, i := range n.votes {
		t := &c.j.tasks[i]
		name := cmp.Or(desk(c).name(t.site), string(t.site))
		fmt.Fprintf(&text, "; copy %d at %s: %s", i/c.j.of+1, name, t.digest[:shortDigest])
	}
	said := text.String()
	said = strings.ToValidUTF8(said[:min(len(said), maxRuling)], "")
	return grid.Exit{Cause: grid.CauseStopped, Text: said}
}

const (
	shortDigest = 12   // digits of a digest that people are shown
	maxRuling   = 1000 // bytes of an Exit's text
)
