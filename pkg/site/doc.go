// Package site is the site machine: it decides for one site of the mesh. It hears
// announcements and answers with its distance from the job (the thesis' virtual
// map), takes awards into its plan, starts attempts under leases, reports their
// ends, and tells waiting submitters when it has capacity again.
//
// Machine follows the contract of pkg/step: it reads no clock, draws no random
// numbers and does no I/O; equal inputs give equal effects.
//
// Source of the announcement protocol: B. Khoo Boon Tat, "Multi-Dimensional
// Resource Allocation Strategy for Large-Scale Computational Grid Systems",
// thesis, NUS 2006, section 4.1. Leases, fencing and facts are described in
// docs/protocol.md.
//
// Names: onX takes an input or a message, sendX sends one, other verbs act; isX, hasX and
// wantsX ask and change nothing. To recall is to act: what is asked for is remembered for
// longer.
//
// Where to look, in the order of an attempt's life:
//
//	machine.go        the state, and the one list of inputs, messages and timers
//	announce.go       announcements, the cache, clears: thesis 4.1, steps 1, 2 and 5
//	submitters.go     whose a job is, who may order what, tokens
//	requests.go       the requests for leases that were sent, by their numbers
//	quote.go          what this site can offer for a requirement, or why not
//	risk.go           how likely the site stays available: z
//	planning.go       the plan: open offers, commitments, what has become due
//	award.go          awards: thesis 4.1, step 4
//	promise.go        offers made firm, verified plans, reservations, displaced attempts
//	start_by.go       the latest start that was promised; since when an attempt runs
//	promised_fact.go  promised places outlive a restart
//	lease.go          the right to run: requests, leases
//	clocks.go         the submitters' wall clocks, and this site's own
//	ended_fact.go     when an attempt ended, whatever becomes of them
//	bookings.go       the domain's controller is told what was promised
//	tell.go           submitters are told how their attempts go
//	askfirst.go       attempts that other sites queue, too: leave to start
//	attempt.go        an attempt's life from acceptance to the acknowledged end
//	saving.go         checkpoints: when one is taken, and until it counts
//	interval.go       how often checkpoints are taken, and which are left out
//	leaving.go        attempts that may, or are to, go on at another site
//	held.go           ends are told, and held, until they are acknowledged
//	stop.go           fences, cancels and what else ends an attempt early
//	vacancy.go        telling submitters that capacity is free
//	yield.go          yielding to the owner's own work
//	share.go          less than all of it is given: what takes more is suspended
//	owner.go          pause, drain, capacity, bans
//	vouching.go       whose work the owner runs: signatures
//	peers.go          peers, links, held data
//	roster.go         all attempts, and the ways to find them
//	recent.go         a table that forgets what nobody asked for
//	facts.go          what survives a crash
//	check.go          the invariants
//	view.go           read-only access for people
//	events.go         every event that a Report can carry
//	config.go         what the owner chose, limits
//
// What is bounded: the requirement cache, open offers, held results, remembered
// tokens, bindings, lease requests, peers and held data each have a limit, and
// one submitter other than the site itself gets at most an eighth of the first
// three.
package site
