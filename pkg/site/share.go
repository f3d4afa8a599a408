package site

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerShare ends the patience with an attempt that takes more than the owner gives now.
const timerShare = "share"

// share is the part of the ceilings that the owner gives now. The zero value is all of them.
type share struct {
	percent int64     // of the cores, 1 to 99; 0: all
	memory  int64     // of the memory, 1 to 99; 0: all
	until   time.Time // when that changes; zero: not known
	inUse   bool      // because somebody uses the machine, not by the hours
	surplus bool      // some attempt takes more
}

// limits reports whether it is less than all.
func (s share) limits() bool { return s.percent != 0 || s.memory != 0 }

// reason is why an attempt that takes more is suspended.
func (s share) reason() grid.Reason {
	if s.inUse {
		return grid.ReasonOwnerBusy
	}
	return grid.ReasonOwnerHours
}

// onShare takes another part of the cores. Like OwnerBusy it is no fact: the driver says it again
// after a restart.
func (m *Machine) onShare(in step.ShareChanged) {
	if in.Percent < 1 || in.Percent > 100 || in.Memory < 0 || in.Memory > 100 {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{
			Text: fmt.Sprintf("share: want 1 to 100 percent, have %d of the cores and %d of the "+
				"memory", in.Percent, in.Memory),
		})
		return
	}
	now := share{
		percent: in.Percent % 100, memory: in.Memory % 100, until: in.Until, inUse: in.InUse,
		surplus: m.owner.share.surplus,
	}
	if now == m.owner.share {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "the share was the same"})
		return
	}
	before := m.shared()
	m.owner.share = now
	m.setOutage()
	m.links.outdated = true
	m.bookingsChanged()
	m.out.Report(step.LevelInfo, eventShareChanged, step.Report{Value: float64(in.Percent)})
	if after := m.shared(); after.MilliCPUs > before.MilliCPUs ||
		after.MemoryBytes > before.MemoryBytes {
		m.noteRoom()
	}
}

// shared are the ceilings that hold now: of cores and memory the owner may give a part.
func (m *Machine) shared() grid.Resources {
	all := m.capability.Total
	if of := m.owner.share.percent; of != 0 {
		all.MilliCPUs = all.MilliCPUs * of / 100
	}
	if of := m.owner.share.memory; of != 0 {
		whole, rest := all.MemoryBytes/100, all.MemoryBytes%100 // so that nothing overflows
		all.MemoryBytes = whole*of + rest*of/100
	}
	return all
}

// settleShare suspends running attempts that take more cores or memory than the owner gives now,
// and lets them go on when there is space: what was promised a time first, then by when they began.
// One that has waited for as long as for an owner who stays ends here, and goes on elsewhere, which
// frees its memory, too.
func (m *Machine) settleShare() {
	if !m.owner.share.limits() && !m.owner.share.surplus {
		return
	}
	free, due := m.shared(), time.Time{}
	m.owner.share.surplus = false
	for _, c := range m.underWay() {
		a := m.roster.all[c.Attempt]
		if a.displaced != grid.ReasonNone {
			m.setSurplus(a, false) // it runs no more as it is
			continue
		}
		fits := c.Give.MilliCPUs <= free.MilliCPUs && c.Give.MemoryBytes <= free.MemoryBytes
		if fits {
			free.MilliCPUs -= c.Give.MilliCPUs
			free.MemoryBytes -= c.Give.MemoryBytes
		}
		m.setSurplus(a, !fits)
		if fits {
			continue
		}
		m.owner.share.surplus = true
		patience := a.leaving.since.Add(m.cfg.OwnerPatience)
		if !patience.After(m.now) {
			m.stop(a, told, m.owner.share.reason().String())
		} else if due.IsZero() || patience.Before(due) {
			due = patience
		}
	}
	m.armShare(due)
}

func (m *Machine) armShare(due time.Time) {
	if due.IsZero() {
		m.out.StopTimer(timerShare, "")
		return
	}
	m.out.SetTimer(timerShare, "", due)
}

// underWay are the commitments of attempts that were started, and that take cores of the site.
func (m *Machine) underWay() []plan.Commitment {
	var all []plan.Commitment
	for _, a := range m.roster.where((*attempt).isUnderWay) {
		if c, planned := m.plan.Commitment(a.id); planned && !c.Holds {
			all = append(all, c)
		}
	}
	promised := func(c plan.Commitment) int {
		if c.Class == plan.ClassVarTime {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(c, d plan.Commitment) int {
		return cmp.Or(
			promised(c)-promised(d), c.Start.Compare(d.Start), c.Attempt.Compare(d.Attempt),
		)
	})
	return all
}

// setSurplus suspends an attempt that takes too much, or lets it go on.
func (m *Machine) setSurplus(a *attempt, is bool) {
	if a.surplus == is {
		return
	}
	a.surplus = is
	if !is {
		m.proceed(a)
		return
	}
	r := about(a.id, a.submitter)
	r.Reason = m.owner.share.reason()
	m.out.Report(step.LevelInfo, eventSurplus, r)
	m.suspend(a)
}
