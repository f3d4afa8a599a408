package broker

import (
	"cmp"
	"encoding/json"
	"fmt"
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

type rivalFact struct {
	Token    grid.Token  `json:"token"`
	Site     grid.SiteID `json:"site"`
	Offer    uint64      `json:"offer"`
	Quoted   float64     `json:"quoted"`
	Distance float64     `json:"distance"`
}

type faultFact struct {
	Index int64 `json:"index"`
}

func (r *run) persist(kind, key string, value any) {
	r.out.Persist(step.NewFact(kind, key, value))
}

func (r *run) persistRemoval(kind, key string) {
	r.out.Persist(step.Fact{Kind: kind, Key: key})
}

func (r *run) saveJob(j *job) {
	r.persist(factJob, string(j.id), jobFact{
		Job: j.spec, NoWait: j.noWait, SubmittedMS: toMS(j.submitted), EndedMS: toMS(j.ended),
	})
}

// saveTask may come several times for a task in one Step: what is sent in between relies
// on it.
func (r *run) saveTask(j *job, index uint32) {
	t := &j.tasks[index]
	f := taskFact{
		Phase: t.phase, Token: t.token, Site: t.site, Distance: t.distance, AwardedMS: toMS(t.awardedAt),
		Silent: t.silent, Failures: t.failures, Exit: t.exit, Failed: t.failed, Tries: t.tries,
		Accepted: t.accepted, Kept: t.kept,
	}
	if j.traits.promise {
		f.StartsMS = toMS(t.startsAt)
	}
	if j.traits.lease > r.cfg.Lease {
		f.LeaseEndMS = toMS(t.leaseEnd)
	}
	for _, o := range t.rivals {
		f.Rivals = append(f.Rivals, rivalFact{
			Token: o.token, Site: o.site, Offer: o.offer, Quoted: o.quoted, Distance: o.distance,
		})
	}
	if t.top > t.token {
		f.Top = t.top
	}
	r.persist(factTask, j.taskID(index).String(), f)
}

func (p *peers) saveFault(site grid.SiteID) {
	if index := p.faults.Index(site); index != 0 {
		p.persist(factFault, string(site), faultFact{Index: index})
		return
	}
	p.persistRemoval(factFault, string(site))
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
	for _, id := range m.jobs.ids() {
		m.herald.derive(m.jobs.all[id])
	}
	for _, id := range m.jobs.submitted() {
		m.jobs.depend(m.jobs.all[id])
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
		return m.jobs.restoreJob(f, &m.cfg)
	case factTask:
		return m.jobs.restoreTask(f)
	case factFault:
		var v faultFact
		err := json.Unmarshal(f.Value, &v)
		m.peers.faults.Missed(grid.SiteID(f.Key), v.Index)
		return err
	case factMember:
		return m.peers.restore(f)
	default:
		return fmt.Errorf("%w: this version does not know the fact", grid.ErrInvalid)
	}
}

func (l *jobs) restoreJob(f step.Fact, cfg *Config) error {
	var v jobFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	if err := v.Job.Validate(); err != nil {
		return err
	}
	j := newJob(grid.JobID(f.Key), v.Job, fromMS(v.SubmittedMS), cfg)
	j.noWait, j.ended = v.NoWait, fromMS(v.EndedMS)
	l.all[j.id] = j
	return nil
}

func (l *jobs) restoreTask(f step.Fact) error {
	id, err := grid.ParseTaskID(f.Key)
	if err != nil {
		return err
	}
	_, t := l.task(id)
	if t == nil {
		return fmt.Errorf("%w: its job is missing", grid.ErrInvalid)
	}
	var v taskFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	*t = task{
		phase: v.Phase,
		attempt: attempt{
			token: v.Token, site: v.Site, distance: v.Distance, awardedAt: fromMS(v.AwardedMS),
			leaseEnd: fromMS(v.LeaseEndMS), startsAt: fromMS(v.StartsMS),
		},
		silence: silence{silent: v.Silent},
		record:  record{failures: v.Failures, failed: v.Failed, tries: v.Tries},
		result:  result{exit: v.Exit},
		pledge:  pledge{accepted: v.Accepted, kept: v.Kept},
		top:     max(v.Top, v.Token),
	}
	for _, o := range v.Rivals {
		t.rivals = append(t.rivals, rival{
			token: o.Token, site: o.Site, offer: o.Offer, quoted: o.Quoted, distance: o.Distance,
		})
	}
	return nil
}

// derive works out what is no fact of a restored job.
func (h herald) derive(j *job) {
	h.describe(j)
	j.gossiped = true // an earlier run may have asked anybody
	j.offered = j.placedAny()
	j.count()
	_ = j.measure(&h.cfg) // it was accepted: what it takes is still wanted
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
