package site

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// phase says how far an attempt is at its site.
type phase uint8

const (
	phaseAsked    phase = iota + 1 // it has a place; the sandbox is asked whether it can keep it
	phaseStaging                   // accepted; its inputs are on the way
	phaseReady                     // its inputs are here; it waits for a lease or its planned start
	phaseStarting                  // the sandbox was asked for
	phaseRunning                   // the sandbox runs
	phaseFrozen                    // its lease ran out
	phaseStopping                  // it was told to end and has not said so yet
	phaseExited                    // it ended; its submitter has not acknowledged that yet
)

// String is the phase in one word.
func (p phase) String() string {
	names := [...]string{
		"unknown", "asked", "staging", "ready", "starting", "running", "frozen", "stopping", "exited",
	}
	if int(p) < len(names) {
		return names[p]
	}
	return names[0]
}

// attempt is one attempt that this site accepted.
type attempt struct {
	id        grid.AttemptID
	submitter grid.SiteID
	task      grid.Task
	module    grid.Input // of the task, to be fetched with its inputs
	key       []byte     // of an encrypted job, for this site alone
	parts     grid.Parts // where the site stood when it accepted

	phase     phase
	started   bool // StartAttempt was emitted
	vouched   bool // with what it runs compared with what was signed
	fetching  bool // Stage was emitted: the driver knows it
	preparing bool // running, but its program is still compiled for this site

	// suspended is the latest order to the driver: the attempt is frozen, or about
	// to be, whatever its lease says. It is so while there is a reason (frozenFor): the
	// owner needs the machine, or the attempt is displaced. Whether it is frozen by now
	// is its phase, which an ended lease brings about, too.
	suspended bool

	// displaced is why the plan wants it frozen, ReasonNone if it does not: what it holds
	// is promised to another, or it has had the time that it was to take. It keeps its
	// capacity and its leases and goes on when the plan says so.
	displaced grid.Reason

	// surplus is for one that takes more than the owner gives at this time of the week.
	surplus bool

	// quiet is for one that is being stopped: its submitter wants that, or has given it
	// up, and does not hear of the end. An award that repeats its token finds it stale.
	quiet bool

	// overran is for one that is being stopped because it ran out of its time and its
	// job says that this ends it: the end that the driver reports is told as a time limit.
	overran bool

	// place is its place in the plan when it was accepted, if that lay ahead. It is part
	// of the attempt's fact until it was started: what a restart finds with a place that
	// can still be kept goes on, everything else has died with the agent.
	place    *promisedFact
	estimate time.Duration // how long it was to run

	// startBy is the latest start that it was promised, zero if it was promised none. It is not
	// given up before, and not started after it.
	startBy time.Time
	began   time.Time // when the sandbox, or the reservation, began; zero: it has not in this run

	// asks is for one that other sites queue, too: its submitter lets exactly one of them
	// begin. It has no lease before its turn and so none to lose; when its turn comes
	// (asked) it asks whether it may start, and its first lease is the answer, which makes
	// it one like all others.
	asks  bool
	asked time.Time // when it asked first; zero: its turn has not come

	// unwanted is for one that nobody wants any more soon after its lease has ended
	// (grid.UnattendedStop).
	unwanted bool

	accepted   time.Time     // when
	leased     bool          // it held a lease once
	leaseUntil time.Time     // end of the lease, on this site's clock
	leaseFor   time.Duration // of the last lease; 0 before the first
	request    uint64        // number of the last request that asked for its lease
	renew      time.Time     // when the next one does
	reported   time.Time     // last staging report

	saving  saving
	leaving leaving

	exit     grid.Exit
	ended    time.Time     // when it ended, to the millisecond
	shown    endedFact     // the same, as in its fact
	held     time.Duration // how long its end was held while this agent was up, as in its fact
	heldFrom time.Time     // since when it is held beyond that
	lasted   time.Duration // from its begin to its end; 0: not known
	repeat   time.Duration // pause before the next repetition of Exited
}

