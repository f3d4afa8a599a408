package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// border tells the border's machine of the jobs that other domains have ordered.
type border struct {
	*run
	peers *peers
	jobs  *jobs
	told  map[grid.JobID]tidings
	order []grid.JobID // of told, ascending
}

// tidings holds what was told of a job last.
type tidings struct {
	phase  grid.Phase
	done   int64
	reason grid.Reason
}

// watch follows a job from now on.
func (b *border) watch(j *job) {
	if at, has := slices.BinarySearch(b.order, j.id); j.ordered.Foreign() && !has {
		b.order = slices.Insert(b.order, at, j.id)
		b.told[j.id] = tidings{}
	}
}

// onCeiling takes until when leases of an ordered job may last.
func (b *border) onCeiling(in step.Ceiling) {
	if j := b.jobs.all[in.Job]; j != nil && j.ordered.Foreign() {
		j.ceiling = in.Until
	}
}

// tell tells what has changed in this Step. What has ended is told once, and once more by a later
// run.
func (b *border) tell() {
	gone := func(id grid.JobID) bool {
		j := b.jobs.all[id]
		if j == nil {
			delete(b.told, id)
			return true
		}
		t := &j.tasks[0]
		now := tidings{phase: t.phase, done: t.done, reason: t.standing}
		if b.told[id] != now {
			b.told[id] = now
			b.out.Emit(step.TellBorder{News: b.news(j, t)})
		}
		return false
	}
	if len(b.order) > 0 {
		b.order = slices.DeleteFunc(b.order, gone)
	}
}

func (b *border) news(j *job, t *task) step.OrderNews {
	news := step.OrderNews{
		Ref: j.ordered.Ref, Job: j.id, Phase: t.phase, Done: t.done, Total: t.total,
		Reason: t.standing, Exit: t.exit,
	}
	if !t.startedAt.IsZero() {
		news.StartedAgo = max(b.now.Sub(t.startedAt), 0)
	}
	if !t.phase.Ended() {
		news.Exit = nil // its outputs are on their way
	}
	return news
}

// probed tells what was found for a neighbour: the nearest offer and for how many tasks there are
// any, or why there is none.
func (b *border) probed(j *job) {
	if !j.ordered.Foreign() {
		return
	}
	news := step.OrderNews{Ref: j.ordered.Ref, Job: j.id, Probed: true}
	standing := b.peers.standing(j)
	for i, c := range standing {
		if i == 0 {
			offer := c.offer
			news.Offer = &offer
		}
		news.Tasks = min(news.Tasks+c.left, grid.MaxTasks)
	}
	if len(standing) == 0 {
		news.Refusal = j.mostSaid()
	}
	b.out.Emit(step.TellBorder{News: news})
}

// mostSaid is the first of the most frequent reasons that sites gave, without amounts; never, only
// if all of them say so.
func (e *enquiry) mostSaid() *grid.Refusal {
	given, never := make(map[grid.Reason]int), len(e.answers) > 0
	for _, site := range sortedSites(e.answers) {
		a := e.answers[site]
		given[a.Refusal.Reason]++
		never = never && a.neverFits()
	}
	delete(given, grid.ReasonNone)
	best := grid.Refusal{Reason: grid.ReasonFull, Never: never}
	most := 0
	for why := grid.ReasonNone + 1; why <= grid.ReasonFull; why++ {
		if given[why] > most {
			best.Reason, most = why, given[why]
		}
	}
	return &best
}
