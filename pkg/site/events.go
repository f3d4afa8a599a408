package site

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The events of this machine's Reports. They are counted by name; the names are
// part of what the metrics promise and never change their meaning.
const (
	// The way of a job.
	eventOfferMade       = "offer_made"       // debug; Value = distance
	eventOfferRefused    = "offer_refused"    // debug; Reason: no offer for an announcement
	eventNotSampled      = "not_sampled"      // debug; the submitter wanted fewer answers
	eventCacheMiss       = "cache_miss"       // debug; re-announced, requirement unknown or another
	eventCacheHit        = "cache_hit"        // debug; re-announced, and the requirement is known
	eventCleared         = "cleared"          // debug; Value = number of the kind of clear
	eventAccepted        = "accepted"         // info; Value = distance
	eventDeclined        = "declined"         // info; Reason
	eventStarted         = "started"          // info
	eventFrozen          = "frozen"           // warn; the lease ran out
	eventSuspended       = "suspended"        // info; Reason: frozen for the owner's sake
	eventResumed         = "resumed"          // info
	eventExited          = "exited"           // info; Text = cause
	eventDropped         = "dropped"          // info; Text = why nobody will hear of it
	eventResultAcked     = "result_acked"     // debug
	eventResultExpired   = "result_expired"   // warn; nobody acknowledged the end
	eventVacancySent     = "vacancy_sent"     // debug; Value = number of jobs
	eventStagingFailed   = "staging_failed"   // warn; Text = problem
	eventRestartDetected = "restart_detected" // warn; an attempt died with the agent

	// Checkpoints. Value = the checkpoint's number, but where something else is said.
	eventGoesOn       = "goes_on"            // info; an attempt goes on from one
	eventSaved        = "saved"              // debug; one was taken
	eventSavedCounts  = "checkpoint_counts"  // info; the submitter holds it
	eventSavedRefused = "checkpoint_refused" // warn; Reason
	eventSaveFailed   = "save_failed"        // warn; Text = why it could not be stored
	eventSaveLeftOut  = "save_left_out"      // debug; Value = how many in a row
	eventMayMove      = "may_move"           // info; Reason: why an attempt is to leave

	// Promises.
	eventHeld        = "offer_held"       // debug; an offer was made firm; Value = tasks
	eventUnkeepable  = "plan_unkeepable"  // warn; the sandbox cannot keep the plan; Text = problem
	eventDisplaced   = "displaced"        // info; Reason: what it holds is promised to another
	eventStartMissed = "start_missed"     // warn; not begun by the latest start promised; Text = why
	eventPromiseGone = "promise_lost"     // warn; a promised time can no longer be kept
	eventTakenUp     = "promise_kept"     // info; a promise of before a restart goes on
	eventClockSet    = "clock_set"        // info; this site's wall clock, by Value seconds
	eventPlanning    = "planning_changed" // info; Text = policy and backfilling

	// The owner.
	eventPaused          = "paused"               // info
	eventOwnersAlone     = "owners_alone"         // info; an order from afar has to yield
	eventResumedOffering = "resumed_offering"     // info; pause or drain is over
	eventDraining        = "draining"             // info
	eventBanned          = "banned"               // info: Value = its attempts; debug: a message of it
	eventCapacityChanged = "capacity_changed"     // info
	eventShareChanged    = "share_changed"        // info; Value: percent of the cores
	eventSurplus         = "surplus"              // info; an attempt takes more than the share
	eventTermsChanged    = "terms_changed"        // info
	eventSignersChanged  = "signers_changed"      // info; Value: how many are listed
	eventOwnerBusy       = "owner_busy"           // info; Reason; Text = what was seen
	eventOwnerAway       = "owner_away"           // info; the owner needs the machine no more
	eventLearned         = "availability_learned" // debug; Value = days of observed availability

	// Refused or ignored.
	eventNotSubmitter   = "not_submitter"   // warn; the job belongs to another submitter
	eventForged         = "forged"          // warn; the sender names another submitter than itself
	eventInvalid        = "invalid"         // warn; Text = what is out of range
	eventDuplicate      = "duplicate"       // debug; a message that was answered before
	eventStale          = "stale"           // debug; an input that was overtaken
	eventJobEnded       = "job_ended"       // debug; the job was cleared for good before
	eventUnknownJob     = "unknown_job"     // debug; nothing is known of the job
	eventUnknownAttempt = "unknown_attempt" // debug; nothing is known of the attempt
	eventUnknownRenewal = "unknown_renewal" // warn; a lease for a request this site did not send
	eventTableFull      = "table_full"      // warn; a bounded table takes no more; Text = which
	eventController     = "controller"      // info; of the domain; Value = its term
	eventNotForSite     = "not_for_site"    // debug; an input or message for the submitter's machine
	eventNotBooted      = "not_booted"      // warn; an input before Boot
	eventBootedTwice    = "booted_twice"    // warn; a second Boot
	eventImpossiblePlan = "impossible_plan" // warn; the plan refused what it had quoted; Text = why
	eventPrematureAck   = "premature_ack"   // warn; acknowledges an attempt that has not ended
)

// aboutJob is a Report about a job as a whole and the site that named it.
func aboutJob(job grid.JobID, site grid.SiteID) step.Report {
	return step.Report{Attempt: grid.AttemptID{Task: grid.TaskID{Job: job}}, Site: site}
}

// about is a Report about an attempt and the site that named it.
func about(id grid.AttemptID, site grid.SiteID) step.Report {
	return step.Report{Attempt: id, Site: site}
}
