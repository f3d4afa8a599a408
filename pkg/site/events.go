package site

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The events of this machine's Reports. They are counted by name; the names are
// part of what the metrics promise and never change their meaning.
const (
	// The way of a job.
	EventOfferMade       = "offer_made"       // debug; Value = distance
	EventOfferRefused    = "offer_refused"    // debug; Reason: no offer for an announcement
	EventNotSampled      = "not_sampled"      // debug; the submitter wanted fewer answers
	EventCacheMiss       = "cache_miss"       // debug; re-announced, but the requirement is unknown or another
	EventCleared         = "cleared"          // debug; Text = kind of clear
	EventAccepted        = "accepted"         // info; Value = distance
	EventDeclined        = "declined"         // info; Reason
	EventStarted         = "started"          // info
	EventFrozen          = "frozen"           // warn; the lease ran out
	EventResumed         = "resumed"          // info
	EventExited          = "exited"           // info; Text = cause
	EventDropped         = "dropped"          // info; Text = why nobody will hear of it
	EventResultAcked     = "result_acked"     // debug
	EventResultExpired   = "result_expired"   // warn; nobody acknowledged the end
	EventVacancySent     = "vacancy_sent"     // debug; Value = number of jobs
	EventStagingFailed   = "staging_failed"   // warn; Text = problem
	EventRestartDetected = "restart_detected" // warn; an attempt died with the agent

	// The owner.
	EventPaused          = "paused"           // info
	EventResumedOffering = "resumed_offering" // info; pause or drain is over
	EventDraining        = "draining"         // info
	EventCapacityChanged = "capacity_changed" // info

	// Refused or ignored.
	EventNotSubmitter   = "not_submitter"   // warn; the job belongs to somebody else
	EventForged         = "forged"          // warn; the sender names another submitter than itself
	EventInvalid        = "invalid"         // warn; Text = what is out of range
	EventDuplicate      = "duplicate"       // debug; a message that was answered before
	EventStale          = "stale"           // debug; an input that was overtaken
	EventJobEnded       = "job_ended"       // debug; the job was cleared for good before
	EventUnknownJob     = "unknown_job"     // debug; nothing is known of the job
	EventUnknownAttempt = "unknown_attempt" // debug; nothing is known of the attempt
	EventUnknownRenewal = "unknown_renewal" // warn; a lease for a request this site did not send
	EventTableFull      = "table_full"      // warn; a bounded table takes no more; Text = which
	EventNotForSite     = "not_for_site"    // debug; an input or message for the submitter's machine
	EventNotBooted      = "not_booted"      // warn; an input before Boot
	EventBootedTwice    = "booted_twice"    // warn; a second Boot
	EventImpossiblePlan = "impossible_plan" // warn; the plan refused what it had quoted; Text = why
	EventPrematureAck   = "premature_ack"   // warn; an acknowledgement for an attempt that has not ended
)

// report emits a Report.
func (m *Machine) report(level step.Level, event string, r step.Report) {
	r.Level, r.Event = level, event
	m.emit(r)
}

// aboutJob is a Report about a job as a whole and the site that named it.
func aboutJob(job grid.JobID, site grid.SiteID) step.Report {
	return step.Report{Attempt: grid.AttemptID{Task: grid.TaskID{Job: job}}, Site: site}
}

// about is a Report about an attempt and the site that named it.
func about(id grid.AttemptID, site grid.SiteID) step.Report {
	return step.Report{Attempt: id, Site: site}
}
