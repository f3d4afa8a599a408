// Package owner watches whether the owner of the machine needs it: it reads what
// the kernel reports of processors, queues and pressure, subtracts what the agent's
// own jobs use, and lets the rules of pkg/yield judge. On systems that tell nothing
// it says so and judges by the hours alone.
//
// It also asks a program of the owner's, if there is one, whether the machine is shared.
//
// It does not touch jobs, and it decides nothing itself.
//
//	watch.go      the looks, one after the other, and what follows from them
//	probe.go      the kernel's counters of processors, queues and pressure
//	sample.go     the difference of two looks
//	power.go      whether the machine runs on battery
//	asked.go      all that are asked now and then, and what follows from it
//	asker.go      one of them
//	hook.go       ... the owner's program
//	hook_*.go         in a process group of its own
//	heat.go       ... the thermometers of the processors
//	bus.go        ... somebody on the system's bus:
//	metered.go        NetworkManager, whether data costs money
//	input.go          logind, whether keyboard or mouse are used
//	sessions.go       ... of which session
//	x11.go        ... an X server, when they were used last
//	xproto.go         in its own protocol
//	xauthority.go     with the key to it
//	sys_*.go      what this system tells of the agent itself, and priorities
package owner
