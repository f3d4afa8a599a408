package protocol

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// HoldOffer asks the site to make its offer firm: to hold what it quoted until the
// offer's validity ends (Migol 6.2.1: the reservation request). The answer is a Bid
// with a new, firm offer, or a Refuse.
type HoldOffer struct {
	Job     grid.JobID
	Seq     uint32    // of the announcement that was answered
	OfferID uint64    // the offer that was made
	Tasks   uint32    // how many tasks it is wanted for, at least 1
	At      time.Time // the only start of use, for parts that start together; zero = as quoted
	Clock   time.Time // as in Announce; At is a time on it
}

// MayStart asks for the first lease of attempts that were awarded with AskFirst and
// whose turn has come. The answer is a Lease or a Fence.
type MayStart struct {
	Renewal  uint64 // as in Renew
	Attempts []grid.AttemptID
}

// Validate reports the first field that is out of its range.
func (m HoldOffer) Validate() error {
	if m.OfferID == 0 || m.Tasks == 0 || m.Tasks > grid.MaxTasks {
		return invalidf("hold offer: want an offer and 1 to %d tasks, have %d", grid.MaxTasks, m.Tasks)
	}
	return checkAnswer(m.Job, m.Seq)
}

// Validate reports the first field that is out of its range.
func (m MayStart) Validate() error { return checkAttempts(m.Attempts) }
