package broker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The kinds of facts, with the version of their format.
const (
	factCounter = "counter/1" // key "jobs": how many jobs were ever submitted
	factJob     = "job/1"     // key JobID: a submission
	factTask    = "task/1"    // key TaskID: a task that was awarded or has ended
	factFault   = "fault/1"   // key SiteID: the site's fault index
	factMember  = "member/1"  // key SiteID: what was seen of a member
)

type counterFact struct {
	Jobs uint64 `json:"jobs"`
}

type jobFact struct {
	Job         grid.Job `json:"job"`
	NoWait      bool     `json:"no_wait,omitempty"`
	SubmittedMS int64    `json:"submitted_ms"`
	EndedMS     int64    `json:"ended_ms,omitempty"`
}

type taskFact struct {
	Phase      grid.Phase    `json:"phase"`
	Token      grid.Token    `json:"token"`
	Site       grid.SiteID   `json:"site"`
	Distance   float64       `json:"distance"`
	AwardedMS  int64         `json:"awarded_ms,omitempty"`
	LeaseEndMS int64         `json:"lease_end_ms,omitempty"` // only of long leases
	Silent     bool          `json:"silent,omitempty"`
	Failures   int           `json:"failures,omitempty"`
	Exit       *grid.Exit    `json:"exit,omitempty"`
	Failed     []grid.SiteID `json:"failed,omitempty"`
	Tries      []Try         `json:"tries,omitempty"`
	Rivals     []rivalFact   `json:"rivals,omitempty"`
	Top        grid.Token    `json:"top,omitempty"` // where it is above Token
	Accepted   bool          `json:"accepted,omitempty"`
	Kept       float64       `json:"kept,omitempty"`
	StartsMS   int64         `json:"starts_ms,omitempty"` // only of promised jobs
}

type faultFact struct {
	Index int64 `json:"index"`
}

func (m *Machine) persist(kind, key string, value any) {
	m.out.Persist(step.NewFact(kind, key, value))
}

func (m *Machine) persistRemoval(kind, key string) {
	m.out.Persist(step.Fact{Kind: kind, Key: key})
}

func (m *Machine) saveJob(j *job) {
	if j.probe {
		return
	}
	m.persist(factJob, string(j.id), jobFact{
		Job: j.job, NoWait: j.noWait, SubmittedMS: toMS(j.submitted), EndedMS: toMS(j.ended),
	})
}

func (m *Machine) saveTask(j *job, index uint32) {
	t := &j.tasks[index]
	f := taskFact{
		Phase: t.phase, Token: t.token, Site: t.site, Distance: t.distance, AwardedMS: toMS(t.awardedAt),
		Silent: t.silent, Failures: t.failures, Exit: t.exit, Failed: t.failed, Tries: t.tries,
		Accepted: t.accepted, Kept: t.kept,
	}
	if j.promised() {
		f.StartsMS = toMS(t.startsAt)
	}
	if m.leaseOf(j) > m.cfg.Lease {
		f.LeaseEndMS = toMS(t.leaseEnd)
	}
	if f.Rivals = t.rivalFacts(); t.top > t.token {
		f.Top = t.top
	}
	m.persist(factTask, j.taskID(index).String(), f)
}

func (m *Machine) saveFault(site grid.SiteID) {
	if index := m.faults.Index(site); index != 0 {
		m.persist(factFault, string(site), faultFact{Index: index})
		return
	}
	m.persistRemoval(factFault, string(site))
}

// Snapshot implements step.Durable.
func (m *Machine) Snapshot() []byte { return m.out.Facts().Encode() }

// Restore implements step.Durable.
func (m *Machine) Restore(encoded []byte) error {
	facts, err := step.DecodeFacts(encoded)
	if err != nil {
		return err
	}
	// Jobs come before their tasks: "job/1" < "task/1".
	slices.SortStableFunc(facts, func(a, b step.Fact) int { return cmp.Compare(a.Kind, b.Kind) })
	for _, f := range facts {
		if err := m.restoreFact(f); err != nil {
			return fmt.Errorf("restore %s %s: %w", f.Kind, f.Key, err)
		}
		m.out.Facts().Apply(f)
	}
	for _, id := range m.jobIDs() {
		m.settle(m.jobs[id])
	}
	for _, id := range m.Jobs() {
		m.depend(m.jobs[id]) // in the order of their submission
	}
	return nil
}

