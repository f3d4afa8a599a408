// Package tui draws the screens of `siteagent top` and `submit top` and turns keys into requests to
// the agent. A screen is a function of messages: it reads no clock and does no I/O, neither when
// it takes one nor when it draws its lines. Calls to the agent leave it as values, which the
// program around it makes. So tests drive it with keys and answers alone.
//
// The package does not know how to reach an agent, and has no words of its own for why a site does
// not share or a job waits: cmd/ passes both.
//
//	screen.go   what both screens have: cursor, pages, questions, the connection, help
//	keys.go     ... what keys do
//	draw.go     ... the lines drawn
//	list.go     rows under headings, in columns that fit
//	text.go     text cut to columns, bars, colours
//	site.go     siteagent top: a site's state and its keys
//	siterows.go ... drawn
//	fleet.go    siteagent top --domain: the members, and the keys that steer them
//	jobs.go     submit top: the own jobs and their keys
//	jobrows.go  ... drawn
//	log.go      ... what a task printed
//	plain.go    a screen printed once, as plain lines
//	run.go      the program on a terminal
package tui
