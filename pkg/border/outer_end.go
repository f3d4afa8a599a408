package border

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// asks holds the last requests for a lease, the latest first: a lease may answer either.
type asks [2]ask

// ask is a request for a lease.
type ask struct {
	number uint64 // of this side's request; 0: none
	theirs uint64 // outer: the neighbour's request that it passes on
	at     time.Time
}

func (a *asks) add(one ask) { a[1], a[0] = a[0], one }

// find returns the request of a number.
func (a *asks) find(number uint64) (ask, bool) {
	for _, one := range a {
		if one.number == number && number != 0 {
			return one, true
		}
	}
	return ask{}, false
}

// onBorderRenew passes the requests of a neighbour on to the submitters: the first of an attempt
// says that it is taken. What nobody wants any more is fenced off.
func (m *Machine) onBorderRenew(domain grid.SiteID, msg protocol.BorderRenew) {
	taken, more := make(map[grid.SiteID][]grid.AttemptID), make(map[grid.SiteID][]grid.AttemptID)
	var below []grid.AttemptID
	number := m.number()
	for _, id := range msg.Attempts {
		e := m.errands.get(id, "")
		switch {
		case e == nil || e.domain != domain || !m.isTakers(e):
			below = append(below, above(id)) // also one that is receipted: its order came late
			continue
		case e.exit != nil:
			continue
		case !e.taken:
			e.taken, e.phase, e.taker = true, grid.PhaseStaging, m.near.links[domain].gateway
			m.saveErrand(e)
			m.out.Report(step.LevelInfo, eventTaken, step.Report{Attempt: id, Site: domain})
			taken[e.submitter] = append(taken[e.submitter], id)
		default:
			more[e.submitter] = append(more[e.submitter], id)
			m.bind(e)
		}
		e.heard = m.now
		e.asks.add(ask{number: number, theirs: msg.Number, at: m.now})
	}
	if len(below) > 0 {
		m.sendBorder(domain, protocol.BorderFence{Below: below})
	}
	for _, to := range slices.Sorted(maps.Keys(taken)) {
		m.sendAs(domain, to, protocol.Accepted{Attempts: taken[to], Renewal: number})
	}
	for _, to := range slices.Sorted(maps.Keys(more)) {
		m.sendAs(domain, to, protocol.Renew{Attempts: more[to], Renewal: number})
	}
}

// bind notes which gateway has an errand that an earlier version wrote down without it.
func (m *Machine) bind(e *errand) {
	if gateway := m.near.links[e.domain].gateway; e.taker == "" && gateway != "" {
		e.taker = gateway
		m.saveErrand(e)
	}
}

// onLease lends a submitter's lease on. The neighbour counts it from the sending of its own
// request, which was before that of this one.
func (m *Machine) onLease(from, to grid.SiteID, msg protocol.Lease) {
	lent := make(map[uint64]map[time.Duration][]grid.AttemptID)
	for _, id := range msg.Attempts {
		e := m.errands.get(id, "")
		if e == nil || e.submitter != from || e.domain != to || e.exit != nil || !m.isTakers(e) {
			m.unexpected(from, "a lease of an attempt that is not there")
			continue
		}
		one, known := e.asks.find(msg.Renewal)
		if !known {
			m.unexpected(from, "a lease that was not asked for")
			continue
		}
		long := msg.Duration
		if one.number != e.asks[0].number {
			long = min(long, protocol.MaxLateLease)
		}
		if e.began.IsZero() {
			e.began = m.now
			m.saveErrand(e)
		}
		e.heard = m.now
		if end := one.at.Add(long); end.After(e.until) {
			e.until = end
		}
		if lent[one.theirs] == nil {
			lent[one.theirs] = make(map[time.Duration][]grid.AttemptID)
		}
		lent[one.theirs][long] = append(lent[one.theirs][long], id)
	}
	for _, number := range slices.Sorted(maps.Keys(lent)) {
		for _, long := range slices.Sorted(maps.Keys(lent[number])) {
			m.sendBorder(to, protocol.BorderLease{
				Number: number, Attempts: lent[number][long], Duration: long,
			})
		}
	}
}

// onState tells the submitter how an attempt goes.
func (m *Machine) onState(domain grid.SiteID, msg protocol.BorderState) {
	e := m.errands.get(msg.Attempt, "")
	if e == nil || e.domain != domain || !e.taken || e.exit != nil || !m.isTakers(e) {
		m.unexpected(domain, "news of an attempt that is not there")
		return
	}
	e.told = e.told || e.here
	e.heard, e.phase = m.now, msg.Phase
	m.sendAs(domain, e.submitter, protocol.Progress{
		Attempt: msg.Attempt, Phase: msg.Phase, Done: msg.Done, Total: msg.Total,
		Reason: msg.Reason, StartedAgo: msg.StartedAgo,
	})
}

// onEnd takes the end of an attempt, and fetches what it left before the submitter hears of it.
func (m *Machine) onEnd(domain grid.SiteID, msg protocol.BorderEnd) {
	if r := m.receipts[msg.Attempt]; r != nil && r.Giver == domain {
		m.sendBorder(domain, r.message())
		return
	}
	e := m.errands.get(msg.Attempt, "")
	switch {
	case e == nil || e.domain != domain || !e.taken || !m.isTakers(e):
		m.sendBorder(domain, protocol.BorderFence{Below: []grid.AttemptID{above(msg.Attempt)}})
		return
	case e.exit != nil:
		return // it is repeated until the receipt
	}
	exit := msg.Exit
	e.ending = ending{
		exit: &exit, used: m.credible(e, msg.UsedCoreMS), started: m.since(msg.StartedAgo),
		ended: m.now.Add(-msg.EndedAgo),
	}
	e.heard, e.phase, e.pause = m.now, grid.PhaseCollecting, m.cfg.Again
	m.saveErrand(e)
	m.collect(e)
	m.rouse(e, e.pause)
}

