// Package agent is the live driver: it runs a site's two machines against the
// real world. Each machine belongs to one goroutine (a loop), which takes
// inputs from a queue, journals them, lets the machine think, makes the facts
// durable, and only then carries out the other effects.
//
// Everything else that happens - messages, sandboxes, transfers, users - lives
// in goroutines of its own and reaches a machine only as an input. Users read a
// machine's state by a question that its loop answers between two steps.
package agent
