package agent

import (
	"slices"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// KeptRounds bounds the rounds of one job that are remembered.
const KeptRounds = 16

const (
	keptAnswers = 16_384  // of all rounds together: some megabytes
	roundOfTask = 100_000 // ns of pause between two kept rounds, for each task of their job

	eventAsked = "announced" // a submitter's report that a round of a job begins
)

// Round has the answers of the sites when the next round began.
type Round struct {
	State  broker.JobState // what the answers are about, without tasks and without the job's data
	Number uint32          // of the last announcement that was answered, from 1
	Hosted map[grid.SiteID]uint32
}

// rounds remembers the last rounds of the own jobs for people: the submitter's machine keeps the
// answers to the last one alone. They are no facts, and a restart loses them.
type rounds struct {
	mu      sync.Mutex
	ofJob   map[grid.JobID][]Round   // guarded by mu; oldest first
	at      map[grid.JobID]time.Time // guarded by mu; when the last one was looked at
	order   []grid.JobID             // guarded by mu; the job of each round, oldest round first
	answers int                      // guarded by mu; of all rounds
}

// isDue reports whether a round of a job is to be looked at. To look copies the job, so that those
// with very many tasks are looked at less often.
func (r *rounds) isDue(job grid.JobID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !now.Before(r.at[job])
}

// roundOf copies of a job what is shown of its round later.
func roundOf(job broker.JobState) Round {
	next := Round{Hosted: job.Hosted(), State: broker.JobState{
		ID: job.ID, Answers: job.Answers, Ranks: job.Ranks, Behind: job.Behind, Abroad: job.Abroad,
	}}
	spec, from := &next.State.Job.Spec, job.Job.Spec
	spec.Kind, spec.Map, spec.Window = from.Kind, from.Map, from.Window
	for _, a := range job.Answers {
		next.Number = max(next.Number, a.Seq)
	}
	return next
}

// add keeps a round of a job, as it stands.
func (r *rounds) add(job broker.JobState, now time.Time) {
	if job.Probe || len(job.Answers) == 0 {
		return
	}
	next := roundOf(job)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ofJob == nil {
		r.ofJob, r.at = make(map[grid.JobID][]Round), make(map[grid.JobID]time.Time)
	}
	r.at[job.ID] = now.Add(time.Duration(len(job.Tasks)) * roundOfTask)
	known := r.ofJob[job.ID]
	if n := len(known); n > 0 && known[n-1].Number >= next.Number {
		return // nobody has answered since
	}
	r.ofJob[job.ID] = append(known, next)
	r.order, r.answers = append(r.order, job.ID), r.answers+len(job.Answers)
	if len(r.ofJob[job.ID]) > KeptRounds {
		r.drop(slices.Index(r.order, job.ID))
	}
	for r.answers > keptAnswers {
		r.drop(0)
	}
}

// drop forgets the round at a place of the order, which is its job's oldest one. The caller has
// locked.
func (r *rounds) drop(at int) {
	job := r.order[at]
	r.order = slices.Delete(r.order, at, at+1)
	r.answers -= len(r.ofJob[job][0].State.Answers)
	if r.ofJob[job] = slices.Delete(r.ofJob[job], 0, 1); len(r.ofJob[job]) == 0 {
		delete(r.ofJob, job)
		delete(r.at, job)
	}
}

// of are the rounds of a job, oldest first.
func (r *rounds) of(job grid.JobID) []Round {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ofJob[job])
}

// forget drops the rounds of a job.
func (r *rounds) forget(job grid.JobID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range r.ofJob[job] {
		r.drop(slices.Index(r.order, job))
	}
}

// noteRound remembers the round of an own job that ends as the next one begins: the answers to that
// come after this effect.
func (j *jobs) noteRound(e step.Report) {
	job, now := e.Attempt.Task.Job, j.a.clock.now()
	if e.Event != eventAsked || !j.own() || j.shown.machine == nil || !j.a.rounds.isDue(job, now) {
		return
	}
	if state, known := j.shown.machine.Job(job); known {
		j.a.rounds.add(state, now)
	}
}

// Rounds are the rounds of a job before its present one, oldest first, as far as they are
// remembered.
func (a *Agent) Rounds(job grid.JobID) []Round { return a.rounds.of(job) }

// ForgetRounds drops the rounds of a job.
func (a *Agent) ForgetRounds(job grid.JobID) { a.rounds.forget(job) }