// credible bounds what a neighbour may have used: not more than the task's cores since its first
// lease.
func (m *Machine) credible(e *errand, claimed int64) int64 {
	if e.began.IsZero() {
		return 0
	}
	most := e.spec.Need.MilliCPUs * m.now.Sub(e.began).Milliseconds() / 1000
	return min(claimed, max(most, 0))
}

// collect fetches what an attempt left.
func (m *Machine) collect(e *errand) {
	outputs := e.exit.CIDs()
	if len(outputs) == 0 {
		m.returned(e)
		return
	}
	m.out.Emit(step.Collect{
		Attempt: e.attempt, Outputs: outputs, From: e.domain, MostBytes: e.spec.Need.MayLeave(),
	})
}

// onCollected: what an attempt left is here. If it cannot be had for long enough, or was left at a
// gateway in whose place another one is connected, it is as lost there as here, and the task runs
// again elsewhere.
func (m *Machine) onCollected(in step.Collected) {
	e := m.errands.get(in.Attempt, "")
	switch {
	case e == nil || e.exit == nil || e.collected:
		return
	case in.Problem == "":
		m.returned(e)
	case !in.Local && (m.now.Sub(e.heard) >= collectWithin || m.isElsewhere(e)):
		lost := grid.Exit{
			Cause: grid.CauseData, Wall: e.exit.Wall,
			Text: cut("its outputs did not cross the border: " + in.Problem),
		}
		e.exit, e.used = &lost, 0
		m.saveErrand(e)
		m.returned(e)
	default: // the errand's timer tries again
	}
}

// collectWithin is the time in which what an attempt left must be had.
const collectWithin = 10 * time.Minute

func (m *Machine) returned(e *errand) {
	e.collected = true
	m.out.Report(step.LevelInfo, eventReturned, step.Report{Attempt: e.attempt, Site: e.domain})
	m.sendExited(e)
}

func (m *Machine) sendExited(e *errand) {
	m.sendAs(e.domain, e.submitter, protocol.Exited{
		Attempt: e.attempt, Exit: *e.exit, StartedAgo: m.ago(e.started), EndedAgo: m.ago(e.ended),
	})
}

// onExitAck receipts what the submitter has all of.
func (m *Machine) onExitAck(from, to grid.SiteID, msg protocol.ExitAck) {
	for _, id := range msg.Attempts {
		e := m.errands.get(id, "")
		if e == nil || e.submitter != from || e.domain != to || e.exit == nil || e.acked {
			continue
		}
		e.acked, e.pause = true, m.cfg.Again
		m.saveErrand(e)
		m.askToSign(e)
		m.rouse(e, e.pause)
	}
}

// receipt is the one that a neighbour was given for an attempt, kept for a while should it be lost.
type receipt struct {
	protocol.BorderReceipt
	at time.Time
}

func (r *receipt) message() protocol.Message { return r.BorderReceipt }

// owed is the receipt of an errand without its signature.
func (m *Machine) owed(e *errand) protocol.BorderReceipt {
	return protocol.BorderReceipt{
		Attempt: e.attempt, Giver: e.domain, Taker: m.cfg.Domain, UsedCoreMS: e.used,
	}
}

func (m *Machine) askToSign(e *errand) {
	m.out.Emit(step.Sign{ID: e.attempt.String(), Text: m.owed(e).SignedBytes()})
}

// onSigned gives the receipt, and counts it once.
func (m *Machine) onSigned(in step.Signed) {
	id, err := grid.ParseAttemptID(in.ID)
	e := m.errands.get(id, "")
	if err != nil || e == nil || !e.acked {
		return
	}
	r := &receipt{BorderReceipt: m.owed(e), at: m.now}
	r.Signature, r.Mandate = in.Signature, in.Mandate
	if in.Problem != "" || r.Validate() != nil {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{
			Attempt: id, Site: e.domain, Text: "the receipt could not be signed: " + in.Problem,
		})
		return // the errand's timer asks again
	}
	m.keepReceipt(r)
	m.add(e.domain, 0, e.used)
	m.forgetErrand(e)
	m.out.Report(step.LevelInfo, eventTook, step.Report{
		Attempt: id, Site: e.domain, Value: float64(e.used) / 1000,
	})
	m.sendBorder(e.domain, r.message())
}

// keepReceipt remembers a receipt, and forgets the oldest of too many.
func (m *Machine) keepReceipt(r *receipt) {
	if len(m.receipts) >= m.cfg.MaxOrders {
		oldest := slices.SortedFunc(maps.Values(m.receipts), func(a, b *receipt) int {
			return cmp.Or(a.at.Compare(b.at), a.Attempt.Compare(b.Attempt))
		})[0]
		delete(m.receipts, oldest.Attempt)
		m.out.Persist(step.Fact{Kind: factReceipt, Key: oldest.Attempt.String()})
	}
	m.receipts[r.Attempt] = r
	m.saveReceipt(r)
}
