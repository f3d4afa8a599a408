package broker

// The events of this machine's Reports. They are counted by name; the names are part of
// what the metrics promise and never change their meaning.
const (
	// The way of a job.
	eventJobSubmitted    = "job_submitted"    // info
	eventAnnounced       = "announced"        // debug; Value = number of the announcement
	eventHeld            = "held"             // debug; a site made its offer firm; Value = distance
	eventAwarded         = "awarded"          // info; Value = distance
	eventAwardedRival    = "awarded_rival"    // info; one of several for a task; Value = distance
	eventAwardedTogether = "awarded_together" // info; all parts; Value = sites, Text = their shares
	eventAccepted        = "accepted"         // info
	eventRivalStarts     = "rival_starts"     // info; the first of several sites whose turn came
	eventJobHeld         = "job_held"         // info; it is not placed before it is released
	eventJobReleased     = "job_released"     // info
	eventJobCancelled    = "job_cancelled"    // info
	eventJobStopped      = "job_stopped"      // warn; as many tasks have failed as it allows
	eventJobRefused      = "job_refused"      // warn; what waits can never be placed
	eventWindowOver      = "window_over"      // warn; it is too late for what waits; Text = for what
	eventJobEnded        = "job_ended"        // info
	eventHostsTooMany    = "hosts_too_many"   // warn; the list of sites is too long; Text = why

	// Lost, failed, found again.
	eventGrantInVain     = "grant_in_vain"    // debug, warn: too many; leases not arrived
	eventAttemptLost     = "attempt_lost"     // warn; its site is silent; Text = how
	eventOverdue         = "attempt_overdue"  // warn; its bound has passed; Text = its phase
	eventAttemptFailed   = "attempt_failed"   // warn; its site could not end it; Text = cause
	eventAttemptReturned = "attempt_returned" // info; given up, not yet replaced, and there again
	eventStays           = "remap_stays"      // info; its site is silent, and the task stays there
	eventRemapRefused    = "remap_refused"    // warn; of another than the domain's controller
	eventNoOtherPlace    = "no_other_place"   // warn; a promise lost its site, and no other offers
	eventRivalLost       = "rival_lost"       // warn; one of several that queued the task; Text = how
	eventRestored        = "restored"         // warn; facts are older than a promise; Text = how seen
	eventInherited       = "inherited"        // info; an attempt awarded by a run that was lost
	eventRegrouped       = "regrouped"        // warn; a part was lost, so all start again
	eventCollectFailed   = "collect_failed"   // warn; outputs could not be fetched; Text = problem
	eventResultLate      = "result_late"      // info; an attempt that was given up has brought it
	eventSpaceAwaited    = "space_awaited"    // warn; outputs have no space here; Text = problem

	// Copies.
	eventCopyBegun   = "copy_begun"         // info; a further copy of a task; Value = its number
	eventCopyEnded   = "copy_ended"         // debug; Text = the digest of its result
	eventOutvoted    = "outvoted"           // warn; a site's result is not what others agree on
	eventNoAgreement = "no_agreement"       // warn; a task has no result; Text = who says what
	eventReopened    = "result_reopened"    // warn; a result is to be confirmed; Text = why
	eventUnconfirmed = "result_unconfirmed" // warn; delivered, and its site has lied since

	// Checkpoints.
	eventSavedCounts  = "checkpoint_counts"  // info; Value = its number
	eventSavedRefused = "checkpoint_refused" // warn; Reason
	eventPullFailed   = "checkpoint_missed"  // debug; it could not be fetched; Text = problem

	// Moves on purpose. Reason: why its site wants it; none: its user does.
	eventMoveBegun = "move_begun" // info
	eventMoved     = "moved"      // info; its attempt was ended for that
	eventMoveStays = "move_stays" // info; Reason: why it stays; none: its site has changed its mind

	// Promises; see also below.
	eventStartLate      = "start_late"      // warn; Value = seconds, below 0: early; Text says so
	eventDeadlineMissed = "deadline_missed" // warn; it goes on behind its deadline
	eventClockSet       = "clock_set"       // warn; the wall clock, by Value seconds
	eventTimeMoved      = "time_moved"      // warn; its place is not at its time now; Text = why

	// Refused or ignored.
	eventInvalid       = "invalid"        // warn; Text = what is out of range
	eventBidUnexpected = "bid_unexpected" // warn; an offer for a job that is not known, or has ended
	eventAwardDeclined = "award_declined" // warn; Reason
	eventFenced        = "fenced"         // warn; a lease for an attempt that is not the latest
	eventSiteBanned    = "site_banned"    // info
	eventPassedOver    = "passed_over"    // warn; its offers, for Value seconds; Text = its breach
	eventPardoned      = "fault_pardoned" // info; it was this site's own trouble; Text

	// What other submitters say.
	eventTestimonyRefused  = "testimony_refused"  // warn; Reason, Text = why
	eventStatementsIgnored = "statements_ignored" // debug; Value = how many, Text = why
)

// Further events have the names of phases: "staging", "running" and "frozen" as a site
// reports them, "task_done" and "task_failed", "task_kept" (info), "task_late" and
// "task_broken" (warn) for what became of the promise of a task that has ended (Value = by how
// many seconds it began or ended late, the larger one; Text = what was late, or why), and
// "job_refused", "job_failed" and "job_cancelled" where a job ends because of another one.