// isLive reports whether the attempt holds capacity and needs a lease or a stop.
func (a *attempt) isLive() bool { return a.phase != phaseExited }

// hasExited reports whether it has ended, and its submitter has not acknowledged that.
func (a *attempt) hasExited() bool { return a.phase == phaseExited }

// wantsLease reports whether leases are asked for the attempt.
func (a *attempt) wantsLease() bool { return a.phase >= phaseStaging && a.phase < phaseStopping }

// reserves reports whether the attempt only holds capacity for others.
func (a *attempt) reserves() bool { return a.task.Kind == grid.KindReservation }

// isUnderWay reports whether the attempt was started and is not told to end.
func (a *attempt) isUnderWay() bool { return a.started && a.wantsLease() }

// roster holds all attempts and the ways to find them.
type roster struct {
	all    map[grid.AttemptID]*attempt
	order  []*attempt                 // all of them, ascending by ID
	byTask map[grid.TaskID][]*attempt // ascending by token
	byJob  map[grid.JobID]*jobUse
	bySite map[grid.SiteID]int // number of attempts of a submitter
}

// jobUse says whose a job with attempts is.
type jobUse struct {
	submitter grid.SiteID
	attempts  int
}

func newRoster() *roster {
	return &roster{
		all:    make(map[grid.AttemptID]*attempt),
		byTask: make(map[grid.TaskID][]*attempt),
		byJob:  make(map[grid.JobID]*jobUse),
		bySite: make(map[grid.SiteID]int),
	}
}

// add takes an attempt in that is not there yet.
func (r *roster) add(a *attempt) {
	r.all[a.id] = a
	at, _ := r.find(a)
	r.order = slices.Insert(r.order, at, a)
	list := append(r.byTask[a.id.Task], a)
	slices.SortFunc(list, byID)
	r.byTask[a.id.Task] = list
	use := r.byJob[a.id.Task.Job]
	if use == nil {
		use = &jobUse{submitter: a.submitter}
		r.byJob[a.id.Task.Job] = use
	}
	use.attempts++
	r.bySite[a.submitter]++
}

// remove forgets an attempt that is there.
func (r *roster) remove(a *attempt) {
	delete(r.all, a.id)
	if at, found := r.find(a); found {
		r.order = slices.Delete(r.order, at, at+1)
	}
	list := slices.DeleteFunc(r.byTask[a.id.Task], func(b *attempt) bool { return b == a })
	if r.byTask[a.id.Task] = list; len(list) == 0 {
		delete(r.byTask, a.id.Task)
	}
	use := r.byJob[a.id.Task.Job]
	if use.attempts--; use.attempts == 0 {
		delete(r.byJob, a.id.Task.Job)
	}
	if r.bySite[a.submitter]--; r.bySite[a.submitter] == 0 {
		delete(r.bySite, a.submitter)
	}
}

// ofTask lists a task's attempts, ascending by token. The list is a copy.
func (r *roster) ofTask(id grid.TaskID) []*attempt { return slices.Clone(r.byTask[id]) }

// ofJob lists a job's attempts in order.
func (r *roster) ofJob(id grid.JobID) []*attempt {
	if r.byJob[id] == nil {
		return nil
	}
	return r.where(func(a *attempt) bool { return a.id.Task.Job == id })
}

// where lists the attempts that a condition holds for, in order.
func (r *roster) where(holds func(*attempt) bool) []*attempt {
	var some []*attempt
	for _, a := range r.order {
		if holds(a) {
			some = append(some, a)
		}
	}
	return some
}

// sorted lists all attempts in order. The list is a copy.
func (r *roster) sorted() []*attempt { return slices.Clone(r.order) }

// find returns the place of an attempt in the order, also if it is not there.
func (r *roster) find(a *attempt) (at int, found bool) {
	return slices.BinarySearchFunc(r.order, a, byID)
}

func byID(a, b *attempt) int { return a.id.Compare(b.id) }
