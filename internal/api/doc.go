// Package api serves an agent to its owner and to submitters on the same
// machine: a REST interface with events, described by openapi.yaml, plus
// /metrics, /livez, /readyz and, if asked for, /debug/pprof.
//
// The specification comes first: server.gen.go is generated from it (go generate)
// and a test holds every answer against it. What the API needs of an agent is
// Backend, declared here in small interfaces over pkg/grid and internal/view.
//
// Two doors lead in. The unix socket belongs to one user (0600) and asks for
// nothing more. The TCP address must be loopback; there every request carries a
// Host that names a loopback address, so that a web page whose name was pointed at
// 127.0.0.1 gets nowhere, and a bearer token or a session. Sessions are for the
// agent's own page: a link that was asked for by the socket opens one, a cookie
// carries it, and to change anything it takes a word besides that only the page
// knows. The API never opens a path that a client names: data comes and goes in
// bodies.
//
//	backend.go        what the API needs of an agent
//	server.go         Options, Server: the two doors opened and served
//	listen.go         the socket, the loopback address, the token
//	gate.go           what passes over TCP: the page, who has a token or a session
//	guest.go          jobs and the site as guests of the page see them
//	router.go         paths, checks before a handler, errors as problems
//	handlers.go       jobs, sites, status, the owner's orders
//	offers.go         how sites answer, have answered in each round, and would
//	sessions.go       links to the page, signing in and out
//	page.go           which page of a list is wanted
//	key.go            Idempotency-Key
//	members.go        members and invitations
//	fleet.go          other sites, looked at and steered from afar
//	links.go          linked domains, and invitations to links
//	planning.go       reservations, and the order of the plan
//	configuration.go  where each setting comes from, reading it again, changing it
//	streams.go        data, logs and events, which flow
//	generate.go       how server.gen.go is made from openapi.yaml
package api
