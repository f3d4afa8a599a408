package broker

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// job is one submission.
type job struct {
	enquiry
	roster
	intake
	submitted time.Time
	ended     time.Time
	held      bool   // it is not to be placed before it is released
	noWait    bool   // it is refused if it has no place now
	key       string // of the request that made it; empty: it had none
	// how is the way in which it is placed. It follows from what was submitted, so it is no
	// fact, and what it holds is lost with a restart: a new search begins then.
	how strategy
	// stage is the announcement or the request to hold offers that is under way, or nil. Any
	// other reason to wait follows from the job's tasks, its predecessors and the time; it is
	// computed, not stored, so that it cannot be wrong. Only enter changes it.
	stage stage
	// sought: sites are asked whether they would take tasks that are to move.
	sought bool
}

// stage is a step of placing that is under way: *round, *holding or *gathering.
type stage interface {
	// check reports what must not be while this is under way.
	check(j *job) error
}

// roster holds the tasks of a job and which of them have no site. Only wait, seat, end and
// reopen change it.
type roster struct {
	tasks   []task
	waiting []uint32 // tasks without a site, ascending
	open    int      // tasks that have not ended
	failed  uint32   // tasks that have, and failed
	// of is the number of tasks where tasks holds copies of them, see copies.go; 0: it does not.
	of      uint32
	pending []uint32 // tasks of which a copy has ended in this Step
}

// enquiry is a question about a job with the answers to it. A job has one; a probe is
// nothing else.
type enquiry struct {
	id     grid.JobID
	spec   grid.Job
	traits traits
	// req and digest are what the announcements say, and its short name for sites that
	// remember it.
	req    grid.Requirement
	digest protocol.Digest
	// seq numbers the announcements. Answers to a later one overtake those to an earlier one;
	// those of a run follow those of the run before.
	seq       uint32
	announced bool   // by this run, so that most caches are warm
	inPart    bool   // ... to a part of the sites: only those that have answered know the job
	sampled   uint32 // the announcement that a part of the sites was to answer
	searched  uint32 // ... and the last one of a search after it
	poll      *poll  // the answers to these
	gossiped  bool   // to all sites, so that sites have heard of it that are not known here
	placed    bool   // "placed" was said since the last announcement
	offered   bool   // some site has offered at some time
	// offers are those that still stand; runner-ups stay here for failover.
	offers   map[grid.SiteID]*candidate
	answers  map[grid.SiteID]Answer // each site's last answer, for `why`; bounded
	vacant   map[grid.SiteID]bool   // sites that reported capacity while something else was under way
	pause    time.Duration          // the last one before announcing again; it grows
	pauseEnd time.Time              // of that pause, also while a round goes on that it did not begin
	// rest is a time before which nothing is looked for: parts of an earlier start that were
	// told to stop may run until then.
	rest time.Time
	foreign
	clockSet time.Duration // by how much the wall clock was set since it was submitted
	// presumed is until when its tasks may run in attempts that this state does not know of.
	presumed  time.Time
	awardSize int // of an award of one task without an item, bytes
}

const maxAnswers = 256

// newJob makes the record of a job without a way to place it, see makeJob.
func newJob(id grid.JobID, spec grid.Job, now time.Time, cfg *Config) *job {
	j := &job{
		enquiry: enquiry{
			id: id, spec: spec, traits: traitsOf(spec, cfg), offers: make(map[grid.SiteID]*candidate),
			answers: make(map[grid.SiteID]Answer), vacant: make(map[grid.SiteID]bool),
		},
		roster:    newRoster(spec),
		intake:    newIntake(spec),
		held:      spec.Held,
		submitted: now,
	}
	return j
}

// enter changes what is under way for a job; nil: nothing is.
func (j *job) enter(s stage) { j.stage = s }

func (e *enquiry) taskID(index uint32) grid.TaskID { return grid.TaskID{Job: e.id, Index: index} }

// about names the job as a whole in a Report.
func (e *enquiry) about() grid.AttemptID { return grid.AttemptID{Task: grid.TaskID{Job: e.id}} }

