package plan

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// defaultMaxOffers is the number of open offers unless told otherwise.
const defaultMaxOffers = 1024

// quotaShare is the part of the open offers one submitter may have: one in eight.
const quotaShare = 8

// defaultHorizon is the time ahead for which an outage is felt unless told otherwise:
// within this time defects are usually repaired. OpenCCS, section "Resource Failures
// and Fault Tolerance".
const defaultHorizon = 12 * time.Hour

// MaxOverestimate is the largest part of a run time that may be taken for an
// over-estimate.
const MaxOverestimate = 0.9

// Class says how free a request is to move in time.
type Class uint8

// The classes, in the order in which they are placed.
const (
	ClassFixTime  Class = iota // at one time only
	ClassDeadline              // anywhere before its deadline
	ClassVarTime               // anywhere
)

// Config is the configuration of a planner at its start.
type Config struct {
	Total      grid.Resources // the owner's ceilings
	HoldAll    bool           // soft offers hold capacity too
	MaxOffers  int            // open offers; 0 = 1,024
	FirstOffer uint64         // first number of an offer, at least 1; above those before a restart
	Self       grid.SiteID    // the site's own jobs, for which no share is set; empty = there are none

	Policy   grid.Policy   // the order in which those that wait for no promised time move up
	Backfill grid.Backfill // which of them may overtake which

	// Horizon is the time ahead for which an outage is felt at most; 0 = 12 h.
	Horizon time.Duration

	// Promised is the part of Total that promises hold together at any instant:
	// Fix-Time and deadline commitments, reservations, firm offers. 1 to 100; 0 = all
	// of it. The rest are OpenCCS' buffer nodes, for best effort alone (section
	// "Conclusion and Future Work").
	Promised int

	// Strangers is the part of Total that promises and firm offers to other
	// submitters than Self hold together at any instant, 1 to 100; 0 = all of it.
	Strangers int

	// Submitter and Project are the parts of Total that one submitter
	// other than Self, and one project, hold at any instant, 1 to 100; 0 = all of it.
	Submitter, Project int

	// Fairshare lets reservations and Fix-Time commitments begin only when all that
	// is queued is expected to have ended. Migol (J. Jeske, A. Luckow and B.
	// Schnor, "Reservation-based Resource-Brokering for Grid Computing"), section 4.
	Fairshare bool

	// Overestimate is the part of their run times, 0 to 0.9, by which jobs are known
	// to end early. It postpones the latest start of deadline commitments by as much.
	// Those whose estimate is right are late then. OpenCCS, section "Deadline bound
	// Jobs".
	Overestimate float64
}

// Commitment is the promise to run an attempt.
type Commitment struct {
	Attempt   grid.AttemptID
	Submitter grid.SiteID
	Project   string         // limits are counted by it; empty = none
	Give      grid.Resources // what it gets
	// Class says how free it is to move: ClassFixTime never, ClassDeadline from NotBefore to
	// LatestStart, ClassVarTime anywhere behind NotBefore.
	Class Class
	// Priority orders the waiting ClassVarTime commitments of one submitter, higher first; it
	// says nothing between submitters.
	Priority    int32
	Made        time.Time    // when it was committed; set by Commit
	NotBefore   time.Time    // it is never moved before this; the zero time sets no limit
	Deadline    time.Time    // of ClassDeadline: its latest end
	LatestStart time.Time    // latest start that is guaranteed; the zero time guarantees none
	Start       time.Time    // begin of its place in the plan
	End         time.Time    // expected end; moves on while the attempt overruns it
	Running     bool         // it has begun and keeps what it has until Release
	AwaitsData  bool         // its inputs are not here: it does not begin before Ready
	Suspended   bool         // it keeps memory and disk, and nothing else
	Overrun     grid.Overrun // what it allows at its end when what it holds is promised to another
	// Holds marks a reservation: it begins at Start and is over at End by itself, and only
	// commitments bound to it run in it.
	Holds bool
	// Within is the reservation that it is bound to and takes its share of; zero = it takes its
	// share of the site.
	Within grid.AttemptID

	// What follows is the planner's to set.
	Overran bool          // it has had its promised time, and goes on because that disturbs nobody
	Stopped bool          // it was told to end: it takes no part in the plan until Release
	Late    bool          // its start has come, its inputs have not: cores and computation are lent
	Borrows bool          // it runs with what one that is late has lent
	Left    time.Duration // while Suspended or Late: the run time that is left
}

// Offer is an open offer.
type Offer struct {
	Number    uint64
	Submitter grid.SiteID
	Job       grid.JobID
	Quote     Quote
	Firm      bool
	Holds     uint32         // tasks for which capacity is held
	Expires   time.Time      // it is gone from this instant on
	Project   string         // limits are counted by it; empty = none
	Within    grid.AttemptID // the reservation that it takes its share of; zero = of the site
}

// Changes tells what happened to the plan since the last Changes. An entry that is told to
// have started, resumed or moved may have changed again when this is read: its Commitment
// has the last word.
type Changes struct {
	Started   []Commitment // their time has come: they run now
	Moved     []Commitment // they wait, with another start than before
	Suspended []Commitment // they ran and are suspended from now on
	Resumed   []Commitment // they were suspended and go on
	Stopped   []Commitment // to be ended: promised to another; they stay until Release
	Lost      []Commitment // promises that can no longer be kept; they are no longer in the plan
	Over      []Commitment // reservations whose time is over; they are no longer in the plan
	Withdrawn []Offer      // expired, or firm no longer because something stronger needs their place
}
