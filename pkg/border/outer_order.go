package border

import (
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// How long what nobody speaks of any more is kept, and how long repetitions pause at most.
const (
	untaken  = 8 // so many repetitions of an order that is not taken
	maxPause = time.Minute
)

// errand is a task of this domain that a neighbour is to run, or runs.
type errand struct {
	domain    grid.SiteID
	attempt   grid.AttemptID
	submitter grid.SiteID
	passage   protocol.Passage
	spec      grid.Spec
	here      bool        // all that it needs is at this gateway
	told      bool        // ... and the neighbour knows
	taken     bool        // the neighbour has it; from here on it is a fact
	taker     grid.SiteID // the gateway there that has it; empty: not known
	asks      asks
	began     time.Time // when it had its first lease
	until     time.Time // the end of its lease, as this domain counts it
	made      time.Time
	heard     time.Time // when either side last spoke of it
	phase     grid.Phase
	ending
	collected bool // what it left is at this gateway
	acked     bool // the submitter has all that it wants
	pause     time.Duration
}

// ending says how an order ended.
type ending struct {
	exit    *grid.Exit // nil: it has not
	used    int64      // thousandths of a core-second
	started time.Time  // zero: not known
	ended   time.Time
}

// ago is the time since a moment, as messages tell it; 0: it is not known.
func (m *Machine) ago(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return min(max(m.now.Sub(t), 0), grid.MaxRuntime)
}

// since is the moment of so long ago; zero for 0.
func (m *Machine) since(ago time.Duration) time.Time {
	if ago == 0 {
		return time.Time{}
	}
	return m.now.Add(-ago)
}

// onAward orders tasks of a neighbour, each for itself. The submitter hears that they are taken
// when the neighbour has said so.
func (m *Machine) onAward(from, to grid.SiteID, msg protocol.Award) {
	declined := make(map[grid.Reason][]grid.AttemptID)
	for _, t := range msg.Tasks {
		id := grid.AttemptID{Task: grid.TaskID{Job: msg.Job, Index: t.Index}, Token: t.Token}
		if why := m.order(from, to, id, msg, t); why != grid.ReasonNone {
			declined[why] = append(declined[why], id)
		}
	}
	for why := grid.ReasonNone + 1; why <= grid.ReasonFull; why++ {
		if len(declined[why]) > 0 {
			m.sendAs(to, from, protocol.Declined{
				Attempts: declined[why], Refusal: grid.Refusal{Reason: why},
			})
		}
	}
}

// order makes an errand of one task, or says why none.
func (m *Machine) order(
	from, to grid.SiteID, id grid.AttemptID, msg protocol.Award, t protocol.AwardedTask,
) grid.Reason {
	if e := m.errands.get(id, ""); e != nil {
		if e.domain != to || e.submitter != from {
			return grid.ReasonInvalid
		}
		m.wakeErrand(e) // the award came again
		return grid.ReasonNone
	}
	l, why := m.near.open(to)
	if why != grid.ReasonNone {
		return why
	}
	way, ok := m.passage(from, to, msg.Job)
	spec, whole := alone(msg.Spec, id, t.Item)
	order := protocol.BorderOrder{Passage: way, Attempt: id, Spec: spec}
	switch {
	case !ok:
		return grid.ReasonPassedOn
	case msg.AskFirst || t.CopyOf != 0 || !staysOut(msg.Spec):
		return grid.ReasonStays
	case !whole || order.Validate() != nil || m.isStrange("", id):
		return grid.ReasonInvalid
	case len(m.errands) >= m.cfg.MaxOrders:
		return grid.ReasonTooMany
	case m.takeLeft(l) < spec.Need.MilliCPUs:
		return grid.ReasonShare
	}
	m.overtake(from, id)
	e := &errand{
		domain: to, attempt: id, submitter: from, passage: way, spec: spec, made: m.now,
		heard: m.now, phase: grid.PhaseAwarded, pause: m.cfg.Again,
	}
	m.errands.put(e)
	m.out.Report(step.LevelInfo, eventOrdered, step.Report{Attempt: id, Site: to})
	m.stage(e)
	m.sendOrder(e)
	m.rouse(e, m.cfg.Again)
	return grid.ReasonNone
}

// staysOut reports whether a spec may run in another domain, as mayCross does of a requirement.
func staysOut(s grid.Spec) bool {
	return s.Kind != grid.KindReservation && s.Window == grid.Window{} && s.Reservation == ""
}

// alone is a spec of one task, in which nothing is left to be filled in. What concerns this domain
// alone is left out. It reports false if a text would be filled in again.
func alone(s grid.Spec, id grid.AttemptID, item grid.Item) (grid.Spec, bool) {
	t := s.Expand(id.Task.Job, id.Task.Index, item)
	s.Args, s.Env, s.Inputs = t.Args, t.Env, t.Inputs
	s.Outputs = slices.Clone(t.Outputs)
	texts := slices.Clone(s.Args)
	for i := range s.Outputs {
		s.Outputs[i].To = ""
		texts = append(texts, s.Outputs[i].Path)
	}
	for _, v := range s.Env {
		texts = append(texts, v.Value)
	}
	for _, in := range s.Inputs {
		texts = append(texts, in.Path)
	}
	s.Project, s.Priority, s.Unattended = "", 0, grid.UnattendedFreeze
	return s, !slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(text, "{{index}}") || strings.Contains(text, "{{item}}") ||
			strings.Contains(text, "{{job}}")
	})
}

