// Package backend shows a running agent to its users: it is what internal/api asks. It
// reads the machines by questions, gives them the users' orders, and puts what they
// answer into the words and shapes of internal/view. It keeps no state of its own and
// starts nothing: what must happen whether or not anybody looks stays in the driver,
// internal/agent, which does not know this package.
//
//	backend.go   jobs and data taken in, orders of the owner, errors in the API's words
//	views.go     jobs, tasks, offers and sites as they are shown
//	planning.go  the site's plan and this agent's reservations
//	members.go   who takes part: the list, decisions, invitations
//	status.go    the agent's own state
//	host.go      its machine, its owner, its past and its place in the map
//	check.go     whether this site's offers arrive elsewhere
//	logs.go      where a task's output is read from
package backend
