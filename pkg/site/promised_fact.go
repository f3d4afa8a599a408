package site

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// promisedFact is the place in the plan that an attempt was promised, and what else is
// needed to take it up again. Times are ms since 1970 UTC, 0 = none, on the wall clock as it
// stood when this was written.
type promisedFact struct {
	StartMS       int64          `json:"start_ms"`
	EndMS         int64          `json:"end_ms"`
	Give          grid.Resources `json:"give"`
	Class         plan.Class     `json:"class"`
	NotBeforeMS   int64          `json:"not_before_ms,omitempty"`
	DeadlineMS    int64          `json:"deadline_ms,omitempty"`
	LatestStartMS int64          `json:"latest_start_ms,omitempty"`
	StartByMS     int64          `json:"start_by_ms,omitempty"`
	Priority      int32          `json:"priority,omitempty"`
	Project       string         `json:"project,omitempty"`
	Overrun       grid.Overrun   `json:"overrun,omitempty"`
	Holds         bool           `json:"holds,omitempty"`
	Within        string         `json:"within,omitempty"`
	Module        grid.Input     `json:"module,omitzero"`
	Key           []byte         `json:"key,omitempty"` // of an encrypted job, for this site alone
	Unwanted      bool           `json:"unwanted,omitempty"`
	anchor
}

func (m *Machine) newPromisedFact(a *attempt, c plan.Commitment) *promisedFact {
	f := &promisedFact{
		StartMS: step.MS(c.Start), EndMS: step.MS(c.End), Give: c.Give, Class: c.Class,
		NotBeforeMS: step.MS(c.NotBefore), DeadlineMS: step.MS(c.Deadline),
		LatestStartMS: step.MS(c.LatestStart), Priority: c.Priority, Project: c.Project,
		Overrun: c.Overrun, Holds: c.Holds, Module: a.module, StartByMS: step.MS(a.startBy),
		Key: a.key, Unwanted: a.unwanted, anchor: m.clocks.anchor(),
	}
	if c.Within != (grid.AttemptID{}) {
		f.Within = c.Within.String()
	}
	f.shift(m.clocks.ahead)
	return f
}

// shift moves all times.
func (f *promisedFact) shift(by time.Duration) {
	for _, ms := range []*int64{
		&f.StartMS, &f.EndMS, &f.NotBeforeMS, &f.DeadlineMS, &f.LatestStartMS, &f.StartByMS, &f.ZeroMS,
	} {
		if *ms != 0 {
			*ms += by.Milliseconds()
		}
	}
}

// rereadPlaces moves the places that an earlier run has promised to where they are on the clock
// of this run, if a clock goes on that both have read: the wall clock may have been set while
// no agent ran. After a boot of the machine there is no other clock, and submitters are told
// when their attempts are to start.
func (m *Machine) rereadPlaces() {
	for _, a := range m.roster.where((*attempt).isPlaced) {
		if by := a.place.setSince(m.clocks.lasting); by.Abs() > clockJitter {
			a.place.shift(by)
			m.save(a)
		}
	}
}

// commitment is the promise of an attempt as the plan knows it.
func (f *promisedFact) commitment(a *attempt) plan.Commitment {
	c := plan.Commitment{
		Attempt: a.id, Submitter: a.submitter, Project: f.Project, Give: f.Give, Class: f.Class,
		Priority: f.Priority, NotBefore: step.FromMS(f.NotBeforeMS), Deadline: step.FromMS(f.DeadlineMS),
		LatestStart: step.FromMS(f.LatestStartMS), Start: step.FromMS(f.StartMS),
		End: step.FromMS(f.EndMS), AwaitsData: !f.Holds, Overrun: f.Overrun, Holds: f.Holds,
	}
	c.Within, _ = parseAttempt(f.Within)
	return c
}

// validate reports a place that no plan could have.
func (f *promisedFact) validate() error {
	switch {
	case f == nil:
		return nil
	case f.StartMS >= f.EndMS || f.Class > plan.ClassVarTime || f.Overrun > grid.OverrunStop:
		return fmt.Errorf("%w: a place in the plan from %d to %d ms, class %d",
			grid.ErrInvalid, f.StartMS, f.EndMS, f.Class)
	}
	if _, ok := parseAttempt(f.Within); !ok && f.Within != "" {
		return fmt.Errorf("%w: a place within %q", grid.ErrInvalid, f.Within)
	}
	return f.Give.Validate()
}

// keptPromises reads from the facts the places in the plan that can still be kept. What
// is bound to a reservation is kept with it.
func (m *Machine) keptPromises() []plan.Commitment {
	var list []plan.Commitment
	for _, bound := range []bool{false, true} {
		for _, a := range m.roster.where((*attempt).wantsLease) {
			if a.place == nil || a.started || !a.place.isKeepable(m.now) {
				continue
			}
			if (a.place.Within != "") != bound {
				continue
			}
			c := a.place.commitment(a)
			held := func(h plan.Commitment) bool { return h.Holds && h.Attempt == c.Within }
			if bound && !slices.ContainsFunc(list, held) {
				continue
			}
			list = append(list, c)
		}
	}
	return list
}

// takeUp goes on with an attempt that was promised a later start before the agent
// died.
func (m *Machine) takeUp(a *attempt, c plan.Commitment) {
	a.module, a.key = a.place.Module, a.place.Key
	a.estimate, a.accepted = c.End.Sub(c.Start)-startGuard, m.now
	a.startBy, a.unwanted = step.FromMS(a.place.StartByMS), a.place.Unwanted
	if a.reserves() {
		a.phase = phaseReady
	}
	m.out.Report(step.LevelInfo, eventTakenUp, about(a.id, a.submitter))
	m.setUp(a.submitter, []*attempt{a})
}

// isKeepable reports whether an attempt that a restart found can still be begun in its
// place: one that has no fixed start may begin a little later.
func (f *promisedFact) isKeepable(now time.Time) bool {
	switch {
	case f.Holds:
		return step.FromMS(f.EndMS).After(now)
	case f.Class == plan.ClassFixTime:
		return step.FromMS(f.StartMS).After(now)
	case f.Class == plan.ClassDeadline:
		return f.LatestStartMS == 0 || step.FromMS(f.LatestStartMS).After(now)
	default:
		return step.FromMS(f.StartMS).After(now)
	}
}