// abandon drops errands without a lease whose submitter is gone: it may award the same attempts by
// way of another gateway of this domain, and then no lease of them may come here.
func (m *Machine) abandon(submitter grid.SiteID) {
	for _, e := range m.errands.where(func(e *errand) bool {
		return e.submitter == submitter && e.began.IsZero() && e.exit == nil &&
			submitter != m.cfg.Here
	}) {
		m.fence(e, "its submitter is gone before its first lease")
	}
}

// overtake drops earlier attempts of a task: the submitter awards another only when nothing of them
// can run.
func (m *Machine) overtake(from grid.SiteID, id grid.AttemptID) {
	for _, e := range m.errands.below(id) {
		if e.submitter == from {
			m.fence(e, "a later attempt was awarded")
		}
	}
}

// stage brings what a task needs to this gateway. A neighbour has it from there.
func (m *Machine) stage(e *errand) {
	if e.spec.Module.CID == "" && len(e.spec.Inputs) == 0 {
		e.here = true
		return
	}
	m.out.Emit(step.Stage{
		Attempt: e.attempt, Module: e.spec.Module, Inputs: e.spec.Inputs, From: e.submitter,
	})
}

func (m *Machine) sendOrder(e *errand) {
	m.sendTaker(e, protocol.BorderOrder{
		Passage: e.passage, Attempt: e.attempt, Spec: e.spec, Here: e.here,
	})
}

// isTakers reports whether the neighbour's gateway that is connected has the errand, or may have
// it. What one gateway has taken no other one is told of, and from no other is heard: the first may
// run it for as long as its lease lasts.
func (m *Machine) isTakers(e *errand) bool {
	l := m.near.links[e.domain]
	return l != nil && (e.taker == "" || e.taker == l.gateway || m.cfg.NoGateways)
}

// isElsewhere reports whether another gateway of the neighbour is connected than the one that has
// the errand.
func (m *Machine) isElsewhere(e *errand) bool {
	l := m.near.links[e.domain]
	return l != nil && l.connected && !m.isTakers(e)
}

// sendTaker sends what is said of an errand to the gateway that has it, if that is connected.
func (m *Machine) sendTaker(e *errand, msg protocol.Message) {
	if m.isTakers(e) {
		m.sendBorder(e.domain, msg)
	}
}

// rouse sets the time at which an errand is looked at again.
func (m *Machine) rouse(e *errand, pause time.Duration) {
	m.out.SetTimer(timerErrand, e.attempt.String(), m.now.Add(pause))
}