func (e *enquiry) item(index uint32) grid.Item {
	if len(e.spec.Items) == 0 {
		return grid.Item{}
	}
	return e.spec.Items[index%e.spec.Count]
}

// note keeps an answer for `why`.
func (e *enquiry) note(a Answer) {
	if _, known := e.answers[a.Site]; known || len(e.answers) < maxAnswers {
		e.answers[a.Site] = a
	}
}

// keepNearest forgets the offers of a job that is placed, all but the nearest of those that stand:
// as many as there are answers. It needs a few of them should a site decline or fail, and in a
// mesh of 10,000 sites each of some thousand running jobs would keep as many.
func (e *enquiry) keepNearest(standing []*candidate) {
	if len(e.offers) <= maxAnswers {
		return
	}
	e.offers = make(map[grid.SiteID]*candidate, maxAnswers)
	for _, c := range standing[:min(len(standing), maxAnswers)] {
		e.offers[c.offer.Site] = c
	}
}

// pollOf counts an answer, if it is to a sampled announcement; else it is nil.
func (e *enquiry) pollOf(seq uint32) *poll {
	if e.sampled <= seq && seq <= e.searched {
		return e.poll
	}
	return nil
}

// overtaken reports whether a site has answered a later announcement already.
func (e *enquiry) overtaken(from grid.SiteID, seq uint32) bool {
	last, has := e.answers[from]
	return has && last.Seq > seq
}

// attempt is the latest attempt of a task; its token is 0 when there was none.
func (j *job) attempt(index uint32) grid.AttemptID {
	return grid.AttemptID{Task: j.taskID(index), Token: j.tasks[index].token}
}

// startOf is when a task is to begin, as its site has said, or its user; zero: neither has.
func (j *job) startOf(t *task) time.Time {
	if t.startsAt.IsZero() {
		return j.traits.window.At
	}
	return t.startsAt
}

// wanted counts the places that are looked for.
func (j *job) wanted() uint32 { return max(1, uint32(len(j.waiting))) }

// wait puts a task among those without a site.
func (r *roster) wait(index uint32) {
	r.tasks[index].move(grid.PhaseWaiting)
	if at, found := slices.BinarySearch(r.waiting, index); !found {
		r.waiting = slices.Insert(r.waiting, at, index)
	}
}

// seat takes a task from those without a site.
func (r *roster) seat(index uint32) {
	at, found := slices.BinarySearch(r.waiting, index)
	switch {
	case found && at == 0: // the usual case, and cheap however many wait
		r.waiting = r.waiting[1:]
	case found:
		r.waiting = slices.Delete(r.waiting, at, at+1)
	}
}

// end moves a task to a phase that it stays in.
func (r *roster) end(index uint32, phase grid.Phase) {
	r.seat(index)
	r.tasks[index].move(phase)
	r.tasks[index].leaseEnd = timeZero
	r.open--
	switch {
	case r.of > 0:
		r.pending = append(r.pending, r.first(index))
	case phase == grid.PhaseFailed:
		r.failed++
	}
}

// reopen takes back that a task has ended.
func (r *roster) reopen() { r.open++ }

// failedSites lists those that have failed any task, as far as is remembered.
func (r *roster) failedSites() (sites []grid.SiteID) {
	for i := range r.tasks {
		sites = append(sites, r.tasks[i].failed...)
	}
	return sites
}

// hosts lists the sites that had a task, as far as is remembered, ascending.
func (r *roster) hosts() []grid.SiteID {
	had := make(map[grid.SiteID]bool)
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.site != "" {
			had[t.site] = true
		}
		for _, try := range t.tries {
			had[try.Site] = true
		}
	}
	return sortedSites(had)
}

// any reports whether something is true of a task.
func (r *roster) any(is func(*task) bool) bool {
	for i := range r.tasks {
		if is(&r.tasks[i]) {
			return true
		}
	}
	return false
}

