// Package agent is the live driver: it runs a site's two machines against the
// real world. Each machine belongs to one goroutine (a loop), which takes
// inputs from a queue, journals them, lets the machine think, makes the facts
// durable, and only then carries out the other effects.
//
// Everything else that happens - messages, sandboxes, transfers, users - lives
// in goroutines of its own and reaches a machine only as an input. Users read a
// machine's state by a question that its loop answers between two steps; what they are
// shown of it is internal/agent/backend.
//
//	agent.go     Config, New, Run, Close: the life of an agent
//	ask.go       the door for internal/agent/backend: questions, commands, what is known
//	loop.go      the goroutine of a machine: queue, journal, facts before effects, timers
//	remember.go  facts written, also by a disk that does not take them at first
//	machine.go   the two machines made from the configuration, also for a replay
//	fencing_*.go a build without fencing, for those who test the audit
//	clock.go     the machines' time, the supervisors', and the wall clock followed
//	network.go   messages to and from the mesh, and effects that are carried out there
//	heed.go      who acts for which owner: whom the site's machine heeds and answers
//	heeddomain.go who the domain's controller is, and what it says
//	heedpeers.go which owners are there: those for whom somebody acts
//	groups.go    the groups that this agent has a part in
//	around.go    what the machines were told of, for those that boot later
//	group.go     the loop of one: its member of the group, its disk, the machine it is for
//	group_duty.go    what a group is for, and whose word it is who belongs to it
//	group_machine.go a machine booted, thrown away, and what it wants carried out
//	group_jobs.go    the duty of an owner's group: its broker
//	rounds.go        ... the last rounds of the own jobs remembered, beside it
//	group_owner.go   that owner: its standbys, its commands, and the lead that returns to it
//	group_control.go the duty of the domain's group: its controller
//	domain.go        that group founded and joined
//	domain_view.go   the controller as people see it
//	group_form.go    members found and replaced
//	group_certify.go members certified, and others told
//	group_wire.go    what members of groups say to each other
//	group_send.go    entries and tables sent as fast as a site takes them
//	group_lead.go    the lead handed over, and back to its owner
//	group_content.go inputs, results and checkpoints kept by more than one member: who acts asks
//	group_keeping.go ... and a member holds what it is asked to hold
//	group_limit.go   what an owner's facts may take, and what follows when they take more
//	group_stock.go   how much is kept for another owner
//	group_recover.go a group made anew without those that are lost for good
//	group_view.go    groups as people see them
//	work.go      attempts: start, lease, suspension, stop, what they left
//	spares.go    their emptied directories, for the next ones
//	farewell.go  whom to tell of an attempt should the agent die
//	staging.go   inputs and modules fetched before a start
//	steer.go     what those may ask from afar whom the owner lists
//	saving.go    checkpoints taken of running attempts
//	restoring.go checkpoints pulled, checked, and laid out before a start
//	encrypted.go content of encrypted jobs opened and encrypted; their keys for sites
//	intake.go    large content taken in by a process of low priority
//	modules.go   one copy of a module for all attempts that run it
//	verify.go    whether the sandbox could keep a plan, before that is promised
//	pins.go      which data is kept, and for what
//	readers.go   who may have it
//	logs.go      what attempts print, read here, elsewhere and for others
//	open_*.go    how this system opens a plain file and nothing else
//	check.go     probes for other sites that ask whether their offers arrive
//	border.go    the gateway's machine, and what is decided about links
//	border_work.go   ... what it wants carried out
//	deputies.go      who stands in for the gateway, and when
//	neighbours.go    what members know of neighbours, and say to them by way of the gateway
//	bans.go      the roster opened, and the machines told who is banned
//	leave.go     the end that users ask for: when nothing runs any more
//	owner.go     the owner's use of the machine, and trials of the ceilings
//	bound.go     outputs fetched within a bound
//	disk.go      a full disk lived through: ballast, a closed site, and room again
//	vouched.go   nothing starts but what was signed, where the owner wants that
//	terms.go     what the owner decides while the agent runs
//	host.go      what the machine can do, and what others leave of it
//	archive.go   ended jobs written to the history, and old ones let go
//	past.go      the site's history, its availability and forecasts
//	giving.go    what this site gave, accounted for
//	report.go    what the machines report: counted, logged, shown
//	timings.go   how long work takes, as histograms
package agent