func (m *Machine) restoreFact(f step.Fact) error {
	switch f.Kind {
	case factCounter:
		var c counterFact
		err := json.Unmarshal(f.Value, &c)
		m.counter = c.Jobs
		return err
	case factJob:
		return m.restoreJob(f)
	case factTask:
		return m.restoreTask(f)
	case factFault:
		var v faultFact
		err := json.Unmarshal(f.Value, &v)
		m.faults.Missed(grid.SiteID(f.Key), v.Index)
		return err
	case factMember:
		return m.restoreMember(f)
	default:
		return fmt.Errorf("%w: this version does not know the fact", grid.ErrInvalid)
	}
}

func (m *Machine) restoreJob(f step.Fact) error {
	var v jobFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	if err := v.Job.Validate(); err != nil {
		return err
	}
	j := newJob(grid.JobID(f.Key), v.Job, fromMS(v.SubmittedMS))
	j.noWait, j.ended = v.NoWait, fromMS(v.EndedMS)
	m.jobs[j.id] = j
	return nil
}

func (m *Machine) restoreTask(f step.Fact) error {
	id, err := grid.ParseTaskID(f.Key)
	if err != nil {
		return err
	}
	j, ok := m.jobs[id.Job]
	if !ok || id.Index >= uint32(len(j.tasks)) {
		return fmt.Errorf("%w: its job is missing", grid.ErrInvalid)
	}
	var v taskFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	j.tasks[id.Index] = task{
		phase: v.Phase, token: v.Token, site: v.Site, distance: v.Distance, awardedAt: fromMS(v.AwardedMS),
		leaseEnd: fromMS(v.LeaseEndMS), silent: v.Silent, failures: v.Failures, exit: v.Exit, failed: v.Failed, tries: v.Tries,
		rivals: rivalsOf(v.Rivals), top: max(v.Top, v.Token),
		accepted: v.Accepted, kept: v.Kept, startsAt: fromMS(v.StartsMS),
	}
	return nil
}

// settle derives what is not a fact of a restored job.
func (m *Machine) settle(j *job) {
	m.describe(j)
	j.waiting, j.open, j.gossiped = nil, 0, true // an earlier run may have asked anybody
	for i := range j.tasks {
		t := &j.tasks[i]
		if t.phase == grid.PhaseWaiting {
			j.waiting = append(j.waiting, uint32(i))
		}
		if !t.phase.Ended() {
			j.open++
		}
		j.bid = j.bid || t.token > 0
	}
	_ = m.measure(j) // it was accepted: what it takes is still wanted
}

// Check implements step.Machine.
func (m *Machine) Check() error {
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		if err := errors.Join(m.jobs[id].check(), m.checkPlacing(m.jobs[id])); err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
	}
	return nil
}

func (j *job) check() error {
	open, waiting := 0, 0
	for i := range j.tasks {
		t := &j.tasks[i]
		if !t.phase.Ended() && !j.probe {
			open++
		}
		if t.phase == grid.PhaseWaiting {
			waiting++
		}
		if t.active() && (t.token == 0 || t.site == "") {
			return fmt.Errorf("task %d is %s without an attempt", i, t.phase)
		}
		if t.phase.Ended() && !t.leaseEnd.IsZero() {
			return fmt.Errorf("task %d has ended and holds a lease", i)
		}
		if err := t.checkRivals(i); err != nil {
			return err
		}
	}
	if !j.probe && (open != j.open || waiting != len(j.waiting)) {
		return fmt.Errorf("counts %d open and %d waiting tasks, has %d and %d", j.open, len(j.waiting), open, waiting)
	}
	if !slices.IsSorted(j.waiting) {
		return fmt.Errorf("waiting tasks are out of order: %v", j.waiting)
	}
	return j.checkParts()
}

var timeZero time.Time //nolint:gochecknoglobals // the zero time, named

func toMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMS(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
