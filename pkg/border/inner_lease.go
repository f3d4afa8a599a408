package border

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// leaseFraction is the part of a lease after which the next is asked for.
const leaseFraction = 3

// mostRenew bounds by what factor the pause grows while no lease comes.
const mostRenew = 8

// renewSoon makes sure that the leases of a neighbour's orders are asked for.
func (m *Machine) renewSoon(l *link) {
	if l == nil || !l.connected {
		return
	}
	l.renewPause = m.cfg.Renew
	if at := m.now.Add(m.cfg.Renew); l.renewAt.IsZero() || l.renewAt.After(at) {
		l.renewAt = at
		m.out.SetTimer(timerRenew, string(l.terms.Domain), at)
	}
}

// onRenewTimer asks for the leases of all of a neighbour's orders together.
func (m *Machine) onRenewTimer(domain grid.SiteID) {
	l := m.near.links[domain]
	if l == nil || l.renewAt.IsZero() || l.renewAt.After(m.now) {
		return
	}
	l.renewAt = time.Time{}
	wanting := m.guests.where(func(g *guest) bool { return g.domain == domain && g.exit == nil })
	if len(wanting) == 0 || !l.connected {
		return // the next order, or the neighbour's return, sets the timer again
	}
	m.askFor(wanting)
	pause := l.renewPause
	l.renewPause = min(2*l.renewPause, mostRenew*m.cfg.Renew)
	if !slices.ContainsFunc(wanting, func(g *guest) bool { return !g.until.After(m.now) }) {
		pause = wanting[0].long
		for _, g := range wanting {
			pause = min(pause, g.long)
		}
		pause = max(pause/leaseFraction, m.cfg.Renew/10)
	}
	l.renewAt = m.now.Add(pause)
	m.out.SetTimer(timerRenew, string(domain), l.renewAt)
}

// askFor asks for the leases of a neighbour's orders, which also says that they are here.
func (m *Machine) askFor(wanting []*guest) {
	for part := range slices.Chunk(wanting, protocol.MaxAttempts) {
		number := m.number()
		msg := protocol.BorderRenew{Number: number}
		for _, g := range part {
			g.asks.add(ask{number: number, at: m.now})
			msg.Attempts = append(msg.Attempts, g.attempt)
		}
		m.sendBorder(part[0].domain, msg)
	}
}

// onBorderLease moves the ceiling of orders: it counts from the sending of the request.
func (m *Machine) onBorderLease(domain grid.SiteID, msg protocol.BorderLease) {
	for _, id := range msg.Attempts {
		for _, g := range m.named(domain, id) {
			one, known := g.asks.find(msg.Number)
			if !known || g.exit != nil {
				m.unexpected(domain, "a lease that was not asked for")
				continue
			}
			g.heard, g.long = m.now, msg.Duration
			if l := m.near.links[domain]; l != nil {
				l.renewPause = m.cfg.Renew
			}
			if end := one.at.Add(msg.Duration); end.After(g.until) {
				g.until = end
				m.setCeiling(g)
			}
		}
	}
}

// named lists the orders of an attempt: one, or none.
func (m *Machine) named(domain grid.SiteID, id grid.AttemptID) []*guest {
	if m.cfg.NoRequestIDs {
		return m.guests.where(func(g *guest) bool { return g.domain == domain && g.attempt == id })
	}
	if g := m.guest(guestName(domain, id)); g != nil {
		return []*guest{g}
	}
	return nil
}

// setCeiling has the broker grant no lease that ends later than the order's own.
func (m *Machine) setCeiling(g *guest) {
	if g.job == "" || g.exit != nil || g.until.IsZero() {
		return
	}
	m.out.Emit(step.Order{Input: step.Ceiling{Job: g.job, Until: g.until}})
}

// sendState tells the neighbour how an order goes.
func (m *Machine) sendState(g *guest) {
	msg := protocol.BorderState{Attempt: g.attempt, Phase: grid.PhaseStaging}
	switch g.news.Phase {
	case grid.PhaseStaging, grid.PhaseRunning, grid.PhaseFrozen:
		msg = protocol.BorderState{
			Attempt: g.attempt, Phase: g.news.Phase, Done: g.news.Done, Total: g.news.Total,
			Reason: g.news.Reason, StartedAgo: g.news.StartedAgo,
		}
	default: // before it has a site, and between two, it counts as staging
	}
	if msg.Validate() == nil {
		m.sendBorder(g.domain, msg)
	}
}

func (m *Machine) sendEnd(g *guest) {
	m.sendBorder(g.domain, protocol.BorderEnd{
		Attempt: g.attempt, Exit: *g.exit, StartedAgo: m.ago(g.started), EndedAgo: m.ago(g.ended),
		UsedCoreMS: g.used,
	})
}

// onBorderFence stops what the neighbour fences off.
func (m *Machine) onBorderFence(domain grid.SiteID, msg protocol.BorderFence) {
	for _, below := range msg.Below {
		m.evictBelow(domain, below, "fenced off by the neighbour")
	}
}

func (m *Machine) evictBelow(domain grid.SiteID, below grid.AttemptID, why string) {
	for _, g := range m.guests.below(below) {
		if g.domain == domain {
			m.evict(g, why)
		}
	}
}

// evict stops an order and forgets it.
func (m *Machine) evict(g *guest, why string) {
	m.out.Report(step.LevelInfo, eventEvicted, step.Report{
		Attempt: g.attempt, Site: g.domain, Text: why,
	})
	m.forgetGuest(g)
}

// forgetGuest keeps nothing of an order, and has the broker do so.
func (m *Machine) forgetGuest(g *guest) {
	m.guests.remove(g)
	delete(m.foreign, g.job)
	m.out.StopTimer(timerGuest, g.name)
	m.out.Persist(step.Fact{Kind: factGiven, Key: g.name})
	if g.job != "" {
		m.callOff(g.job)
	}
	m.out.Emit(step.Discard{Attempt: g.attempt})
}

// callOff ends a job of the broker, if it has not ended, and has it forgotten.
func (m *Machine) callOff(job grid.JobID) {
	n := m.number()
	m.out.Emit(step.Order{Command: n, Input: step.CancelJob{Command: n, Job: job}})
	n = m.number()
	m.out.Emit(step.Order{Command: n, Input: step.ForgetJob{Command: n, Job: job}})
}

// onReceipt takes the receipt for an order that has ended, and counts it once.
func (m *Machine) onReceipt(domain grid.SiteID, msg protocol.BorderReceipt) {
	l := m.near.links[domain]
	for _, g := range m.named(domain, msg.Attempt) {
		var wrong string
		switch {
		case l == nil || g.exit == nil:
			wrong = "of an order that has not ended"
		case msg.Taker != domain || msg.Giver != m.cfg.Domain:
			wrong = "of other domains"
		case msg.UsedCoreMS > g.used:
			wrong = "of more than was used"
		case !msg.IsSignedBy(l.terms.Key, m.now.Add(m.ahead)):
			wrong = "not signed by the key of that domain, nor by its deputy"
		}
		if wrong != "" {
			m.out.Report(step.LevelWarn, eventForged, step.Report{
				Attempt: msg.Attempt, Site: domain, Reason: grid.ReasonInvalid,
				Text: "a receipt " + wrong,
			})
			continue
		}
		m.add(domain, msg.UsedCoreMS, 0)
		m.forgetGuest(g)
		m.out.Report(step.LevelInfo, eventGave, step.Report{
			Attempt: msg.Attempt, Site: domain, Value: float64(msg.UsedCoreMS) / 1000,
		})
	}
}
