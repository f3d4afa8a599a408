// Package broker is the submitter's machine: it announces jobs, collects the
// sites' offers, awards tasks to the nearest, keeps their leases, moves them
// elsewhere when a site fails, and gathers the results. One runs in every
// agent, for the jobs that were submitted there.
//
// A task's way: waiting -> announced -> awarded -> staging -> running ->
// collecting -> done. Two rules keep a task from running twice at once. No
// attempt starts without a lease, and only the attempt with the task's latest
// fencing token gets one. And a lease is a promise: until the last one granted
// has ended, a margin included, the task is not awarded again, unless the
// attempt is known to have ended.
//
// A job with a fixed start or a deadline, and a reservation, wants a promise: it is
// awarded to firm offers only, refused when nobody makes one, and never started when
// it is too late.
//
// What is durable: the submission, the fencing token and site of each task
// from before its award is sent, ends and results, the fault ledger. Rounds of
// announcements and holds are not; a restarted broker announces again.
//
// The protocol is that of the thesis' section 4.1; failover order is FIBR
// (A. Lidya Therasa et al., "Dynamic Adaptation of Checkpoints and Rescheduling
// in Grid Computing").
package broker
