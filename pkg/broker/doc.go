// Package broker is the submitter's machine: it announces jobs, collects the
// sites' offers, awards tasks to the nearest, keeps their leases, moves them
// elsewhere when a site fails, and gathers the results. One runs in every
// agent, for the jobs that were submitted there.
//
// A task's way: waiting -> announced -> awarded -> staging -> running ->
// collecting -> done. Two rules keep a task from running twice at the same time. No
// attempt starts without a lease, and only the attempt with the task's latest
// fencing token gets one. And a lease is a promise: until the last one granted
// has ended, a margin included, the task is not awarded again, unless the
// attempt is known to have ended.
//
// # Core and strategies
//
// The core owns the life of tasks: which wait, which lease each has, what failed,
// what came of it, and what of that survives a restart. How a job is placed is
// the business of a strategy, of which a job has one for its life: nearest;
// promised, for a job with a fixed start or a deadline, and for a reservation,
// which is awarded to firm offers only, refused when nobody makes one, and never
// started when it is too late; together, for one whose tasks are parts that run
// at the same time; rivals, for one that several sites may queue. The core never
// asks which it is, and a strategy sees nothing of the machine but its desk.
//
// What is under way for a job is its stage: a round of answers, a request to
// hold offers, or nothing. What happens to one job because of another is put
// into a queue, which Step drains last.
//
// What is durable: the submission, the fencing token and site of each task
// from before its award is sent, ends and results, the fault ledger. Rounds of
// announcements and holds are not; a restarted broker announces again.
//
// # Where to look
//
// A job's life, in the words of ARCHITECTURE.md (1 is before the broker):
//
//	2 taken and announced    submit.go, order.go, announce.go
//	3 sites answer           answers.go; round.go: answers awaited
//	4 placed                 ranking.go, place_*.go, award.go
//	5 accepted, first lease  grant.go, rights.go
//	6 lease renewed          grant.go
//	7 ended, fetched         result.go, end.go
//	8 site silent or dead    failover.go
//	9 capacity, or never     vacancy.go; round.go, end.go: refused
//
// All files, from what everything rests on to what sees everything; a file uses
// what stands above it here, which internal/archtest checks:
//
//	events.go      every event that a Report can carry
//	config.go      what a broker is told once
//	run.go         one run of it, and the Step under way; the timers
//	wall.go        the machine's clock and the wall clock
//	offers.go      an offer that stands
//	arrival.go     which leases were seen to arrive
//	pledge.go      the promise of a task, and what became of it
//	saved.go       the checkpoints of a task
//	copies.go      a task that runs in several copies
//	task.go        a task: attempts, silence, record, result, pledge
//	ceiling.go     what is known of a job that another domain has ordered
//	traits.go      what has to be known of a job's kind, read here alone
//	divide.go      how parts are divided among sites
//	intake.go      what a job takes of others
//	job.go         a job: what was asked, its tasks, its stage
//	encrypted.go   a job whose content is encrypted: who may have it, and its key
//	hold.go        the stages in which sites make their offers firm
//	tail.go        those that have ended, and which of them can leave
//	order.go       the table of jobs: their order, and which waits for which
//	takes.go       ... and what they leave for it
//	repeated.go    a request that comes again makes no second job
//	facts.go       what survives a crash
//	watch.go       what was seen of a member's coming and going
//	breach.go      what honest sites do not do, and who is passed over for it
//	testimony.go   what submitters tell each other of sites
//	trouble.go     when silence is this submitter's own trouble
//	faults.go      what counts for and against sites
//	peers.go       the members: links, bans
//	trust.go       sites whose results were confirmed, and which are compared
//	bounds.go      how long an attempt may take in each phase
//	policy.go      what availability does to placing (SAA, NAA, NSA)
//	round.go       the stage in which answers are awaited
//	beside.go      neighbouring domains: which are asked together with the members
//	announce.go    what other sites are told of a job
//	near.go        ... and how near sites are that are always to answer
//	tally.go       how many sites answer
//	search.go      a round of a search for near sites; search_rounds.go: who searches, and when
//	neighbours.go  ... and which after them
//	spared.go      members that are not asked for another domain
//	sooner.go      members that are asked first for it
//	probe.go       an enquiry that places nothing
//	queue.go       the looks that wait
//	longgrant.go   grants that a restart has to remember
//	line.go        two machines with one site's identity
//	restored.go    attempts that an old state does not know of
//	rights.go      leases, fences, acknowledgements: they leave from here alone
//	roll.go        what each site says it has
//	machine.go     the machine's parts
//	strategy.go    what a strategy is
//	kept.go        whether promises are kept
//	doubt.go       whether what was said to be late waited for this machine to wake
//	end.go         tasks and jobs end, are called off, refused, forgotten
//	retries.go     tasks that fail by themselves run again; too many of them end the job
//	border.go      what is told of jobs that other domains have ordered
//	vacancy.go     asking again: in turn, or one site
//	placing.go     a strategy is asked, and its verdict followed
//	remap.go       what the domain's controller says of silent sites
//	failover.go    silence, death, failure, return
//	result.go      ends of attempts, and fetching what they left
//	late.go        the result of an attempt that was given up
//	comparison.go  results of copies are compared, further copies begun
//	convict.go     what becomes of the work of a site that has lied
//	checkpoint.go  checkpoints that sites have taken, until they count
//	space.go       this machine's own disk is full
//	award.go       awards sent, missed, declined
//	clockset.go    the wall clock is set: windows move, places are taken back
//	answers.go     bids, refusals, and when a round is over
//	grant.go       requests for leases, progress
//	renew.go       what a request tells beside what it asks
//	presence.go    sites come, go, are banned
//	look.go        taking the looks that wait
//	ranking.go     the order of the offers that stand
//	desk.go        what a strategy may ask for and do
//	place_*.go     the strategies; parts_*.go: what together needs besides
//	strategies.go  which strategy a job has
//	submit.go      a job is submitted, or a probe
//	restore.go     the facts of an earlier run; resume.go: taking them up
//	check.go       the invariants
//	domains.go     what the own domain and neighbours have answered, for people
//	view.go        read-only access for people; view_copies.go: of copies
//	archive.go     ended jobs leave for the history
//	step.go        the one list of all that can happen
//
// Words: onX takes something from outside, verbs act, isX and hasX ask and
// change nothing.
//
// The protocol is that of the thesis' section 4.1; failover order is FIBR
// (A. Lidya Therasa et al., "Dynamic Adaptation of Checkpoints and Rescheduling
// in Grid Computing").
package broker