// wakeErrand repeats what an errand waits for.
func (m *Machine) wakeErrand(e *errand) {
	switch {
	case e.acked:
		m.askToSign(e)
	case e.exit != nil && !e.collected:
		m.collect(e)
	case e.exit != nil:
		m.sendExited(e)
	case !e.taken && m.now.Sub(e.made) >= untaken*m.cfg.Again:
		m.fence(e, "the neighbour did not take it")
		return
	case e.taken && m.now.Sub(e.heard) >= m.cfg.Forget:
		m.fence(e, "nothing was heard of it") // also if the gateway that has it cannot be told more
		return
	case !e.taken, e.here && !e.told:
		m.sendOrder(e)
	default:
		m.rouse(e, e.heard.Add(m.cfg.Forget).Sub(m.now))
		return
	}
	if e.taken {
		e.pause = min(2*e.pause, maxPause)
	}
	m.rouse(e, e.pause)
}

// stagedErrand notes that what a task needs is at this gateway, or that it cannot be had.
func (m *Machine) stagedErrand(e *errand, in step.Staged) {
	if in.Problem == "" {
		e.here = true
		m.saveErrand(e)
		m.sendOrder(e)
		e.pause = m.cfg.Again
		m.rouse(e, e.pause)
		return
	}
	if e.exit != nil {
		return
	}
	text := "its inputs did not reach the gateway: " + in.Problem
	domain, to, taken := e.domain, e.submitter, e.taken
	m.fence(e, text)
	if taken {
		m.sendAs(domain, to, protocol.Exited{
			Attempt: e.attempt, Exit: grid.Exit{Cause: grid.CauseData, Text: cut(text)},
		})
		return
	}
	m.sendAs(domain, to, protocol.Declined{
		Attempts: []grid.AttemptID{e.attempt}, Refusal: grid.Refusal{Reason: grid.ReasonData},
	})
}

// cut shortens a text to what an exit may carry.
func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), 1<<10)], "") }

// fence drops an errand, and tells the neighbour to stop it.
func (m *Machine) fence(e *errand, why string) {
	m.sendTaker(e, protocol.BorderFence{Below: []grid.AttemptID{above(e.attempt)}})
	m.dropErrand(e, why)
}

// above fences off an attempt.
func above(id grid.AttemptID) grid.AttemptID {
	return grid.AttemptID{Task: id.Task, Token: max(id.Token, id.Token+1)}
}

func (m *Machine) dropErrand(e *errand, why string) {
	m.out.Report(step.LevelInfo, eventDropped, step.Report{
		Attempt: e.attempt, Site: e.domain, Text: why,
	})
	m.forgetErrand(e)
}

// forgetErrand keeps nothing of it.
func (m *Machine) forgetErrand(e *errand) {
	m.errands.remove(e)
	m.out.StopTimer(timerErrand, e.attempt.String())
	if e.taken {
		m.out.Persist(step.Fact{Kind: factTaken, Key: e.attempt.String()})
	}
	discard := step.Discard{Attempt: e.attempt}
	if e.exit != nil {
		discard.Outputs = e.exit.CIDs()
	}
	m.out.Emit(discard)
}

// onFence stops what the submitter fences off.
func (m *Machine) onFence(from, to grid.SiteID, below []grid.AttemptID) {
	for _, id := range below {
		for _, e := range m.errands.below(id) {
			if e.submitter == from && e.domain == to {
				m.fence(e, "fenced off by its submitter")
			}
		}
	}
}

// onCancel stops all that a neighbour has of a job.
func (m *Machine) onCancel(from, to grid.SiteID, job grid.JobID) {
	for _, e := range m.errands.where(func(e *errand) bool {
		return e.attempt.Task.Job == job && e.submitter == from && e.domain == to
	}) {
		m.fence(e, "called off by its submitter")
	}
}

// onBorderDeclined takes it that a neighbour does not take orders. One that it had taken has ended.
func (m *Machine) onBorderDeclined(domain grid.SiteID, msg protocol.BorderDeclined) {
	for _, id := range msg.Attempts {
		e := m.errands.get(id, "")
		if e == nil || e.domain != domain || e.taken {
			m.unexpected(domain, "a refusal of what was not ordered, or is taken")
			continue
		}
		m.dropErrand(e, "declined: "+msg.Refusal.Reason.String())
		m.sendAs(domain, e.submitter, protocol.Declined{
			Attempts: []grid.AttemptID{id}, Refusal: plainRefusal(msg.Refusal),
		})
	}
}
