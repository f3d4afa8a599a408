// Package lrmtest is the conformance suite of lrm adapters. Every adapter's tests
// call Run; an adapter that passes may be trusted by the agent.
//
//	suite.go     Run: the harness, and the list of cases
//	helpers.go   attempts made and awaited, also for an adapter's own tests
//	basic.go     what every adapter does: exits, inputs, outputs, records
//	limits.go    leases, time, memory, output, disk
//	agent.go     the agent's end, and what it must not leave
//	attack.go    ways out that a guest may try
//	abuse.go     guests that use up the machine
//	guest.go     the guest program, built
//	keys_*.go    the owner's ring of keys
//	signal_*.go  signals of this system
package lrmtest