// count derives from the tasks which wait and how many are open.
func (r *roster) count() {
	r.waiting, r.open, r.failed = nil, 0, 0
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.phase == grid.PhaseWaiting {
			r.waiting = append(r.waiting, uint32(i))
		}
		if !t.phase.Ended() {
			r.open++
		}
		if r.of == 0 && t.phase == grid.PhaseFailed || uint32(i) < r.of && r.hasFailed(uint32(i)) {
			r.failed++
		}
	}
}

// placedAny reports whether a task was ever awarded.
func (r *roster) placedAny() bool {
	return r.any(func(t *task) bool { return t.token > 0 })
}

// outcome says how a job has ended.
type outcome uint8

const (
	outcomeOpen outcome = iota
	outcomeDone         // all tasks are
	outcomeFailed
	outcomeCancelled
	outcomeRefused
)

// outcome says how the job has ended: as the first task that was called off, and else
// failed if one has.
func (r *roster) outcome() outcome {
	if r.open > 0 {
		return outcomeOpen
	}
	result := outcomeDone
	for i := range r.heads() {
		switch r.phaseOf(i) {
		case grid.PhaseCancelled:
			return outcomeCancelled
		case grid.PhaseRefused:
			return outcomeRefused
		case grid.PhaseDone:
		default:
			result = outcomeFailed
		}
	}
	return result
}

// phrase says for people how a job that is not done has ended: "job x has ...".
func (o outcome) phrase() string {
	switch o {
	case outcomeCancelled:
		return "been cancelled"
	case outcomeRefused:
		return "been refused"
	default:
		return "failed"
	}
}

// done reports whether all tasks are.
func (r *roster) done() bool { return r.outcome() == outcomeDone }

// data lists all that the job needs, what its tasks have left, and their checkpoints.
func (j *job) data() []grid.CID {
	cids := append(inputsOf(j.spec), j.left()...)
	for i := range j.tasks {
		cids = append(cids, j.tasks[i].contents()...)
	}
	return cids
}

// dropSaved keeps a task's checkpoints no longer: it has ended, or begins anew.
func (r *run) dropSaved(j *job, index uint32) {
	r.letGo(j.taskID(index), j.tasks[index].contents())
	j.tasks[index].savings = savings{}
}

// left lists what its tasks have left.
func (j *job) left() []grid.CID {
	var cids []grid.CID
	for i := range j.tasks {
		if exit := j.tasks[i].exit; exit != nil {
			cids = append(cids, exit.CIDs()...)
		}
	}
	return cids
}

// inputsOf lists all data that a job needs.
func inputsOf(spec grid.Job) []grid.CID {
	var cids []grid.CID
	if spec.Spec.Module.CID != "" {
		cids = append(cids, spec.Spec.Module.CID)
	}
	for _, in := range spec.Spec.Inputs {
		cids = append(cids, in.CID)
	}
	for _, item := range spec.Items {
		for _, in := range item.Inputs {
			cids = append(cids, in.CID)
		}
	}
	return cids
}

// checkRoster verifies that a job's tasks are counted and can be.
func (j *job) checkRoster() error {
	var want roster
	want.tasks, want.of = j.tasks, j.of
	if want.count(); want.open != j.open || want.failed != j.failed ||
		!slices.Equal(want.waiting, j.waiting) {
		return errors.New("its tasks are counted wrongly")
	}
	if err := j.checkCopies(); err != nil {
		return err
	}
	for i := range j.tasks {
		if err := j.tasks[i].check(i); err != nil {
			return err
		}
	}
	return nil
}

// Answer is a site's last answer about a job.
type Answer struct {
	Site    grid.SiteID
	Domain  grid.DomainID `json:",omitempty"` // that the site stands for; empty: it is a member
	Beside  bool          `json:",omitempty"` // that domain was asked together with the members
	Seq     uint32        // of the announcement
	Offer   *grid.Offer   // nil when it refused
	Refusal grid.Refusal  // when it refused
	At      time.Time
}

func (a Answer) neverFits() bool { return a.Offer == nil && a.Refusal.Never }

func sortedSites[V any](sites map[grid.SiteID]V) []grid.SiteID {
	return slices.Sorted(maps.Keys(sites))
}
