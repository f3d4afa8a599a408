// Package supervise runs each attempt under a process of its own, for adapters
// whose attempts are processes.
//
//	agent --commands--> supervisor --starts, stops, continues, kills--> runner
//	      <--events----            <--report, stdout, stderr-----------
//
// The supervisor is a small process and the only one that enforces: the end of
// the lease (it stops the runner's whole process group), the time limit, the
// limits on output and disk. It is apart from the runner because compiled
// WebAssembly in a tight loop cannot be preempted by the Go runtime, and apart
// from the agent so that an agent that hangs or is stopped cannot leave an
// attempt running beyond its lease. It dies with its agent: its standard input
// is a pipe from the agent, and the end of that pipe means that the agent is
// dead. One whose attempt has ended, and that has no child left, takes the next
// within moments: never two at a time. The runner dies with its supervisor: on Linux by the
// parent-death signal, elsewhere only when the supervisor could still act.
//
// A runner that only bounds itself and becomes another program says so by an
// Enclosure. The supervisor then starts that program in its place, where it can: the
// program is traced until its first step, at which it stops, is moved into those of
// its groups in which it has not begun, gets its limits, and is let go. Limits that the
// sandbox's own making must not have, what it runs gets at a gate, just before it begins.
//
// Commands and events are JSON, one object a line. An attempt begins with its Spec.
//
//	start.go              an attempt as the agent sees it: leases, stop, CPU time
//	pool.go               supervisors that wait for the next attempt
//	queue.go              attempts of a burst that wait for a supervisor
//	protocol.go           what agent, supervisor and runner say to each other
//	main.go               the supervisor's process, from one attempt to the next
//	loop.go               what it enforces: lease, time limit, freezing, the end
//	alarm_*.go            a timer that goes on while the machine is suspended
//	look.go               looks at memory, processes and disk
//	meter.go              pauses for a program that takes more than its share of the processors
//	use.go                what is on disk, also behind closed directories
//	runner.go             the runner's process, started, frozen and ended
//	enclosure_*.go        a sandbox started in the runner's place, traced
//	enter_linux.go        that one begun in its groups
//	gate_linux.go         what it runs held back until that is bounded
//	warm_*.go             a sandbox that takes one attempt after the other
//	warmed.go             ... as the agent sees it, between two attempts
//	farewell.go           the submitter told that agent and attempt are dead
//	recover.go            what an earlier agent left, ended
//	rotate.go             the run record, kept short
//	tree_*.go             all processes of an attempt: frozen, stopped, reaped
//	usage_*.go            CPU time of processes and groups
//	procfs_linux.go       descendants of a process
//	sys_*.go              signals, priorities and process identities of this system
//	setgroups_linux.go    the system call by which groups are given up
//	setgroups32_linux.go  the same on machines of 32 bits
package supervise

// Arg is the hidden argument with which an executable runs itself again as a
// supervisor: main calls Main then, before anything else.
const Arg = "__supervise"
