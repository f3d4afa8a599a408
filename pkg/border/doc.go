// Package border is the machine of a gateway: what crosses from one domain into another, and what
// does not. One runs at the site of a domain that holds its links. It has two halves.
//
// The outer half takes: towards the submitters of its own domain it is a site, in the name of each
// neighbour. It answers announcements with what the neighbour offers, takes awards, asks for
// leases, and tells how attempts end. The inner half gives: it judges what a neighbour asks by the
// link's terms, has the broker of its own site probe and run it as a job of its own, and tells the
// neighbour how that goes. A submitter knows a neighbour as one site, and of another domain's
// inside nothing crosses.
//
// A task still never runs twice at the same time. An outer half has a lease of the submitter and
// lends it on: it passes on for how long, and the inner half counts that from the sending of its
// own request, and has its broker grant no lease that ends later (step.Ceiling). So when the
// submitter's lease is over, and it awards the task again, nothing of it runs behind the border.
//
// What is facts: orders that the neighbour has taken and those taken of it, until each is
// receipted, and the favours that the receipts have added up to. Queries are not: they are asked
// again.
//
//	config.go       what a gateway is told once, limits
//	events.go       every event that a Report can carry
//	machine.go      the state, and the one list of inputs, messages and timers
//	table.go        orders under way, in their order
//	link.go         links, their terms, who is there
//	favours.go      who owes what, over all gateways of the domain
//	outer_ask.go    taking: what a neighbour offers
//	outer_order.go  ... tasks ordered of it, until it has taken them
//	outer_end.go    ... leases lent on, ends, receipts
//	inner_query.go  giving: what a neighbour asks, and whether the link's terms allow it
//	inner_recall.go ... and what its members have just refused
//	inner_order.go  ... its orders, as jobs of this site's broker
//	inner_lease.go  ... the ceilings of their leases, ends, receipts
//	facts.go        what survives a restart
//	check.go        the invariants
//	data.go         what is kept for orders
//	view.go         read-only access for people
//
// What is bounded: queries and orders under way, of all neighbours and of each. What comes beyond
// is refused, with the reason.
package border
