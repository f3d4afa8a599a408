package broker

import (
	"math/rand/v2"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// run holds what a run of the broker is told at its start, and the Step under way. The
// machine's parts share it.
type run struct {
	cfg         Config
	rng         *rand.Rand // draws have an order: one more, or earlier, moves every later pause
	incarnation uint64     // the number of this run
	nonce       uint64     // drawn for this run
	counter     uint64     // of jobs, ever
	probed      uint64     // probes of this run
	unknown     bool       // an earlier run doubted so, and did not come to an end of it
	doubted     bool       // the facts were found to be older than what was promised
	bootedAt    time.Time
	clock       step.Clock    // that outlives this run
	covered     time.Duration // promises up to this length need no note of their own, see longGrant
	now         time.Time     // of the Step under way; it never steps
	pause       pause         // this machine may have slept
	ahead       time.Duration // the wall clock minus now: by so much it was set in this run
	out         step.Out      // of the Step under way, and the facts of all
	full        bool          // this machine's disk takes no more data
	lines       lines         // of the sites' runs
	near        near          // sites that sampled rounds hear of
	compare     []grid.JobID  // jobs of which a copy of a task has ended in this Step
}

// The machine's timers.
const (
	timerRound    = "round"    // a round's TTL is over; ID is the job
	timerExplain  = "explain"  // half the TTL passed without an offer; ID is the job
	timerAgain    = "again"    // announce a waiting job again; ID is the job
	timerReunion  = "reunion"  // frozen attempts had the time to come back; ID is the job
	timerAward    = "award"    // an award was not answered; ID is its first attempt
	timerLease    = "lease"    // the last lease of an attempt has ended; ID is the attempt
	timerCollect  = "collect"  // fetch outputs again; ID is the attempt
	timerMove     = "move"     // an attempt that is to move is looked after; ID is the attempt
	timerHold     = "hold"     // sites had the time to make their offers firm; ID is the job
	timerRivals   = "rivals"   // whether the sites that queue a task are there; ID is the task
	timerWindow   = "window"   // what waits is too late now; ID is the job
	timerForget   = "forget"   // a probe has been kept long enough; ID is the probe
	timerPresumed = "presumed" // no unknown attempt can hold a lease any more; ID is the job
	timerCovered  = "covered"  // the long grants of an earlier run have ended; no ID
	timerTestify  = "testify"  // other submitters are told what was counted; no ID
	timerRest     = "rest"     // more tasks are to be placed than one Step places; ID is the job
)

// onCapacity takes this site's current capability: data is fetched from this site.
func (r *run) onCapacity(in step.CapacityChanged) {
	if r.valid(r.cfg.Here, in.Capability) {
		r.cfg.Capability = in.Capability
	}
}

// valid reports whether something that came from a site keeps to its ranges. It
// is checked here again, so that a driver's mistake cannot break the machine.
func (r *run) valid(from grid.SiteID, what interface{ Validate() error }) bool {
	err := from.Validate()
	if err == nil {
		err = what.Validate()
	}
	if err != nil {
		r.out.Report(step.LevelWarn, eventInvalid, step.Report{
			Site: from, Reason: grid.ReasonInvalid, Text: err.Error(),
		})
	}
	return err == nil
}

func (r *run) report(level step.Level, event string, attempt grid.AttemptID, site grid.SiteID) {
	r.out.Report(level, event, step.Report{Attempt: attempt, Site: site})
}

// reportRefused counts a message that asked for something its sender may not
// ask for or that makes no sense now.
func (r *run) reportRefused(
	event string, from grid.SiteID, attempt grid.AttemptID, reason grid.Reason,
) {
	r.out.Report(step.LevelWarn, event, step.Report{Attempt: attempt, Site: from, Reason: reason})
}

func (r *run) setTimer(name, id string, at time.Time) { r.out.SetTimer(name, id, at) }

func (r *run) stopTimer(name, id string) { r.out.StopTimer(name, id) }

var timeZero time.Time //nolint:gochecknoglobals // the zero time, named
