package view

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Reservation is capacity that is held for a time, with what is bound to it.
type Reservation struct {
	ID      grid.JobID      `json:"id"`
	Name    string          `json:"name,omitempty"`
	Project string          `json:"project,omitempty"`
	Phase   Phase           `json:"phase"` // sum of its places'
	Start   Time            `json:"start"`
	End     Time            `json:"end"`
	Need    Resources       `json:"need"`   // what each place holds
	Places  []ReservedPlace `json:"places"` // by index
	// probability that all its sites stay until its end
	Kept    *float64     `json:"kept,omitempty"`
	Jobs    []grid.JobID `json:"jobs"` // own jobs that run in it, oldest first
	Hint    string       `json:"hint,omitempty"`
	Reasons []string     `json:"reasons,omitempty"` // refused: each kind of refusal in words
}

// ReservedPlace is one of the equal places that a reservation holds.
type ReservedPlace struct {
	Index    uint32      `json:"index"`
	Phase    Phase       `json:"phase"`
	Site     grid.SiteID `json:"site,omitempty"`
	SiteName string      `json:"site_name,omitempty"`
	Kept     *float64    `json:"kept,omitempty"` // probability that the site stays until its end
}

// KeptTogether is the probability that all sites of some places stay, when they go
// independently of each other: places on one site stand and fall together. It is nil
// if one place has no site or nobody knows.
func KeptTogether(places []ReservedPlace) *float64 {
	sites, all := map[grid.SiteID]bool{}, 1.0
	for _, p := range places {
		if p.Site == "" || p.Kept == nil {
			return nil
		}
		if !sites[p.Site] {
			all *= *p.Kept
		}
		sites[p.Site] = true
	}
	if len(places) == 0 {
		return nil
	}
	return &all
}

// Planning is in what order those that wait in a site's plan move up.
type Planning struct {
	Policy   string `json:"policy"`   // one of grid.Policies
	Backfill string `json:"backfill"` // one of grid.Backfills
}

// Validate reports a word that is not known. The error wraps grid.ErrInvalid.
func (p Planning) Validate() error {
	_, errPolicy := grid.ParsePolicy(p.Policy)
	_, errBackfill := grid.ParseBackfill(p.Backfill)
	return cmp.Or(errPolicy, errBackfill)
}

// PlanView shows a site's plan.
type PlanView struct {
	Planning Planning    `json:"planning"`
	Promised Resources   `json:"promised"` // the most that promises hold together at one time
	Limit    Resources   `json:"limit"`    // what they may hold at most
	Entries  []PlanEntry `json:"entries"`  // by start
}

// PlanEntry is one attempt in a site's plan.
type PlanEntry struct {
	Task          string      `json:"task"`
	Token         grid.Token  `json:"token"`
	Submitter     grid.SiteID `json:"submitter"`
	SubmitterName string      `json:"submitter_name,omitempty"`
	Class         string      `json:"class"` // fixed, deadline, best-effort or reservation
	State         string      `json:"state"` // waits, runs, suspended, held or open
	Start         Time        `json:"start"`
	End           Time        `json:"end"`
	Need          Resources   `json:"need"`
	Within        grid.JobID  `json:"within,omitempty"` // the reservation it runs in
}

// Timed adds to an offer's row when it would start and end, counted from when it was
// made. Of promised work it also says how likely the site stays for it.
func (r OfferRow) Timed(made time.Time, promised bool) OfferRow {
	if r.Seconds == nil {
		return r
	}
	finish := made.Add(Duration(*r.Seconds))
	r.Start, r.Finish = At(finish.Add(-Duration(r.RunSeconds))), At(finish)
	if promised && r.Z != nil {
		kept := 1 - *r.Z
		r.Kept = &kept
	}
	return r
}

// CouldPromise is the earliest time that a refusal for the time's sake could be
// promised instead, zero if it says none. It was given at that moment.
func CouldPromise(r grid.Refusal, given time.Time) Time {
	if r.Reason != grid.ReasonWindow || r.Have <= 0 {
		return Time{}
	}
	const longest = int64(grid.MaxRuntime / time.Second)
	return At(given.Add(time.Duration(min(r.Have, longest)) * time.Second))
}

// Percent is a probability for people; nil is nothing. What is not certain is not
// called so.
func Percent(p *float64) string {
	if p == nil {
		return ""
	}
	const hundred, tenth = 100, 10
	value := *p * hundred
	if value > hundred-1 && value < hundred {
		return strconv.FormatFloat(math.Floor(value*tenth)/tenth, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(value, 'f', 0, 64) + " %"
}
