// Package backend shows a running agent to its users, for internal/api. It queries the
// machines, passes on the users' orders, and translates the answers into the words and
// shapes of internal/view. It keeps no state of its own and starts nothing: work that
// must happen whether or not anybody looks stays in the driver, internal/agent, which
// does not know this package.
//
//	backend.go   jobs and data taken in, orders of the owner, errors in the API's words
//	encrypted.go content of encrypted jobs taken in and given out
//	views.go     jobs, tasks and sites as they are shown
//	offers.go    how sites answered, in the last round and in those before
//	why.go       why a job waits or was refused
//	copies.go    the copies in which a task runs
//	faults.go    what counts against sites
//	past.go      lists of jobs, and those that only the history has
//	share.go     what other programs leave of the processor for a task
//	planning.go  the site's plan and this agent's reservations
//	members.go   who takes part: the list, decisions
//	rotation.go  the domain's key: rotated, and contested
//	invites.go   invitations: made, listed, revoked
//	links.go     linked domains: invited, joined, on which terms, ended
//	neighbours.go  ... as any member sees them, and how its jobs used them
//	status.go    the agent's own state
//	given.go     what this site gave
//	standbys.go  who goes on with whose jobs
//	gauges.go    what rises and falls here, as metrics
//	host.go      its machine, its owner, its past and its place in the map
//	steer.go     other sites, looked at and paused from afar
//	check.go     whether this site's offers arrive elsewhere
//	logs.go      where a task's output is read from
package backend
