package site

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Check implements step.Machine: the plan's commitments are the live attempts,
// nothing was started without a lease, the facts are what the state says, and
// every table keeps its bound.
func (m *Machine) Check() error {
	for _, check := range []func() error{
		m.checkAttempts, m.checkAsking, m.checkOwner, m.checkPlan, m.checkRoster, m.checkFacts,
		m.checkBounds,
	} {
		if err := check(); err != nil {
			return fmt.Errorf("check site %s: %w", m.cfg.Self, err)
		}
	}
	return nil
}

func (m *Machine) checkAttempts() error {
	if !m.booted {
		return nil // restored attempts are given up at Boot
	}
	for _, a := range m.roster.sorted() {
		switch {
		case a.phase < phaseAsked || a.phase > phaseExited:
			return fmt.Errorf("attempt %s: phase %d", a.id, a.phase)
		case a.isLive() && a.started && !a.leased:
			return fmt.Errorf("attempt %s was started without ever having held a lease", a.id)
		case a.phase >= phaseStarting && a.phase <= phaseFrozen && !a.started:
			return fmt.Errorf("attempt %s is %s and was not started", a.id, a.phase)
		case a.phase < phaseStarting && a.started:
			return fmt.Errorf("attempt %s was started while %s", a.id, a.phase)
		case a.wantsRenewal() && m.submitters.tenants[a.submitter] == nil:
			return fmt.Errorf("attempt %s: nobody asks %s for its lease", a.id, a.submitter)
		}
	}
	return nil
}

// checkOwner verifies that exactly those attempts are suspended that have a reason to be:
// all of them while the owner needs the machine.
func (m *Machine) checkOwner() error {
	for _, a := range m.roster.where((*attempt).isUnderWay) {
		if why := m.frozenFor(a); m.booted && a.suspended != (why != grid.ReasonNone) {
			return fmt.Errorf("attempt %s: suspended is %t and the reason is %q", a.id, a.suspended, why)
		}
	}
	return nil
}

// checkPlan compares the plan with the attempts.
func (m *Machine) checkPlan() error {
	if err := m.plan.Check(); err != nil {
		return err
	}
	committed, waiting := m.plan.Commitments(), 0
	for _, c := range committed {
		a := m.roster.all[c.Attempt]
		if a == nil || !a.isLive() {
			return fmt.Errorf("the plan holds capacity for %s, which does not live", c.Attempt)
		}
		if !c.Running {
			waiting++
		}
		if a.started && !c.Running {
			return fmt.Errorf("attempt %s was started before its place in the plan", a.id)
		}
	}
	live := len(m.roster.where(func(a *attempt) bool {
		_, planned := m.plan.Commitment(a.id)
		// The plan lets go of promises that it cannot keep.
		return a.isLive() && (planned || a.phase != phaseStopping)
	}))
	if m.booted && live != len(committed) {
		return fmt.Errorf("%d attempts live and the plan holds capacity for %d", live, len(committed))
	}
	if m.booted && waiting > 0 && m.plan.timer.IsZero() {
		return fmt.Errorf("%d commitments wait and nothing is to wake the site for them", waiting)
	}
	return nil
}

// checkRoster compares the ways to find attempts with the attempts.
func (m *Machine) checkRoster() error {
	byJob, bySite, byTask := map[grid.JobID]int{}, map[grid.SiteID]int{}, 0
	for _, a := range m.roster.sorted() {
		byJob[a.id.Task.Job]++
		bySite[a.submitter]++
		use := m.roster.byJob[a.id.Task.Job]
		if use == nil || use.submitter != a.submitter {
			return fmt.Errorf("attempt %s: its job is bound to another submitter", a.id)
		}
		if use.attempts < byJob[a.id.Task.Job] || m.roster.bySite[a.submitter] < bySite[a.submitter] {
			return fmt.Errorf("attempt %s is not counted", a.id)
		}
		for i, b := range m.roster.byTask[a.id.Task] {
			if i > 0 && b.id.Token <= m.roster.byTask[a.id.Task][i-1].id.Token {
				return fmt.Errorf("task %s: its attempts are out of order", a.id.Task)
			}
			if b == a {
				byTask++
			}
		}
	}
	if !slices.IsSortedFunc(m.roster.order, byID) {
		return errors.New("the roster's attempts are out of order")
	}
	if len(byJob) != len(m.roster.byJob) || len(bySite) != len(m.roster.bySite) ||
		byTask != len(m.roster.all) || len(m.roster.order) != len(m.roster.all) {
		return fmt.Errorf("the roster's indices do not match its %d attempts", len(m.roster.all))
	}
	return nil
}

// checkFacts writes the facts again from the state and compares them with the
// table that the Persist effects have built.
func (m *Machine) checkFacts() error {
	want := step.NewFacts()
	for _, a := range m.roster.sorted() {
		if a.phase != phaseAsked { // nothing was said of it yet
			want.Apply(a.fact())
		}
	}
	if m.owner.paused.on {
		want.Apply(m.owner.paused.fact())
	}
	wanted, have := want.All(), m.out.Facts().All()
	if len(wanted) != len(have) {
		return fmt.Errorf("%d facts, want %d", len(have), len(wanted))
	}
	for i, f := range have {
		same := f.Kind == wanted[i].Kind && f.Key == wanted[i].Key
		if !same || !equalValues(f, wanted[i]) {
			return fmt.Errorf("fact %s %s is %s, want %s %s %s",
				f.Kind, f.Key, f.Value, wanted[i].Kind, wanted[i].Key, wanted[i].Value)
		}
	}
	return nil
}

// equalValues reports whether two facts say the same. Nearly always their texts do, too.
func equalValues(a, b step.Fact) bool {
	return bytes.Equal(a.Value, b.Value) || bytes.Equal(canonical(a), canonical(b))
}

// canonical writes a fact's value in one of the ways in which JSON can write it:
// text that is not UTF-8 is escaped when it is written first and not when it was
// read in between.
func canonical(f step.Fact) []byte {
	var value attemptFact
	if f.Kind != kindAttempt || json.Unmarshal(f.Value, &value) != nil {
		return f.Value
	}
	return step.NewFact(f.Kind, f.Key, value).Value
}

// checkBounds verifies that nothing grows without end.
func (m *Machine) checkBounds() error {
	for _, b := range []struct {
		what      string
		have, max int
	}{
		{"cached requirements", m.cache.Len(), m.cfg.CacheEntries},
		{"open offers", len(m.plan.Offers()), m.cfg.CacheEntries},
		{"remembered bindings", m.submitters.bindings.len(), maxBindings},
		{"remembered tokens", m.submitters.tokens.len(), maxTokens},
		{"remembered requests", len(m.submitters.requests.ring), maxRequests},
		{"lines of runs", m.submitters.lines.len(), maxPeers},
		{"names of submitters", m.submitters.names.len(), maxPeers},
		{"peers", len(m.links.peers), maxPeers},
		{"held data", len(m.held), maxHeldData},
		{"promises that were told", len(m.books.told), 2 * m.cfg.MaxAttempts},
		{"tenants", len(m.submitters.tenants), m.cfg.MaxAttempts},
	} {
		if b.have > b.max {
			return fmt.Errorf("%d %s, the limit is %d", b.have, b.what, b.max)
		}
	}
	if m.owner.paused.until != (time.Time{}) && !m.owner.paused.on {
		return fmt.Errorf("a pause until %s that is not on", m.owner.paused.until)
	}
	return nil
}
