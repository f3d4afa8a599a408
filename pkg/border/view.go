package border

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// LinkState shows one link.
type LinkState struct {
	Link      step.Link
	Connected bool      // the neighbour's gateway is
	Since     time.Time // it is connected, or was last; zero: never in this run
	// Given and Taken are core-seconds by receipt: what that domain has used here, and this one
	// there.
	Given, Taken float64
	Owes         bool // more than its credit: others are served first
	Here         int  // its orders here that have not ended
	There        int  // orders of this domain under way there
}

// OrderState shows one order under way.
type OrderState struct {
	Domain    grid.SiteID    // the neighbour
	Attempt   grid.AttemptID // of the domain that ordered it
	Name      string         // of its job
	Submitter grid.SiteID    // there: whose job it is; empty: it is the neighbour's
	Job       grid.JobID     // here: as which job it runs; empty: it does not yet
	Phase     grid.Phase
	MilliCPUs int64     // thousandths of a core
	Until     time.Time // the end of its lease; zero: it has none
}

// Links shows all links, ascending by domain.
func (m *Machine) Links() []LinkState {
	var all []LinkState
	for _, l := range m.near.sorted() {
		f := m.favours.of(l.terms.Domain)
		all = append(all, LinkState{
			Link: l.terms, Connected: l.connected, Since: l.since,
			Given: float64(f.Given) / 1000, Taken: float64(f.Taken) / 1000,
			Owes: m.owes(l.terms.Domain), Here: m.running(l.terms.Domain),
			There: len(m.errandsOf(l.terms.Domain)),
		})
	}
	return all
}

// Orders shows what is under way: what neighbours run for this domain, then what this one runs for
// them, each ascending by attempt.
func (m *Machine) Orders() (there, here []OrderState) {
	for _, e := range slices.Clone(m.errands) {
		there = append(there, OrderState{
			Domain: e.domain, Attempt: e.attempt, Name: e.spec.Name, Submitter: e.submitter,
			Phase: e.phase, MilliCPUs: e.spec.Need.MilliCPUs, Until: e.until,
		})
	}
	for _, g := range slices.Clone(m.guests) {
		s := OrderState{
			Domain: g.domain, Attempt: g.attempt, Name: g.spec.Name, Job: g.job,
			Phase: max(g.news.Phase, grid.PhaseWaiting), MilliCPUs: g.spec.Need.MilliCPUs,
			Until: g.until,
		}
		if g.exit != nil {
			s.Phase = grid.PhaseCollecting
		}
		here = append(here, s)
	}
	return there, here
}
