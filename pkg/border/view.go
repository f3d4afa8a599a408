package border

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// LinkState shows one link.
type LinkState struct {
	Link      step.Link
	Connected bool      // the neighbour's gateway is
	Since     time.Time // it is connected, or was last; zero: never in this run
	// Given and Taken are core-seconds by receipt: what that domain has used here, and this one there.
	Given, Taken float64
	GivesLast    bool // it owes more than its credit: others are served first
	Here         int  // its orders that are under way here
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
	Cores     int64     // thousandths
	Until     time.Time // the lease that it has; zero: none
}

// Links shows all links, ascending by domain.
func (m *Machine) Links() []LinkState { return nil }

// Orders shows what is under way: what neighbours run for this domain, then what runs here for them,
// each ascending by attempt.
func (m *Machine) Orders() (there, here []OrderState) { return nil, nil }
