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
		if f.Kind == FactGroup {
			continue
		}
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
	m.jobs.restoreTail()
	return nil
}

func (m *Machine) restoreFact(f step.Fact) error {
	switch f.Kind {
	case factCounter:
		var c counterFact
		err := json.Unmarshal(f.Value, &c)
		m.counter = c.Jobs
		return err
	case factGrants:
		if f.Key == grantsUnknown {
			m.unknown = true
			return nil
		}
		var v grantsFact
		err := json.Unmarshal(f.Value, &v)
		m.covered = fromMS(v.LongestMS)
		return err
	case factJob:
		return m.jobs.restoreJob(f, &m.cfg)
	case factTask:
		return m.jobs.restoreTask(f, &m.cfg)
	case factFault:
		return m.peers.restoreFaults(f)
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
	j := makeJob(grid.JobID(f.Key), v.Job, step.FromMS(v.SubmittedMS), cfg)
	j.noWait, j.ended, j.held = v.NoWait, step.FromMS(v.EndedMS), v.Held
	if err := j.refill(v.Taken); err != nil {
		return err
	}
	if v.Ordered != nil {
		j.ordered = *v.Ordered
	}
	l.all[j.id] = j
	l.name(j, v.Key)
	return nil
}

func (l *jobs) restoreTask(f step.Fact, cfg *Config) error {
	id, err := grid.ParseTaskID(f.Key)
	if err != nil {
		return err
	}
	j, t := l.task(id)
	if k, known := l.all[id.Job]; t == nil && known && k.mayHave(id.Index) {
		k.grow(id.Index)
		j, t = l.task(id)
	}
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
			token: v.Token, site: v.Site, distance: v.Distance, awardedAt: step.FromMS(v.AwardedMS),
			long: v.longGrant(j, cfg), startsAt: step.FromMS(v.StartsMS),
			stint: stint{by: step.FromMS(v.ByMS)}, line: v.Line,
			moving: restoreMove(v.Move),
			blamed: v.Blamed,
		},
		silence: silence{silent: v.Silent},
		record:  record{failures: v.Failures, reruns: v.Reruns, failed: v.Failed, tries: v.Tries},
		savings: restoreSaved(v.Saved),
		result:  result{exit: v.Exit},
		pledge:  pledge{accepted: v.Accepted, kept: v.Kept},
		top:     max(v.Top, v.Token),
		copying: v.copying(),
	}
	t.restore(v.Pledge, v.Phase.Ended())
	if j.of > 0 && t.hasVoted() {
		t.vote()
	}
	for _, o := range v.Rivals {
		t.rivals = append(t.rivals, rival{
			token: o.Token, site: o.Site, offer: o.Offer, quoted: o.Quoted, distance: o.Distance,
		})
	}
	return nil
}

// longGrant is the note of a long grant. An earlier version noted when it ends by the wall
// clock, which may have been set: all of it is waited for.
func (v *taskFact) longGrant(j *job, cfg *Config) longGrant {
	switch {
	case v.Grant != nil:
		return longGrant{
			promised: fromMS(v.Grant.PromisedMS),
			at:       reading{of: v.Grant.Clock, at: time.Duration(v.Grant.AtMS) * time.Millisecond},
		}
	case v.LeaseEndMS != 0:
		return longGrant{promised: j.traits.lease + cfg.margin(j.traits.lease)}
	default:
		return longGrant{}
	}
}

// fromMS reads a span; one that no grant can have counts as none.
func fromMS(ms int64) time.Duration {
	if ms < 0 || ms > grid.MaxRuntime.Milliseconds() {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// derive works out what is no fact of a restored job.
func (h herald) derive(j *job) {
	j.count()
	h.describe(j)
	j.gossiped = true // an earlier run may have asked any site
	j.offered = j.placedAny()
	_ = j.measure(&h.cfg) // it was accepted: what it takes is still wanted
}
