// Package native runs commands under bubblewrap (bwrap) or gVisor (runsc), on Linux,
// each under a supervisor. An owner must allow it; it is offered only where a sandbox
// could be made when the adapter was.
//
// What a command sees:
//   - a root directory of its own, writable, in which whatever it writes counts as
//     disk: empty but for /tmp, /work (where it starts, and its HOME), and the parent
//     directories of inputs and outputs. Inputs stand at their paths, read-only; those of a
//     series, when they are small, are copies of its own.
//   - the host's programs, read-only: /usr with /bin, /lib and so on. In /etc, read-only,
//     /etc/alternatives, the loader's cache, and the names of one user and one host. Nothing
//     else of the host's files: not even the names of its users.
//   - its own /proc, a /dev of the harmless devices, no network, no other processes.
//   - PATH, HOME, TMPDIR, the task's variables, and an empty standard input.
//
// Under bubblewrap it runs as nobody without any capability, in namespaces of its own
// (user, mount, pid, network, ipc, uts, cgroup), with an empty ring of keys, behind a
// filter of the system calls that those do not enclose, and dies when its first
// process does. Under gVisor it runs on a kernel of its own, as that kernel's root
// without any capability; the kernel runs in such namespaces and dies with them.
//
// The kernel holds limits: memory, processes and cores by cgroups, version 2 or 1, and what is
// written by a file system of the attempt's own in memory, which counts as its memory. Where it
// cannot, commands are not offered, unless the owner allows that: then memory and processes are
// watched by looking, up to forty times a second, and bounded for each process by the kernel; so
// is the disk, on which no file gets larger than the limit. Support.Walls says which.
//
// Ends: the command's exit code is CauseExited, 127 if it was not found, 126 if
// it cannot be executed, 128 plus the signal's number if it was killed. A command
// that failed after it was refused memory or disk is CauseMemory or CauseDisk: by
// the group's counter of kills, by SIGXFSZ, a full file system, or what it says on its standard
// error.
//
//	adapter.go       Config, Adapter: what the agent asks
//	host.go          which sandbox this machine has, by trying
//	sandbox.go       one attempt's sandbox: arguments, limits, environment
//	warm.go          sandboxes that take one attempt of a series after the other
//	strays.go        sandboxes that nobody knows any more, ended
//	etc.go           its /etc
//	direct.go        how its command begins: behind a shell, or without one
//	gvisor.go        the same under gVisor
//	keeping.go       what a keeper of gVisor is told and tells, and whether saving works here
//	keeper_linux.go  the keeper: it runs a command under gVisor from its states
//	saving_linux.go  ... and saves it
//	gvrun_linux.go   ... one run of gVisor, and what it printed
//	kept.go          a saved state as one file
//	groups.go        cgroups of one attempt, version 2 and 1
//	findgroups.go    where the agent may make groups
//	filter_linux.go  the filter of system calls, as a program for the kernel
//	calls_linux.go   which calls it lets pass; calls.txt is the profile's list
//	runner.go        the runner, which becomes the sandbox
//	runner_*.go      its limits and signals on this system
//	ending.go        an exit code, and what was to blame
//	walls.go         how ceilings are enforced, for people
package native
