package site

import (
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// worsening is the factor by which a site's distance may have grown between its offer and
// the award before it asks whether the runner-up is now nearer.
const worsening = 1.1

// verdict holds what becomes of the tasks of one award.
type verdict struct {
	again    []*attempt // accepted before: the answer is repeated
	taken    []*attempt
	asked    []*attempt // accepted if the sandbox can keep the plan
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
	v.declined = append(v.declined, protocol.Declined{
		Attempts: []grid.AttemptID{id}, Refusal: refusal,
	})
}

// add sorts an attempt that has its place in the plan.
func (v *verdict) add(a *attempt) {
	if a.phase == phaseAsked {
		v.asked = append(v.asked, a)
		return
	}
	v.taken = append(v.taken, a)
}

// onAward is thesis 4.1, step 4: the full description arrives and the site
// begins to process it. What it quoted before binds nobody; it looks again.
func (m *Machine) onAward(from grid.SiteID, msg protocol.Award) {
	if owner, known := m.recallOwner(msg.Job); known && owner != from {
		m.out.Report(step.LevelWarn, eventNotSubmitter, aboutJob(msg.Job, from))
		return
	}
	m.hearClock(from, msg.Clock)
	v := &verdict{}
	if fresh := m.sift(msg, v); len(fresh) > 0 {
		m.consider(from, msg, fresh, v)
	}
	m.answerAward(from, v)
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
		case a != nil, t.Token <= m.recallToken(id.Task):
			v.decline(id, grid.Refusal{Reason: grid.ReasonStale})
		default:
			for _, older := range m.roster.ofTask(id.Task) {
				m.stop(older, untold, "a later attempt was awarded")
			}
			fresh = append(fresh, t)
		}
	}
	return fresh
}

// consider quotes the fresh tasks of an award again, one after the other, and
// takes as many as it has capacity for.
func (m *Machine) consider(
	from grid.SiteID, msg protocol.Award, fresh []protocol.AwardedTask, v *verdict,
) {
	req, refusal, known := m.awardedRequirement(from, msg)
	offer := m.heldOffer(msg.OfferID, msg.Job, from)
	for i, t := range fresh {
		id := grid.AttemptID{Task: grid.TaskID{Job: msg.Job, Index: t.Index}, Token: t.Token}
		if !known {
			v.decline(id, refusal)
			continue
		}
		in := inquiry{job: msg.Job, submitter: from, count: uint32(len(fresh) - i), offer: offer}
		q, unfit, ok := m.quoteAwarded(req, in)
		if ok && i == 0 && m.isWorse(msg, q) {
			m.declineWorse(msg, fresh, q, v)
			return
		}
		task, valid := m.expand(msg, t)
		switch {
		case !ok:
			v.decline(id, unfit)
		case !valid:
			v.decline(id, grid.Refusal{Reason: grid.ReasonInvalid, Never: true})
		case !isCoveredItem(msg.Spec, t):
			v.decline(id, grid.Refusal{Reason: grid.ReasonSignature, Never: true})
		default:
			if a := m.take(id, msg, awarded{task, m.trusted(task, t.Saved)}, q); a != nil {
				v.add(a)
				continue
			}
			v.decline(id, grid.Refusal{Reason: grid.ReasonUnknownOffer})
		}
		// The same token is never accepted after it was declined: its submitter
		// may have awarded the task elsewhere by then.
		m.raiseToken(id.Task, id.Token)
	}
}

// awardedRequirement returns the requirement that was announced of the job. The cache
// counts, not the offer: an offer that has expired is as good as a new one, since
// the award is quoted again. An award of something else than was announced is
// refused.
func (m *Machine) awardedRequirement(
	from grid.SiteID, msg protocol.Award,
) (grid.Requirement, grid.Refusal, bool) {
	entry, cached := m.cache.Get(m.now, msg.Job)
	if !cached {
		return grid.Requirement{}, grid.Refusal{Reason: grid.ReasonUnknownOffer}, false
	}
	req, s := entry.Value.requirement(), msg.Spec
	same := s.Kind == req.Kind && s.OS == req.OS && s.Arch == req.Arch && s.Need == req.Need &&
		s.Runtime == req.Runtime && s.Map == req.Map && s.Project == req.Project &&
		s.Reservation == req.Reservation && s.Signature == req.Signature &&
		s.Encrypted == req.Encrypted && s.Encrypted == (len(msg.Key) > 0)
	switch {
	case !same:
		return req, grid.Refusal{Reason: grid.ReasonInvalid}, false
	case !isCovered(s):
		return req, grid.Refusal{Reason: grid.ReasonSignature, Never: true}, false
	}
	// Parts that start together learn their start with the award.
	req.Window = m.windowHere(from, s.Window)
	return req, grid.Refusal{}, true
}

