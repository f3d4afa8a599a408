package site

import (
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Config is the configuration of a site machine. Default fills in everything but Self
// and Capability.
type Config struct {
	Self       grid.SiteID     // this site
	Domain     grid.DomainID   `json:",omitempty"` // whose digests of data are heard here
	Seed       uint64          // salts the sampling of answers, so that runs can differ
	Capability grid.Capability // what the owner gives; CapacityChanged replaces it

	CacheEntries  int           // requirements remembered, and the limit of open offers, at least 8
	CacheTTL      time.Duration // how long a requirement is remembered after it was last announced
	OfferValidity time.Duration // how long an offer stands
	HoldAll       bool          // each offer holds its capacity until cleared or expired (thesis 4.1)

	RenewRetry  time.Duration // between requests for leases while an attempt has none
	GiveUp      time.Duration // an attempt not started is dropped after so long without a lease
	FrozenLimit time.Duration // a started attempt is stopped when its lease has been over for so long
	ResultHold  time.Duration // an end that nobody acknowledges is kept for so long
	MaxAttempts int           // attempts in all phases, unacknowledged ends included, at least 8

	OwnerPatience time.Duration // attempts suspended for the owner move elsewhere after so long
	// MoveAfter is the same for attempts that can go on elsewhere from a checkpoint: after so long
	// their submitters are told that they may move, and move them where another site offers.
	MoveAfter time.Duration

	// LongestLease bounds what is taken of a lease, for a machine whose clock others set or that
	// does not count suspend; 0 = all of it.
	LongestLease time.Duration
	MaxRuntime   time.Duration // longest estimate and running time the owner allows; 0 = no limit
	DataBytes    int64         // space for data; one task may need an eighth of it; 0 = not known
	InMemory     bool          // what commands write is held in memory, and counts as such
	WasmOnly     bool          // run nothing but WASM, whatever Capability says
	// Signers are those whose work is run; none: nothing has to be signed.
	Signers []grid.Signer `json:",omitzero"`
	Priced  bool          // the owner names a price
	Price   float64       // of an hour of a core, in the owners' own unit, 0 to 1e9
	Prior   avail.Prior   // belief about this site's failures before its history is known

	// Reports below that level are left out: experiments of millions of Steps need no traces of
	// decisions.
	Reports step.Level `json:",omitempty"`

	Planning Planning // what the site promises, and in what order it runs what waits
}

// Planning holds the owner's decisions about the site's plan. Each field has the name of
// its setting, "planning.strangers" in the configuration file. Percentages are of the
// ceilings (Capability.Total), 1 to 100; 0 is no limit.
type Planning struct {
	Policy    grid.Policy   // in what order those that wait in the plan move up
	Backfill  grid.Backfill // which of them may overtake which
	Horizon   time.Duration // how far ahead an outage is felt; 0 = 12 h
	Promised  int           // percent that promises hold together
	Strangers int           // percent that promises to other submitters hold together
	Submitter int           // percent that one other submitter holds
	Project   int           // percent that one project holds
	Ahead     time.Duration // promises to others begin at most so far ahead; 0 = no limit
	Longest   time.Duration // others reserve for at most so long; 0 = no limit
	Fairshare bool          // promises of a fixed time begin behind all that is queued (Migol 4)

	// Overestimate is the part of their run times by which jobs are known to end early,
	// 0 to 0.9.
	Overestimate float64
}

// Default is the configuration of a site that gives its capability to all
// members of its domain.
func Default(self grid.SiteID, capability grid.Capability) Config {
	return Config{
		Self: self, Capability: capability,
		CacheEntries: 4_096, CacheTTL: time.Hour, OfferValidity: 30 * time.Second,
		RenewRetry: time.Second, GiveUp: 30 * time.Second, FrozenLimit: time.Hour,
		ResultHold: 7 * 24 * time.Hour, MaxAttempts: 16_384,
		OwnerPatience: 10 * time.Minute, MoveAfter: 2 * time.Minute, Prior: avail.DefaultPrior(),
		Planning: Planning{Ahead: 30 * 24 * time.Hour, Longest: 24 * time.Hour},
	}
}

// Validate reports everything that is out of its range.
func (c Config) Validate() error {
	errs := []error{c.Self.Validate(), c.Capability.Validate(), c.Prior.Validate()}
	for _, n := range []struct {
		field string
		value int
	}{{"CacheEntries", c.CacheEntries}, {"MaxAttempts", c.MaxAttempts}} {
		if n.value < shares || n.value > 1<<20 {
			errs = append(errs, fmt.Errorf("%w: %s: want %d to %d, have %d",
				grid.ErrInvalid, n.field, shares, 1<<20, n.value))
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"CacheTTL", c.CacheTTL},
		{"OfferValidity", c.OfferValidity},
		{"RenewRetry", c.RenewRetry},
		{"GiveUp", c.GiveUp},
		{"FrozenLimit", c.FrozenLimit},
		{"ResultHold", c.ResultHold},
		{"OwnerPatience", c.OwnerPatience},
		{"MoveAfter", c.MoveAfter},
	} {
		if d.value < time.Millisecond || d.value > grid.MaxRuntime {
			errs = append(errs, fmt.Errorf("%w: %s: want 1ms to %s, have %s",
				grid.ErrInvalid, d.field, grid.MaxRuntime, d.value))
		}
	}
	if !(c.Price >= 0 && c.Price <= maxPrice) {
		errs = append(errs, fmt.Errorf("%w: Price: want 0 to %g, have %v",
			grid.ErrInvalid, float64(maxPrice), c.Price))
	}
	if c.MaxRuntime < 0 || c.MaxRuntime > grid.MaxRuntime {
		errs = append(errs, fmt.Errorf("%w: MaxRuntime: want 0 (no limit) to %s, have %s",
			grid.ErrInvalid, grid.MaxRuntime, c.MaxRuntime))
	}
	_, err := signed.NewKeys(c.Signers)
	errs = append(errs, c.Planning.validate(), err)
	if c.DataBytes < 0 {
		errs = append(errs, fmt.Errorf("%w: DataBytes: want 0 (not known) or more, have %d",
			grid.ErrInvalid, c.DataBytes))
	}
	return errors.Join(errs...)
}

func (p Planning) validate() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: Planning.%s", grid.ErrInvalid, fmt.Sprintf(format, args...)))
	}
	for _, n := range []struct {
		field string
		value int
	}{
		{"Promised", p.Promised},
		{"Strangers", p.Strangers},
		{"Submitter", p.Submitter},
		{"Project", p.Project},
	} {
		if n.value < 0 || n.value > 100 {
			refuse("%s: want 0 (no limit) to 100, have %d", n.field, n.value)
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Horizon", p.Horizon}, {"Ahead", p.Ahead}, {"Longest", p.Longest}} {
		if d.value < 0 || d.value > grid.MaxRuntime {
			refuse("%s: want 0 to %s, have %s", d.field, grid.MaxRuntime, d.value)
		}
	}
	if !(p.Overestimate >= 0 && p.Overestimate <= plan.MaxOverestimate) {
		refuse("Overestimate: want 0 to %g, have %v", plan.MaxOverestimate, p.Overestimate)
	}
	if p.Policy > grid.PolicyLST || p.Backfill > grid.BackfillNone {
		refuse("Policy, Backfill: unknown value")
	}
	return errors.Join(errs...)
}

// maxPrice bounds what an owner may ask for an hour of a core.
const maxPrice = protocol.MaxPrice

// Limits that are not configured.
const (
	shares           = 8                      // a submitter gets at most 1/shares of what is bounded
	maxBindings      = 8_192                  // submitters of jobs without cache entry or attempt
	maxTokens        = 65_536                 // highest tokens of tasks without attempt
	maxRequests      = 4_096                  // lease requests whose sending time is remembered
	maxPeers         = 4_096                  // peers whose capability is remembered
	maxHeldData      = 262_144                // CIDs known to be held here
	maxVacancies     = protocol.MaxVacancies  // jobs named to one submitter in one message
	maxExitText      = 1 << 10                // bytes of Exit.Text
	maxExitRepeat    = 30 * time.Second       // longest pause between repetitions of Exited
	firstExitRepeat  = time.Second            // first pause; it doubles each time
	progressInterval = 500 * time.Millisecond // least time between two staging reports of an attempt
	vacancyDelay     = 20 * time.Millisecond  // a burst of exits makes one Vacancy
	leaseFraction    = 3                      // leases are renewed after 1/leaseFraction of their time
)
