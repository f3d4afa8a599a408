package broker

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A task that runs in several copies has a place in the roster for each of them. Copy c of task i,
// both counted from 0, is number c*of+i there, and to all sites: each copy is to the core a task
// like any other, with fencing tokens, leases, checkpoints and facts of its own, and no two
// attempts of it run at the same time. What copies have in common is decided in comparison.go.

// copying holds what a copy knows of being one. What is about all copies of a task stands with the
// first.
type copying struct {
	idle     bool   // a further copy that nobody needs yet; it has ended, so to say
	outvoted bool   // its result is not what others have agreed on
	digest   string // of its result, see vote; no fact

	// Of the first copy.
	chosen  uint32     // 1 + number of the copy whose result counts; 0: none does yet
	doubted bool       // chance wants another site to confirm the result
	ruling  *grid.Exit // there is no result, and why
}

// newRoster has all tasks of a job, with the copies that each begins with.
func newRoster(spec grid.Job) roster {
	r := roster{}
	if spec.Redundancy.Several() {
		r.of = spec.Count
	}
	n := spec.Count * spec.Redundancy.First()
	r.tasks, r.open = make([]task, n), int(n)
	for i := range r.tasks {
		r.tasks[i].move(grid.PhaseWaiting)
		r.waiting = append(r.waiting, uint32(i))
	}
	return r
}

// heads counts the tasks, without further copies: they come first.
func (r *roster) heads() uint32 {
	if r.of > 0 {
		return r.of
	}
	return uint32(len(r.tasks))
}

// first is the first copy of the task of which one is a copy.
func (r *roster) first(index uint32) uint32 {
	if r.of == 0 {
		return index
	}
	return index % r.of
}

// copyOf names, in an award, the first copy: 1 + its place; 0 for the first one itself.
func (r *roster) copyOf(index uint32) uint32 {
	if index < r.heads() {
		return 0
	}
	return r.first(index) + 1
}

// copies lists the copies of a task that there are, idle ones left out, ascending.
func (r *roster) copies(first uint32) []uint32 {
	if r.of == 0 {
		return []uint32{first}
	}
	var all []uint32
	for i := first; i < uint32(len(r.tasks)); i += r.of {
		if !r.tasks[i].idle {
			all = append(all, i)
		}
	}
	return all
}

// mayHave reports whether a job can have so many copies.
func (j *job) mayHave(index uint32) bool {
	return j.of > 0 && index < j.of*j.traits.copies.Most()
}

// grow makes places for copies, up to a number. They are idle.
func (r *roster) grow(index uint32) {
	for uint32(len(r.tasks)) <= index {
		more := make([]task, r.of)
		for i := range more {
			more[i].move(grid.PhaseCancelled)
			more[i].idle = true
		}
		r.tasks = append(r.tasks, more...)
	}
}

// rouse lets a further copy of a task wait for a site, unless it has as many as it may have.
func (j *job) rouse(first uint32) (index uint32, roused bool) {
	for index = first; index < uint32(len(j.tasks)); index += j.of {
		if j.tasks[index].idle {
			break
		}
	}
	if !j.mayHave(index) {
		return 0, false
	}
	j.grow(index)
	j.tasks[index].idle = false
	j.open++
	j.wait(index)
	j.placed = false
	return index, true
}

// isRuled reports whether it is decided what came of a task.
func (c *copying) isRuled() bool { return c.chosen > 0 || c.ruling != nil }

// hasFailed reports whether it is decided that a task has failed.
func (r *roster) hasFailed(first uint32) bool {
	head := &r.tasks[first]
	if head.chosen == 0 {
		return head.ruling != nil
	}
	return r.tasks[r.stands(first)].phase == grid.PhaseFailed
}

// stands is the copy that stands for a task: the one whose result counts, else the one that is
// farthest on its way, else one that was called off.
func (r *roster) stands(first uint32) uint32 {
	if r.of == 0 {
		return first
	}
	if c := r.tasks[first].chosen; c > 0 {
		return first + (c-1)*r.of
	}
	best := first
	for _, i := range r.copies(first) {
		t, b := &r.tasks[i], &r.tasks[best]
		switch {
		case !t.phase.Ended() && (b.phase.Ended() || t.phase > b.phase):
			best = i
		case t.phase.Ended() && b.phase.Ended() && !t.hasVoted() && b.hasVoted():
			best = i
		}
	}
	return best
}