// isWorse reports whether the runner-up is nearer by now than this site, by
// more than what is worth asking for.
func (m *Machine) isWorse(msg protocol.Award, q quote) bool {
	d := q.parts.Distance
	return msg.HasNext && d > worsening*msg.Quoted && d > msg.RunnerUp
}

// declineWorse gives the award back with a new offer.
func (m *Machine) declineWorse(
	msg protocol.Award, fresh []protocol.AwardedTask, q quote, v *verdict,
) {
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
	task.OfMany = len(msg.Tasks) > 1 || t.Index > 0 || t.Item.Value != ""
	if t.CopyOf > 0 {
		task.CopyOf = grid.TaskID{Job: msg.Job, Index: t.CopyOf - 1}
	}
	filled := msg.Spec
	filled.Args, filled.Env = task.Args, task.Env
	filled.Inputs, filled.Outputs = task.Inputs, task.Outputs
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

// awarded is a task with the checkpoints that it may go on from.
type awarded struct {
	task  grid.Task
	saved []grid.Checkpoint
}

// take commits one attempt to the plan; it returns nil if the plan has no capacity
// after all.
func (m *Machine) take(id grid.AttemptID, msg protocol.Award, work awarded, q quote) *attempt {
	c, ok := m.commit(id, msg.Spec, q)
	if !ok {
		return nil
	}
	a := &attempt{
		id: id, submitter: c.Submitter, task: work.task, module: msg.Spec.Module, parts: q.parts,
		key:    msg.Key,
		saving: newSaving(work.saved),
		phase:  phaseAsked, accepted: m.now, estimate: c.End.Sub(c.Start) - startGuard,
		asks:     msg.AskFirst,
		startBy:  m.promisedStart(msg.Job, c),
		unwanted: msg.Spec.Unattended == grid.UnattendedStop,
	}
	// Attempts that others queue, too, need not outlive a restart.
	if (c.AwaitsData || c.Holds) && !a.asks {
		a.place = m.newPromisedFact(a, c)
	}
	m.roster.add(a)
	m.raiseToken(id.Task, id.Token)
	if c.Class == plan.ClassVarTime || c.Holds { // else the sandbox is asked first
		m.accept(a)
	}
	return a
}

// accept makes the promise of an attempt durable.
func (m *Machine) accept(a *attempt) {
	a.phase = phaseStaging
	if a.reserves() {
		a.phase = phaseReady // there is nothing to fetch
	}
	m.save(a)
	r := about(a.id, a.submitter)
	r.Value = a.parts.Distance
	m.out.Report(step.LevelInfo, eventAccepted, r)
}

// answerAward says what was taken and what not, and fetches what is needed.
func (m *Machine) answerAward(from grid.SiteID, v *verdict) {
	for _, d := range v.declined {
		r := about(d.Attempts[0], from)
		r.Reason, r.Value = d.Refusal.Reason, float64(len(d.Attempts))
		m.out.Report(step.LevelInfo, eventDeclined, r)
		m.out.Send(from, d)
	}
	var accepted []*attempt
	for _, a := range v.again {
		m.out.Report(step.LevelDebug, eventDuplicate, about(a.id, from))
		switch {
		case a.phase == phaseAsked: // the answer follows when the sandbox has said so
		case a.isLive():
			accepted = append(accepted, a)
		default:
			m.out.Send(from, m.exitedOf(a))
		}
	}
	m.sendAccepted(from, append(accepted, v.taken...))
	m.setUp(from, v.taken)
	for _, a := range v.asked {
		c, _ := m.plan.Commitment(a.id)
		m.out.Emit(step.Verify{Attempt: a.id, Task: a.task, Start: c.Start, End: c.End})
	}
}

func (m *Machine) sendAccepted(to grid.SiteID, accepted []*attempt) {
	if len(accepted) > 0 {
		number := m.submitters.requests.number(to, m.now)
		for _, a := range accepted {
			m.asksWith(a, number)
		}
		m.out.Send(to, protocol.Accepted{Attempts: ids(accepted), Renewal: number})
	}
}

// setUp fetches what accepted attempts need, also long before their time, and sees
// to their leases.
func (m *Machine) setUp(from grid.SiteID, accepted []*attempt) {
	for _, a := range accepted {
		m.sendStart(a)
		if a.reserves() {
			continue
		}
		a.fetching = true
		m.out.Emit(a.stage(from))
		if !a.asks { // it has no lease before its turn
			m.watch(a)
		}
	}
	if slices.ContainsFunc(accepted, (*attempt).wantsRenewal) {
		m.expectLease(from)
	}
}

// stage names all that the attempt needs before it starts, from a site that has it.
func (a *attempt) stage(from grid.SiteID) step.Stage {
	e := step.Stage{
		Attempt: a.id, Module: a.module, Inputs: a.task.Inputs, From: from, Key: a.key,
	}
	if len(a.saving.from) > 0 && !a.task.Checkpoint.Off {
		e.Saved, e.Work = a.saving.from, a.task.WorkDigest()
	}
	return e
}
