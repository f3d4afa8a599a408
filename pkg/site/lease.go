package site

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerRenew asks a submitter for leases; its ID is the submitter.
const timerRenew = "renew"

// expectLease makes sure that leases of a submitter's new attempts are asked for
// again soon, should the answer to Accepted be lost.
func (m *Machine) expectLease(submitter grid.SiteID) {
	t := m.submitters.tenants[submitter]
	if t == nil {
		t = &tenant{}
		m.submitters.tenants[submitter] = t
	}
	if soon := m.now.Add(m.cfg.RenewRetry); t.next.IsZero() || t.next.After(soon) {
		m.renewAt(submitter, t, soon)
	}
}

func (m *Machine) renewAt(submitter grid.SiteID, t *tenant, at time.Time) {
	t.next = at
	m.out.SetTimer(timerRenew, string(submitter), at)
}

// onRenewTimer asks for the leases of all attempts of one submitter together.
func (m *Machine) onRenewTimer(submitter grid.SiteID) {
	t := m.submitters.tenants[submitter]
	if t == nil {
		m.out.Report(step.LevelDebug, eventStale, step.Report{
			Site: submitter, Text: "timer " + timerRenew,
		})
		return
	}
	theirs := m.roster.where(func(a *attempt) bool { return a.submitter == submitter })
	wanting := slices.DeleteFunc(slices.Clone(theirs), func(a *attempt) bool {
		return !a.wantsRenewal()
	})
	if len(wanting) == 0 {
		delete(m.submitters.tenants, submitter)
		return
	}
	m.sendRenewals(submitter, theirs)
	m.tellOfAll(t, wanting)
	m.renewAt(submitter, t, firstRenewal(wanting))
}

// sendRenewals asks for leases and tells the submitter all that this site has of it: as many
// messages as its attempts, theirs, need. Each is the full list of a range of them.
func (m *Machine) sendRenewals(submitter grid.SiteID, theirs []*attempt) {
	list := protocol.Listing{}
	for start := 0; start < len(theirs); start += protocol.MaxAttempts {
		part := theirs[start:min(start+protocol.MaxAttempts, len(theirs))]
		list.After, list.UpTo = list.UpTo, part[len(part)-1].id
		if start+len(part) == len(theirs) {
			list.UpTo = grid.AttemptID{}
		}
		if slices.ContainsFunc(part, (*attempt).wantsRenewal) {
			m.sendRenew(submitter, part, list)
		}
	}
}

// sendRenew asks for the leases of those of a part that want one, and says what is left of
// each.
func (m *Machine) sendRenew(submitter grid.SiteID, part []*attempt, list protocol.Listing) {
	msg := protocol.Renew{Renewal: m.submitters.requests.number(submitter, m.now), List: &list}
	for _, a := range part {
		if !a.wantsRenewal() {
			list.Also = append(list.Also, a.id)
			continue
		}
		m.asksWith(a, msg.Renewal)
		msg.Attempts = append(msg.Attempts, a.id)
		msg.Left = append(msg.Left, max(a.leaseUntil.Sub(m.now), 0))
	}
	m.out.Send(submitter, msg)
}

// wanting are a submitter's attempts whose leases are asked for together.
func (m *Machine) wanting(submitter grid.SiteID) []*attempt {
	return m.roster.where(func(a *attempt) bool {
		return a.submitter == submitter && a.wantsRenewal()
	})
}

// asksWith notes the request that asks for an attempt's lease, and when the next one does.
func (m *Machine) asksWith(a *attempt, request uint64) {
	a.request, a.renew = request, m.now.Add(m.renewPause(a))
}

// renewPause is the time between two requests for an attempt's lease: a third of the lease,
// but RenewRetry while it has never had one, and not much more while it has run out and the
// submitter may come back any time.
func (m *Machine) renewPause(a *attempt) time.Duration {
	if !a.leased {
		return m.cfg.RenewRetry
	}
	pause := a.leaseFor / leaseFraction
	if !a.leaseUntil.After(m.now) {
		pause = min(pause, max(leaseFraction*m.cfg.RenewRetry, time.Second))
	}
	return max(pause, m.cfg.RenewRetry/10)
}

// firstRenewal is when the first of some attempts has its lease asked for.
func firstRenewal(wanting []*attempt) time.Time {
	first := wanting[0].renew
	for _, a := range wanting[1:] {
		if a.renew.Before(first) {
			first = a.renew
		}
	}
	return first
}

// onLease prolongs the leases of the named attempts and starts what waited for
// one. A lease counts from the sending of the request it answers, and its end
// never moves backwards. One that answers a request which a later one has followed counts
// for little, see protocol.MaxLateLease: the submitter was told what is left by then, and
// may rely on it.
func (m *Machine) onLease(from grid.SiteID, msg protocol.Lease) {
	req, ok := m.submitters.requests.recall(msg.Renewal)
	if !ok || req.to != from {
		m.out.Report(step.LevelWarn, eventUnknownRenewal, step.Report{Site: from})
		return
	}
	honoured := false
	for _, id := range msg.Attempts {
		a := m.roster.all[id]
		switch {
		case a == nil:
			m.out.Report(step.LevelDebug, eventUnknownAttempt, about(id, from))
		case a.submitter != from:
			m.out.Report(step.LevelWarn, eventNotSubmitter, about(id, from))
		case !a.wantsLease():
			m.out.Report(step.LevelDebug, eventStale, about(id, from))
		default:
			granted := msg.Duration
			if most := m.cfg.LongestLease; most > 0 {
				granted = min(granted, most)
			}
			if a.request > msg.Renewal {
				granted = min(granted, protocol.MaxLateLease)
			}
			a.leaseFor = granted
			m.extend(a, req.at.Add(granted))
			m.renewAfter(a, req.at)
			honoured = true
		}
	}
	if t := m.submitters.tenants[from]; t != nil && honoured {
		m.afterLease(from, t)
	}
}

// extend moves the end of one attempt's lease.
func (m *Machine) extend(a *attempt, until time.Time) {
	if !until.After(a.leaseUntil) {
		m.out.Report(step.LevelDebug, eventStale, about(a.id, a.submitter))
		return
	}
	a.leased, a.leaseUntil = true, until
	m.noteFirstLease(a)
	if a.started && until.After(m.now) {
		m.out.Emit(step.ExtendLease{Attempt: a.id, LeaseUntil: until})
	}
	m.tryStart(a)
}

// renewAfter sets when a lease that has come is asked for again, counted from the sending of
// the request that it answers.
func (m *Machine) renewAfter(a *attempt, sent time.Time) {
	pause := m.renewPause(a)
	a.renew = sent.Add(pause)
	if soonest := m.now.Add(min(pause, m.cfg.RenewRetry)); a.renew.Before(soonest) {
		a.renew = soonest
	}
}

// afterLease sets the time of the next request. It follows from all attempts of the submitter:
// the leases of new ones, however quickly they come, put off no older one's renewal.
func (m *Machine) afterLease(submitter grid.SiteID, t *tenant) {
	wanting := m.wanting(submitter)
	if len(wanting) == 0 {
		return // the timer that is set finds nobody
	}
	if next := firstRenewal(wanting); !next.Equal(t.next) {
		m.renewAt(submitter, t, next)
	}
}

func ids(attempts []*attempt) []grid.AttemptID {
	list := make([]grid.AttemptID, len(attempts))
	for i, a := range attempts {
		list[i] = a.id
	}
	return list
}
