package failing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/ckpt"
	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// Ending tells what became of a job. Times are seconds.
type Ending struct {
	Submit, End float64
	Work        float64 // run time without failures and checkpoints
	Held        float64 // time on resources
	Failures    int     // of resources while it ran there
	Checkpoints int
}

// Play lets the jobs run to their ends, and tells what became of them, in the order of their
// submission. The same arguments give the same endings.
func Play(r Resources, j Jobs, p Policy, seed uint64) ([]Ending, error) {
	if err := errors.Join(r.validate(), j.validate()); err != nil {
		return nil, err
	}
	if err := p.validate(j); err != nil {
		return nil, err
	}
	w := newWorld(r, j, p, seed)
	if err := w.run(mostEvents); err != nil {
		return nil, err
	}
	endings := make([]Ending, len(w.tasks))
	for i, t := range w.tasks {
		endings[i] = t.Ending
	}
	return endings, nil
}

// mostEvents bounds a play, in which a job that is too long for its resources never ends.
const mostEvents = 20_000_000

// run lets happen what happens until all tasks have ended, at most so many events.
func (w *world) run(most int) error {
	for range most {
		if w.open == 0 || w.err != nil {
			return w.err
		}
		w.next()
	}
	return fmt.Errorf("%w: %d of %d jobs have not ended after %.0f s: want resources that fail less "+
		"often, shorter jobs, or more checkpoints", argument.ErrUndefined, w.open, len(w.tasks), w.now)
}

// world is all there is, at one instant.
type world struct {
	jobs      Jobs
	policy    Policy
	resources []*resource
	tasks     []*task // in the order of their submission
	arrived   int     // tasks[:arrived] have been submitted
	queue     []*task // that wait for a resource, those that have failed ahead of others
	open      int     // tasks that have not ended
	// submitters count what fails; who they are makes no other difference.
	submitters []*submitter
	chance     *rand.Rand
	events     events
	now        float64
	number     int   // of the last event
	err        error // the first one
	up         ups
	ageing     ageing
	best       []*resource // of place
}

// task is a job on its way.
type task struct {
	Ending

	index    int
	saved    float64   // work that no failure takes away
	unsaved  float64   // work that is done, or will be at the next event
	resource *resource // on which it runs
	since    float64   // it runs there
	number   int       // of its next event; an earlier one was called off by a failure
	interval float64   // of MFCA; 0: it has just been placed
	lfca     ckpt.LFCA
}

// left is the work to be done.
func (t *task) left() float64 { return t.Work - t.saved - t.unsaved }

func newWorld(r Resources, j Jobs, p Policy, seed uint64) *world {
	w := &world{
		jobs: j, policy: p, open: j.Count, chance: workload.Stream(seed, "places of jobs"),
		submitters: submitters(p.Submitters),
	}
	for i, mean := range r.means(seed) {
		name := fmt.Sprintf("resource %d", i)
		one := &resource{
			id: grid.SiteID(name), mean: mean, turns: workload.Turns{Up: r.up(mean), Down: r.down()},
			rng: workload.Stream(seed, name),
		}
		one.spell = one.turns.First(one.rng)
		w.resources = append(w.resources, one)
		w.up.enter(one.spell)
		w.push(event{at: one.spell.To, kind: changed, which: i})
	}
	for i, job := range j.draw(r.Count, seed) {
		w.tasks = append(w.tasks, &task{index: i, Ending: Ending{Submit: job.submit, Work: job.work}})
	}
	return w
}

// note keeps the first error.
func (w *world) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

// next lets happen what comes next.
func (w *world) next() {
	if w.arrived < len(w.tasks) && w.tasks[w.arrived].Submit <= w.events[0].at {
		t := w.tasks[w.arrived]
		w.now = t.Submit
		w.arrived++
		w.queue = append(w.queue, t)
		w.dispatch()
		return
	}
	e := w.events.pop()
	w.now = e.at
	if e.kind == changed {
		w.change(e.which)
		return
	}
	if t := w.tasks[e.which]; e.number == t.number {
		w.proceed(t, e.kind)
	}
}

// change lets a resource fail, or come back.
func (w *world) change(which int) {
	r := w.resources[which]
	w.up.leave(r.spell)
	if r.spell.Up && w.ageing.unit > 0 {
		r.operational += w.ageing.operational(r.spell.To - r.spell.From)
	}
	r.change()
	w.up.enter(r.spell)
	w.push(event{at: r.spell.To, kind: changed, which: which})
	if t := r.task; t != nil {
		w.by(t).ledger.Missed(r.id, fault.Silent, time.Time{})
		w.leave(t)
		t.Failures++
		t.unsaved, t.number = 0, 0
		w.queue = slices.Insert(w.queue, 0, t)
	}
	w.dispatch()
}

// leave takes a task from its resource.
func (w *world) leave(t *task) {
	t.Held += w.now - t.since
	t.resource.task, t.resource = nil, nil
}

// dispatch places tasks that wait, the first ones first.
func (w *world) dispatch() {
	for len(w.queue) > 0 {
		t := w.queue[0]
		r := w.place(t)
		if r == nil {
			return
		}
		w.queue = w.queue[1:]
		r.task, t.resource, t.since = t, r, w.now
		t.interval = 0
		w.start(t)
		delay := 0.0
		if t.Failures > 0 {
			delay = w.jobs.Restart
		}
		w.work(t, delay)
	}
}

// work lets a task work until it asks for a checkpoint, has taken one, or ends.
func (w *world) work(t *task, delay float64) {
	left := t.left()
	due := min(w.ahead(t, left), left)
	t.unsaved += due
	next := event{at: w.now + delay + due, kind: saved, which: t.index}
	switch {
	case t.left() <= rounding*t.Work:
		next.kind = ended
	case w.policy.Save == SaveLFCA:
		next.kind = asked
	default:
		next.at += w.jobs.Cost
	}
	t.number = w.push(next)
}

// proceed goes on with a task.
func (w *world) proceed(t *task, kind kind) {
	switch {
	case kind == ended:
		w.by(t).ledger.Succeeded(t.resource.id, time.Time{})
		w.leave(t)
		t.End = w.now
		w.open--
		w.dispatch()
	case kind == saved:
		t.saved, t.unsaved = t.saved+t.unsaved, 0
		t.Checkpoints++
		w.work(t, 0)
	case w.takes(t):
		t.number = w.push(event{at: w.now + w.jobs.Cost, kind: saved, which: t.index})
	default:
		w.work(t, 0)
	}
}

// rounding is the part of a job that sums of its segments may miss.
const rounding = 1e-9
