// Package domain is the controller's machine: it knows what the sites of a domain have promised and
// not begun, and says which of it leaves a site that has failed, when, and where to. One runs in
// the domain's group, at the member that acts. It holds no lease and awards nothing: the
// submitters' machines (pkg/broker) do, so that two controllers at a time can do no harm beyond a
// needless move, and a domain without one works as one that has never had one.
//
// What sites say (Bookings) is facts: a site that has failed says no more what it has promised, and
// a controller that takes over has to know. What submitters were told (Remap) is worked out anew,
// from the same bookings, with the same result.
//
//	config.go    what the owner chose, limits
//	events.go    every event that a Report can carry
//	machine.go   the state, and the one list of inputs, messages and timers
//	sites.go     sites come, go, fail, return
//	bookings.go  what sites have promised, as they say
//	judge.go     what leaves failed sites, and where to: VRM, sections 4.1 to 4.6
//	tell.go      submitters are told, and answer
//	favours.go   what the domain has given to linked ones, over all its gateways
//	facts.go     what survives a takeover
//	check.go     the invariants
//	view.go      read-only access for people
//
// What is bounded: sites, the bookings of each, gateways and the accounts of each, and the slots of
// a judgement. A site that claims what it has not makes itself busy, or a target that refuses;
// submitters ask others then.
//
// Source: L.-O. Burchard and others, "VRM: A Failure-Aware Grid Resource Management System".
package domain
