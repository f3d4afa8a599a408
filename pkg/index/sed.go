package index

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// DefaultReservations is the number of sites that Migol asks for a reservation at the
// same time.
const DefaultReservations = 3

// Reservation is a site's answer to the request to keep a place for a task. Times
// are seconds from now; infinity means never.
type Reservation struct {
	Site            grid.SiteID
	Rank            float64 // the order in which sites are asked, lowest first: the distance
	Accepted        bool    // false: the site rejected, and its start counts for nothing
	StartSeconds    float64 // the earliest time at which the site can start the task
	TransferSeconds float64 // until the task's inputs are there
	RuntimeSeconds  float64
}

func (r Reservation) validate() error {
	return errors.Join(argument.Amount("rank", r.Rank), argument.Amount("start", r.StartSeconds),
		argument.Amount("transfer time", r.TransferSeconds),
		argument.Amount("run time", r.RuntimeSeconds))
}

// finish is when the task would end: it starts when it may and has its inputs.
func (r Reservation) finish() float64 {
	return max(r.StartSeconds, r.TransferSeconds) + r.RuntimeSeconds
}

// DelayMode says what the shortest expected delay compares.
type DelayMode uint8

// The modes.
const (
	DelayFixed DelayMode = iota // when the task would end: the delay that the user sees
	DelayPaper                  // the returned start times, as Migol does
)

// Choice is the outcome of a round of reservations.
type Choice struct {
	Site          grid.SiteID   // the reservation to commit
	FinishSeconds float64       // when the task ends there, seconds from now
	Asked         int           // sites asked for a reservation
	Cancel        []grid.SiteID // the other sites that accepted, ascending
}

// ShortestExpectedDelay asks the first top sites by (rank, site) for a reservation and
// chooses the one with the shortest expected delay among those that accept; ties go by
// (rank, site). A site that rejects is not replaced by the next one. It reports false if
// no site accepts. Source: J. Jeske, A. Luckow, B. Schnor, "Reservation-based
// Resource-Brokering for Grid Computing" (Migol), section 6.2.1, which takes the top
// three and then compares start times only: a site that starts first may have the longest
// transfer and the slowest processor.
func ShortestExpectedDelay(
	candidates []Reservation, top int, mode DelayMode,
) (Choice, bool, error) {
	if top < 0 || mode > DelayPaper {
		return Choice{}, false, fmt.Errorf("%w: top %d in mode %d", argument.ErrInvalid, top, mode)
	}
	for _, c := range candidates {
		if err := c.validate(); err != nil {
			return Choice{}, false, fmt.Errorf("site %q: %w", c.Site, err)
		}
	}
	asked := slices.Clone(candidates)
	slices.SortStableFunc(asked, byRank)
	asked = asked[:min(top, len(asked))]
	accepted := slices.DeleteFunc(slices.Clone(asked), func(r Reservation) bool { return !r.Accepted })
	if len(accepted) == 0 {
		return Choice{}, false, nil
	}
	delay := Reservation.finish
	if mode == DelayPaper {
		delay = func(r Reservation) float64 { return r.StartSeconds }
	}
	slices.SortStableFunc(accepted, func(a, b Reservation) int {
		return cmp.Or(cmp.Compare(delay(a), delay(b)), byRank(a, b))
	})
	best := accepted[0]
	choice := Choice{Site: best.Site, FinishSeconds: best.finish(), Asked: len(asked)}
	for _, other := range accepted[1:] {
		choice.Cancel = append(choice.Cancel, other.Site)
	}
	slices.Sort(choice.Cancel)
	return choice, true, nil
}

func byRank(a, b Reservation) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Site, b.Site))
}
