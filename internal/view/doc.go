// Package view holds what the API and the command line show: jobs, tasks,
// offers, sites, events and the agent's own state as JSON-facing values, so that
// pkg/grid stays small. Times are RFC 3339 in UTC; durations and sizes carry
// their unit in the field's name (runtime_seconds, memory_bytes). Unknown is
// left out, never 0.
//
// The package also names the errors by which a backend tells the API what went
// wrong (ErrNotFound, ErrDenied, ...), because both sides may import it.
//
//	job.go             jobs and tasks, and their phases
//	copies.go          the copies in which a task runs
//	spec.go            a job's specification, to and from pkg/grid
//	tes.go             tasks of workflow engines
//	move.go            tasks on their way to other sites
//	offer.go           how sites answered
//	counterfactual.go  what a refused job would have to ask less of
//	mapsvg.go          the virtual map drawn
//	site.go            sites, and an agent's own status
//	given.go           what a site gave, and for whom
//	fault.go           what counts against a site
//	machine.go         what was found out about a machine
//	configuration.go   settings, and where each comes from
//	promise.go         what became of promises
//	planning.go        the site's plan, and reservations
//	group.go           agents that go on with an owner's jobs
//	member.go          members, invitations, checks
//	link.go            linked domains, policies, invitations to links
//	page.go            pages of lists
//	event.go           events, and the log of the last ones
//	errors.go          errors that the API answers with
//	time.go            moments and durations in JSON
//	words.go           words in a job's JSON: unattended, overrun
package view
