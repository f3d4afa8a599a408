// Package owner watches whether the owner of the machine needs it: it reads what
// the kernel reports of processors, queues and pressure, subtracts what the agent's
// own jobs use, and lets the rules of pkg/yield judge. On systems that tell nothing
// it says so and judges by the hours alone.
//
// It does not touch jobs, and it decides nothing itself.
package owner
