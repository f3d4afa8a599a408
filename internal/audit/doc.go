// Package audit answers some questions about a mesh from what its sites wrote down: was a
// task lost, or its result? Did it run twice at the same time? Does nothing happen with it?
// Did what was promised begin and end in time, and if not, was that said? It reads the facts and
// journals of all agents, the run records of their supervisors and what their submitters
// hold (Collect), or takes the same in memory (Records), and counts (Audit). The facts of one
// submitter may be those of several agents, which stand by for it: what one of them knows counts,
// and what all of them know counts once.
//
//	audit.go    Records and Report; what is lost and what ran twice
//	copies.go   one task of its copies
//	inspect.go  what is stuck, late, or without its result
//	collect.go  Records from state directories
//	facts.go    the submitter's facts, as far as they are read
//	runs.go     run records into runs
//	report.go   the report as text
//	json.go     ... as JSON
package audit
