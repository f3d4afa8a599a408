package site

import (
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// worsening is how much farther a site may be at the award than it had offered,
// before it asks whether the runner-up is now nearer.
const worsening = 1.1

// verdict is what becomes of the tasks of one award.
type verdict struct {
	again    []*attempt // accepted before: the answer is repeated
	taken    []*attempt
	declined []protocol.Declined
}

// decline adds an attempt to those that are declined for the same reason.
func (v *verdict) decline(id grid.AttemptID, refusal grid.Refusal) {
	for i := range v.declined {
		if v.declined[i].Refusal == refusal {
			v.declined[i].Attempts = append(v.declined[i].Attempts, id)
			return
		}
	}
	v.declined = append(v.declined, protocol.Declined{Attempts: []grid.AttemptID{id}, Refusal: refusal})
}

// onAward is thesis 4.1, step 4: the full description arrives and the site
// begins to process it. What it quoted before binds nobody; it looks again.
func (m *Machine) onAward(from grid.SiteID, msg protocol.Award) {
	if owner, known := m.owner(msg.Job); known && owner != from {
		m.report(step.LevelWarn, eventNotSubmitter, aboutJob(msg.Job, from))
		return
	}
	v := &verdict{}
	if fresh := m.sift(msg, v); len(fresh) > 0 {
		m.consider(from, msg, fresh, v)
	}
	m.answerAward(from, msg.Spec, v)
}

// sift sets apart the tasks of an award that were accepted before and those
// that are overtaken, and stops what the fresh ones overtake.
func (m *Machine) sift(msg protocol.Award, v *verdict) []protocol.AwardedTask {
	var fresh []protocol.AwardedTask
	for _, t := range msg.Tasks {
		id := grid.AttemptID{Task: grid.TaskID{Job: msg.Job, Index: t.Index}, Token: t.Token}
		a := m.roster.all[id]
		switch {
		case a != nil && !a.quiet:
			v.again = append(v.again, a)
		case a != nil, t.Token <= m.highestToken(id.Task):
			v.decline(id, grid.Refusal{Reason: grid.ReasonStale})
		default:
			for _, older := range m.roster.ofTask(id.Task) {
				m.stop(older, true, "a later attempt was awarded")
			}
			fresh = append(fresh, t)
		}
	}
	return fresh
}

// consider quotes the fresh tasks of an award again, one after the other, and
// takes as many as there is room for.
func (m *Machine) consider(from grid.SiteID, msg protocol.Award, fresh []protocol.AwardedTask, v *verdict) {
	req, refusal, known := m.awardedRequirement(msg)
	offer := m.heldOffer(msg.OfferID, msg.Job, from)
	for i, t := range fresh {
		id := grid.AttemptID{Task: grid.TaskID{Job: msg.Job, Index: t.Index}, Token: t.Token}
		if !known {
			v.decline(id, refusal)
			continue
		}
		in := inquiry{job: msg.Job, submitter: from, count: uint32(len(fresh) - i), offer: offer}
		q, unfit, ok := m.quote(req, in)
		if ok && i == 0 && m.becameWorse(msg, q) {
			m.declineWorse(msg, fresh, q, v)
			return
		}
		task, valid := m.expand(msg, t)
		switch {
		case !ok:
			v.decline(id, unfit)
		case !valid:
			v.decline(id, grid.Refusal{Reason: grid.ReasonInvalid, Never: true})
		default:
			if a := m.take(from, id, task, q); a != nil {
				a.asks = msg.AskFirst
				v.taken = append(v.taken, a)
				continue
			}
			v.decline(id, grid.Refusal{Reason: grid.ReasonUnknownOffer})
		}
		// The same token is never accepted after it was declined: its submitter
		// may have awarded the task elsewhere by then.
		m.raiseToken(id.Task, id.Token)
	}
}

// awardedRequirement is what was announced of the job. It is the cache that
// counts, not the offer: an offer that has expired is as good as a new one, since
// the award is quoted again. An award of something else than was announced is
// refused.
func (m *Machine) awardedRequirement(msg protocol.Award) (grid.Requirement, grid.Refusal, bool) {
	entry, cached := m.cache.Get(m.now, msg.Job)
	if !cached {
		return grid.Requirement{}, grid.Refusal{Reason: grid.ReasonUnknownOffer}, false
	}
	req, s := entry.Value, msg.Spec
	same := s.Kind == req.Kind && s.OS == req.OS && s.Arch == req.Arch && s.Need == req.Need &&
		s.Runtime == req.Runtime && s.Map == req.Map
	if !same {
		return req, grid.Refusal{Reason: grid.ReasonInvalid}, false
	}
	return req, grid.Refusal{}, true
}

// becameWorse reports whether the runner-up is nearer by now than this site, by
// more than what is worth asking for.
func (m *Machine) becameWorse(msg protocol.Award, q quote) bool {
	d := q.parts.Distance
	return msg.HasNext && d > worsening*msg.Quoted && d > msg.RunnerUp
}

// declineWorse gives the award back with a new offer.
func (m *Machine) declineWorse(msg protocol.Award, fresh []protocol.AwardedTask, q quote, v *verdict) {
	d := protocol.Declined{Refusal: grid.Refusal{Reason: grid.ReasonWorse}}
	for _, t := range fresh {
		id := grid.AttemptID{Task: grid.TaskID{Job: msg.Job, Index: t.Index}, Token: t.Token}
		d.Attempts = append(d.Attempts, id)
		m.raiseToken(id.Task, id.Token)
	}
	m.dropOffer(msg.Job)
	if o, ok := m.open(q); ok {
		d.Quote = &o
	}
	v.declined = append(v.declined, d)
}

// expand makes the task of what was awarded. What a task's own item makes of
// paths and texts is checked as strictly as the template was.
func (m *Machine) expand(msg protocol.Award, t protocol.AwardedTask) (grid.Task, bool) {
	if fillings(msg.Spec)*len(t.Item.Value) > grid.MaxSpecText {
		return grid.Task{}, false
	}
	task := msg.Spec.Expand(msg.Job, t.Index, t.Item)
	filled := msg.Spec
	filled.Args, filled.Env, filled.Inputs, filled.Outputs = task.Args, task.Env, task.Inputs, task.Outputs
	if filled.Validate() != nil {
		return grid.Task{}, false
	}
	if limit := m.cfg.MaxRuntime; limit > 0 && (task.TimeLimit == 0 || task.TimeLimit > limit) {
		task.TimeLimit = limit
	}
	return task, true
}

// fillings counts where an item's text would be put into a task.
func fillings(s grid.Spec) int {
	const item = "{{item}}"
	n := 0
	for _, text := range s.Args {
		n += strings.Count(text, item)
	}
	for _, e := range s.Env {
		n += strings.Count(e.Value, item)
	}
	for _, in := range s.Inputs {
		n += strings.Count(in.Path, item)
	}
	for _, out := range s.Outputs {
		n += strings.Count(out.Path, item) + strings.Count(out.To, item)
	}
	return n
}

// take commits one attempt to the plan, or gives nil if the plan has no room
// after all.
func (m *Machine) take(from grid.SiteID, id grid.AttemptID, task grid.Task, q quote) *attempt {
	if !m.commit(id, q) {
		return nil
	}
	a := &attempt{id: id, submitter: from, task: task, parts: q.parts, phase: phaseStaging, accepted: m.now}
	m.roster.add(a)
	m.raiseToken(id.Task, id.Token)
	m.persist(a.fact())
	r := about(id, from)
	r.Value = q.parts.Distance
	m.report(step.LevelInfo, eventAccepted, r)
	return a
}

// answerAward says what was taken and what not, and fetches what is needed.
func (m *Machine) answerAward(from grid.SiteID, spec grid.Spec, v *verdict) {
	for _, d := range v.declined {
		r := about(d.Attempts[0], from)
		r.Reason, r.Value = d.Refusal.Reason, float64(len(d.Attempts))
		m.report(step.LevelInfo, eventDeclined, r)
		m.send(from, d)
	}
	var accepted []*attempt
	for _, a := range v.again {
		m.report(step.LevelDebug, eventDuplicate, about(a.id, from))
		if a.live() {
			accepted = append(accepted, a)
		} else {
			m.send(from, protocol.Exited{Attempt: a.id, Exit: a.exit})
		}
	}
	if accepted = append(accepted, v.taken...); len(accepted) > 0 {
		m.send(from, protocol.Accepted{Attempts: ids(accepted), Renewal: m.request(from)})
	}
	for _, a := range v.taken {
		m.emit(step.Stage{Attempt: a.id, Module: spec.Module, Inputs: a.task.Inputs, From: from})
		m.watch(a)
	}
	if len(v.taken) > 0 {
		m.expectLease(from)
	}
}
