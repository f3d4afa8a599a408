package site

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerShare ends the patience with an attempt that takes more than the owner gives now.
const timerShare = "share"

// share is the part of the cores that the owner gives at this time of the week. The zero value is
// all of them.
type share struct {
	percent int64     // 1 to 99; 0: all
	until   time.Time // when that changes; zero: not known
	surplus bool      // some attempt takes more
}

// onShare takes another part of the cores. Like OwnerBusy it is no fact: the driver says it again
// after a restart.
func (m *Machine) onShare(in step.ShareChanged) {
	if in.Percent < 1 || in.Percent > 100 {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{
			Text: "share: want 1 to 100 percent, have " + strconv.FormatInt(in.Percent, 10),
		})
		return
	}
	now := share{percent: in.Percent % 100, until: in.Until, surplus: m.owner.share.surplus}
	if now == m.owner.share {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "the share was the same"})
		return
	}
	before := m.sharedCores()
	m.owner.share = now
	m.setOutage()
	m.links.outdated = true
	m.bookingsChanged()
	m.out.Report(step.LevelInfo, eventShareChanged, step.Report{Value: float64(in.Percent)})
	if m.sharedCores() > before {
		m.noteRoom()
	}
}

// sharedCores are the thousandths of cores that the owner gives now.
func (m *Machine) sharedCores() int64 {
	all := m.capability.Total.MilliCPUs
	if m.owner.share.percent == 0 {
		return all
	}
	return all * m.owner.share.percent / 100
}

// settleShare suspends running attempts that take more cores than the owner gives now, and lets
// them go on when there is space: what was promised a time first, then by when they began. One
// that has waited for as long as for an owner who stays ends here, and goes on elsewhere.
func (m *Machine) settleShare() {
	if m.owner.share.percent == 0 && !m.owner.share.surplus {
		return
	}
	free, due := m.sharedCores(), time.Time{}
	m.owner.share.surplus = false
	for _, c := range m.underWay() {
		a := m.roster.all[c.Attempt]
		if a.displaced != grid.ReasonNone {
			m.setSurplus(a, false) // it runs no more as it is
			continue
		}
		fits := c.Give.MilliCPUs <= free
		if fits {
			free -= c.Give.MilliCPUs
		}
		m.setSurplus(a, !fits)
		if fits {
			continue
		}
		m.owner.share.surplus = true
		patience := a.leaving.since.Add(m.cfg.OwnerPatience)
		if !patience.After(m.now) {
			m.stop(a, told, grid.ReasonOwnerHours.String())
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
	r.Reason = grid.ReasonOwnerHours
	m.out.Report(step.LevelInfo, eventSurplus, r)
	m.suspend(a)
}