// phaseOf tells how far a task is, whatever its copies do.
func (r *roster) phaseOf(first uint32) grid.Phase {
	if r.of > 0 && r.tasks[first].ruling != nil {
		return grid.PhaseFailed
	}
	return r.tasks[r.stands(first)].phase
}

// hasVoted reports whether a copy has brought a result, a failure of its own doing included.
func (t *task) hasVoted() bool {
	return (t.phase == grid.PhaseDone || t.phase == grid.PhaseFailed) &&
		t.exit != nil && t.exit.Cause.Final()
}

// vote works out the digest by which a copy's result is compared.
func (t *task) vote() {
	if t.exit != nil {
		t.digest = t.exit.ResultDigest()
	}
}

// work is one of a job's tasks as its site runs it. A copy is like the first, by another name.
func (e *enquiry) work(index uint32) grid.Task {
	t := e.spec.Spec.Expand(e.id, index%e.spec.Count, e.item(index))
	t.ID.Index = index
	return t
}

// parcels divides what a site is given: a copy of a task that knows its place in the array comes
// with a template in which that stands already. A site that knows of no copies runs it as well.
func (j *job) parcels(h handover) []handover {
	_, indexed := h.spec.FillIndex(0)
	at := slices.IndexFunc(h.tasks, func(i uint32) bool { return i >= j.heads() })
	if at < 0 || !indexed {
		return []handover{h}
	}
	var all []handover
	copies := h.tasks[at:] // they come last
	if h.tasks = h.tasks[:at:at]; at > 0 {
		all = append(all, h)
	}
	for _, i := range copies {
		one := h
		one.spec, _ = h.spec.FillIndex(j.first(i))
		one.tasks = []uint32{i}
		all = append(all, one)
	}
	return all
}

// usedBy lists the sites that another copy of a task has, has had a result of, or may still get
// one of.
func (r *roster) usedBy(index uint32) []grid.SiteID {
	var sites []grid.SiteID
	for _, i := range r.copies(r.first(index)) {
		t := &r.tasks[i]
		if i == index {
			continue
		}
		if t.active() || t.silent || t.phase == grid.PhaseCollecting || t.hasVoted() {
			sites = append(sites, t.site)
		}
		for _, try := range t.tries {
			if try.Lost {
				sites = append(sites, try.Site)
			}
		}
	}
	return sites
}

// savedElsewhere reports whether a site would go on from what another one has saved.
func (s *savings) savedElsewhere(site grid.SiteID) bool {
	return slices.ContainsFunc(s.counted, func(c counted) bool { return c.site != site })
}

// disown lists the checkpoints that a site has taken, and those that were taken later, and
// forgets them.
func (s *savings) disown(site grid.SiteID) (old []grid.CID) {
	for i, last := range slices.Backward(s.counted) {
		if last.site != site {
			continue
		}
		for _, c := range s.counted[:i+1] {
			old = append(old, c.CID)
		}
		s.counted = slices.Clone(s.counted[i+1:])
		break
	}
	return old
}

// checkCopies verifies what must hold of copies between two Steps.
func (j *job) checkCopies() error {
	if j.of == 0 {
		return nil
	}
	if len(j.tasks)%int(j.of) != 0 || len(j.pending) > 0 && j.ended.IsZero() {
		return fmt.Errorf("%d places for copies of %d tasks, %d not looked at",
			len(j.tasks), j.of, len(j.pending))
	}
	for first := range j.of {
		head := &j.tasks[first]
		if head.chosen > 0 && j.tasks[j.stands(first)].exit == nil {
			return fmt.Errorf("task %d: copy %d counts and has no result", first, head.chosen)
		}
		for _, i := range j.copies(first) {
			t := &j.tasks[i]
			if head.isRuled() && !t.phase.Ended() {
				return fmt.Errorf("task %d is decided, and copy %d is %s", first, i/j.of+1, t.phase)
			}
		}
	}
	return nil
}

// copyFact is copying, as a part of taskFact.
type copyFact struct {
	Outvoted bool       `json:"outvoted,omitempty"`
	Chosen   uint32     `json:"chosen,omitempty"`
	Doubted  bool       `json:"doubted,omitempty"`
	Ruling   *grid.Exit `json:"ruling,omitempty"`
}

func (c *copying) copyFact() copyFact {
	return copyFact{Outvoted: c.outvoted, Chosen: c.chosen, Doubted: c.doubted, Ruling: c.ruling}
}

func (f copyFact) copying() copying {
	return copying{outvoted: f.Outvoted, chosen: f.Chosen, doubted: f.Doubted, ruling: f.Ruling}
}
