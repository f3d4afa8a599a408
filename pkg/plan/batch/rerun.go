package batch

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// errInvalid refuses a machine or a job that makes no sense.
var errInvalid = errors.New("invalid")

// Config is a machine and how it is scheduled.
type Config struct {
	Procs     int // at least 1
	Policy    Policy
	Semantics Semantics
}

// Rerun runs a log through a machine, instant by instant. It has one owner.
type Rerun struct {
	jobs      []workload.Job
	starts    []workload.Seconds
	semantics Semantics
	scheduler scheduler
	submitted int32 // jobs[:submitted] were submitted
	started   int32
	running   endings
	ended     []int32 // of this instant; kept for its memory
}

// scheduler is a policy at work. Jobs are named by their place in the log, which is
// the order of their submission.
type scheduler interface {
	// pass looks at the queue once, after jobs have ended and those up to submitted,
	// exclusively, have joined the queue. It returns the jobs to start now, which the
	// next pass overwrites.
	pass(now workload.Seconds, ended []int32, submitted int32) []int32
}

// never is after every instant.
const never workload.Seconds = math.MaxInt64

// New starts a rerun of jobs, which are in the order of their submission and no wider
// than the machine, as workload.Log.Jobs gives them.
func New(jobs []workload.Job, config Config) (*Rerun, error) {
	if config.Procs < 1 || config.Procs > math.MaxInt32 || len(jobs) > math.MaxInt32 {
		return nil, fmt.Errorf("%w machine: want 1 to %d processors and at most as many jobs, "+
			"have %d and %d", errInvalid, math.MaxInt32, config.Procs, len(jobs))
	}
	for i, j := range jobs {
		if j.Procs < 1 || j.Procs > config.Procs || j.Run < 1 || j.Estimate < j.Run ||
			i > 0 && j.Submit < jobs[i-1].Submit {
			return nil, fmt.Errorf("%w job %d: want 1 to %d processors, a run time of 1 s to its "+
				"estimate and the order of submission, have %+v", errInvalid, j.ID, config.Procs, j)
		}
	}
	r := &Rerun{jobs: jobs, starts: make([]workload.Seconds, len(jobs)), semantics: config.Semantics}
	switch config.Policy {
	case FCFS:
		r.scheduler = &fcfs{jobs: jobs, free: config.Procs}
	case EASY:
		r.scheduler = &easy{jobs: jobs, free: config.Procs, due: make([]workload.Seconds, len(jobs))}
	case Conservative:
		r.scheduler = newConservative(jobs, config.Procs)
	default:
		return nil, fmt.Errorf("%w policy %d", errInvalid, config.Policy)
	}
	return r, nil
}

// Step handles the next instant and reports false when there is none, because every
// job has ended.
func (r *Rerun) Step() bool {
	now := min(r.nextArrival(), r.running.next())
	if now == never {
		return false
	}
	r.ended = r.ended[:0]
	for r.running.next() == now {
		r.ended = append(r.ended, r.running.pop())
	}
	before := r.submitted
	for r.nextArrival() == now {
		r.submitted++
	}
	if r.semantics == Batch {
		r.pass(now, r.ended, r.submitted)
		return true
	}
	for i := before; i < r.submitted; i++ {
		r.pass(now, nil, i+1)
	}
	for i := range r.ended {
		r.pass(now, r.ended[i:i+1], r.submitted)
	}
	return true
}

func (r *Rerun) pass(now workload.Seconds, ended []int32, submitted int32) {
	for _, j := range r.scheduler.pass(now, ended, submitted) {
		r.starts[j] = now
		r.running.push(ending{now + r.jobs[j].Run, j, r.started})
		r.started++
	}
}

func (r *Rerun) nextArrival() workload.Seconds {
	if int(r.submitted) == len(r.jobs) {
		return never
	}
	return r.jobs[r.submitted].Submit
}

// Started counts the jobs that have started.
func (r *Rerun) Started() int { return int(r.started) }

// Starts is when each job started, in the order of the jobs, once Step has returned
// false. It belongs to the rerun.
func (r *Rerun) Starts() []workload.Seconds { return r.starts }
