// Package lrm is the port to local resource managers: what the agent asks of
// whatever runs attempts on this machine. Each adapter (wasm, fake, ...) is a
// package below and passes the conformance suite of lrmtest.
//
// An attempt runs under a lease. When the lease ends the attempt is frozen, not
// killed: it does not run until SetLease extends the lease. When the agent
// dies, its attempts die with it. Both keep two attempts of one task from
// running at the same time, so every adapter writes them into the run record
// (see ReadRecords), from which they can be audited later.
//
//	port.go        Adapter, Attempt, Process: the port
//	farewell.go    what is done for an attempt when its agent has died
//	outputs.go     what an attempt leaves, collected
//	saving.go      where a program saves its state
//	saver.go       a runner that saves in its program's place
//	nowait_*.go    how a file is opened that may be a pipe
//	record.go      the run record, for audits
//	remove.go      a tree removed, whatever its modes
//	wall.go        how a ceiling is enforced, and trials of it
//	boottime.go    the clock of leases
//	boottime_*.go  its reading on this system
package lrm
