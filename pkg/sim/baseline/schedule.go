package baseline

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

// Run is one share of one copy of a job on a site. All shares of a copy have the same times.
type Run struct {
	Job   int            // its place in the list of jobs
	Copy  int            // 0 for the first
	Site  int            // its place in the grid
	Took  grid.Resources // from Begin to End
	Begin time.Duration  // its site's resources are its own, and its input is sent
	Start time.Duration  // its input has come, and it executes
	End   time.Duration  // its output has gone
	// Failed says that a site of the copy failed at End, which may be before Start would have been.
	Failed bool
}

// Schedule gives the jobs of a grid their places, and returns what ran, in the order of Begin.
// Jobs that no site is large enough for, that the policy does not admit, or for which the grid had
// no place before its End, have no Run; jobs are tried in the order of the list, which is that of
// their submission.
func Schedule(g Grid, p Policy, jobs []Job) ([]Run, error) {
	if err := g.validate(); err != nil {
		return nil, err
	}
	if err := p.validate(g); err != nil {
		return nil, err
	}
	for i, j := range jobs {
		if err := g.validateJob(j); err != nil {
			return nil, fmt.Errorf("job %d: %w", i, err)
		}
		if i > 0 && j.Submit < jobs[i-1].Submit {
			return nil, fmt.Errorf("%w: job %d is submitted before the one ahead of it",
				argument.ErrInvalid, i)
		}
	}
	s := newScheduler(g, p, jobs)
	for s.next() {
		if s.closed() {
			continue
		}
		if err := s.look(); err != nil {
			return nil, fmt.Errorf("at %v: %w", s.now, err)
		}
	}
	return s.runs, nil
}

// scheduler is a schedule that is made.
type scheduler struct {
	grid     Grid
	policy   Policy
	jobs     []Job
	sites    []*plan.Planner
	links    *links
	orders   [][]int          // of a job: the sites on which it is tried
	free     []grid.Resources // of a site, at now; no more than that is free for any time
	now      time.Duration
	arrived  int         // jobs[:arrived] are known
	queues   [][]replica // one for each number of a copy, in the order of submission
	turns    []turn      // of sites, still to come
	down     []bool      // of a site: it is
	running  endings
	due      []*active // running copies, in the order of their expected ends
	runs     []Run
	attempts uint32 // numbers of the planners' entries
}

// replica is one copy of a job.
type replica struct{ job, number int }

// active is a copy that runs.
type active struct {
	replica
	shares   []share
	executed bool          // its output is on its way
	next     time.Duration // when it has executed, or its output has come
	due      time.Duration // when it is expected to have ended
	runs     []int         // its shares in scheduler.runs
}

// share is the part of a site that a copy takes.
type share struct {
	site    int
	take    grid.Resources
	attempt grid.AttemptID // under which the site's planner has it
}

func newScheduler(g Grid, p Policy, jobs []Job) *scheduler {
	s := &scheduler{
		grid: g, policy: p, jobs: jobs, links: newLinks(g), queues: make([][]replica, p.Copies),
		free: make([]grid.Resources, len(g.Sites)), down: make([]bool, len(g.Sites)), turns: g.turns(),
	}
	for _, total := range g.Sites {
		s.sites = append(s.sites, plan.New(plan.Config{Total: total}))
	}
	chance := p.chance()
	for _, j := range jobs {
		order := p.order(g, j, chance)
		if p.Admit != nil && !p.Admit(j) {
			order = nil
		}
		s.orders = append(s.orders, order)
	}
	return s
}

// epoch is the planners' time at the start of a schedule.
func epoch() time.Time { return time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC) }

func (s *scheduler) clock() time.Time { return epoch().Add(s.now) }

// next goes on to the next instant at which something ends or is submitted, and takes note of all
// that does. It reports false when nothing is left to happen.
func (s *scheduler) next() bool {
	hopes := s.hopes()
	if s.arrived == len(s.jobs) && len(s.running) == 0 && !hopes {
		return false
	}
	s.now = longest * 4
	if len(s.turns) > 0 {
		s.now = s.turns[0].at
	}
	if s.arrived < len(s.jobs) {
		s.now = min(s.now, s.jobs[s.arrived].Submit)
	}
	if len(s.running) > 0 {
		s.now = min(s.now, s.running[0].next)
	}
	for len(s.running) > 0 && s.running[0].next <= s.now {
		s.proceed(s.running[0])
	}
	s.takeTurns()
	for ; s.arrived < len(s.jobs) && s.jobs[s.arrived].Submit <= s.now; s.arrived++ {
		for number := range s.queues {
			if len(s.orders[s.arrived]) > 0 {
				s.queues[number] = append(s.queues[number], replica{s.arrived, number})
			}
		}
	}
	for i, site := range s.sites {
		site.Advance(s.clock())
		s.free[i] = s.freeAt(i, s.now, s.now+1)
	}
	return true
}

// begin lets a copy run: its input is sent to all of its sites.
func (s *scheduler) begin(r replica, shares []share) error {
	j := s.jobs[r.job]
	a := &active{replica: r, shares: shares, due: s.now + s.span(r, shares, s.now)}
	start := s.now
	for _, sh := range shares {
		start = max(start, s.links.send(s.now, portion(j.In, sh.take, j.Need), j.Source, sh.site))
	}
	a.next = start + j.Run
	for i := range shares {
		if err := s.enter(&shares[i], s.now, a.due); err != nil {
			return fmt.Errorf("job %d: %w", r.job, err)
		}
		s.free[shares[i].site] = s.free[shares[i].site].Sub(shares[i].take)
		a.runs = append(a.runs, len(s.runs))
		s.runs = append(s.runs, Run{
			Job: r.job, Copy: r.number, Site: shares[i].site, Took: shares[i].take,
			Begin: s.now, Start: start,
		})
	}
	if s.policy.Copies > 1 {
		s.orders[r.job] = s.policy.others(s.grid, j.Need, s.orders[r.job], shares)
	}
	heap.Push(&s.running, a)
	at, _ := slices.BinarySearchFunc(s.due, a, func(x, y *active) int {
		return cmp.Compare(x.due, y.due)
	})
	s.due = slices.Insert(s.due, at, a)
	return nil
}

// proceed sends the output of a copy that has executed home, or ends one whose output has come.
func (s *scheduler) proceed(a *active) {
	if !a.executed {
		j := s.jobs[a.job]
		a.executed = true
		for _, sh := range a.shares {
			a.next = max(a.next, s.links.send(s.now, portion(j.Out, sh.take, j.Need), sh.site, j.Home))
		}
		heap.Fix(&s.running, 0)
		return
	}
	heap.Pop(&s.running)
	s.end(a)
}

// end takes a copy from its sites.
func (s *scheduler) end(a *active) {
	for i, sh := range a.shares {
		s.sites[sh.site].Release(sh.attempt)
		s.runs[a.runs[i]].End = s.now
	}
	s.due = slices.DeleteFunc(s.due, func(d *active) bool { return d == a })
}

// enter puts a share into its site's plan.
func (s *scheduler) enter(sh *share, from, to time.Duration) error {
	s.attempts++
	sh.attempt = grid.AttemptID{Task: grid.TaskID{Job: "baseline", Index: s.attempts}, Token: 1}
	return s.sites[sh.site].Commit(s.clock(), plan.Commitment{
		Attempt: sh.attempt, Give: sh.take, Class: plan.ClassFixTime,
		Start: epoch().Add(from), End: epoch().Add(to),
	}, 0)
}

// endings is a heap of running copies, in front the one that something happens to next; of one
// instant the first copies, in the order of their jobs.
type endings []*active

func (e *endings) Len() int { return len(*e) }
func (e *endings) Less(i, k int) bool {
	a, b := (*e)[i], (*e)[k]
	return cmp.Or(cmp.Compare(a.next, b.next), cmp.Compare(a.number, b.number),
		cmp.Compare(a.job, b.job)) < 0
}
func (e *endings) Swap(i, k int) { (*e)[i], (*e)[k] = (*e)[k], (*e)[i] }
func (e *endings) Push(a any)    { *e = append(*e, a.(*active)) }
func (e *endings) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
