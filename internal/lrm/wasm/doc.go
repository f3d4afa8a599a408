// Package wasm runs WASI preview 1 modules with wazero, each in a process of its
// own under a supervisor. It needs nothing installed and is the adapter that
// every site has.
//
// What a program sees:
//   - one file system at /: its inputs, read-only, over one writable scratch tree
//     that is empty but for the parent directories of inputs and outputs. There are
//     no links; sync does nothing, since scratch need not survive a crash.
//   - args, env and an empty standard input. The first argument is the module's
//     name, "module.wasm".
//   - clocks that do not tell the time: they begin at a fixed moment, advance by
//     one millisecond whenever they are read and by what the program sleeps. A
//     sleep takes as long as asked, up to a minute a call.
//   - random numbers seeded by the task's ID: the same in every attempt of a task,
//     so that attempts can be compared, and different in each task of an array.
//   - files with the times of that clock, and numbers that follow from their paths.
//   - no network.
//
// A module that exports step, and no _start, is run step by step, and its state is saved between
// two of them when one is wanted (ADR 0058).
//
// What keeps it in: WebAssembly itself; the file system of jail.go, which reaches
// the host only through os.Root; and, as the second wall where the kernel has it,
// Landlock around the runner's process, without TCP.
//
// Ends: proc_exit or return is CauseExited. A trap is CauseSignal 6, as an abort
// would be. A module that does not compile or link is CauseBadWork. A program
// that fails after it was refused memory or disk is CauseMemory or CauseDisk; WASI
// in wazero has no "no space" error, a full scratch answers "I/O error".
//
//	adapter.go   Config, Adapter: what the agent asks
//	runner.go    the runner's process: compile, run, how it ended
//	steps.go     a module of steps, and how it goes on from a state
//	yields.go    an ordinary program whose frames asyncify can take away and bring back
//	keeper.go    when states of it are saved, and why not
//	state.go     the form of a state, and what is wrong with one
//	scratch.go   the files of the sandbox in a state
//	printed.go   output streams in a state
//	layout.go    what a module exports and declares; its hidden variables exposed
//	opcodes.go   what its instructions do to state that cannot be captured
//	binary.go    the binary format of modules
//	cache.go     compiled modules on disk
//	jail.go      the guest's file system: names resolved within it
//	jailfile.go  its open files
//	jaildir.go   its directories
//	jailstat.go  what a guest is told of its files
//	quota.go     bytes and files that it may write
//	memory.go    the guest's memory, and its limit
//	memory_*.go  memory reserved from this system
//	clock.go     time, sleep and randomness of the guest
//	wall_*.go    Landlock around the runner, where the kernel has it
//	walls.go     trials of the ceilings
//	turn_*.go    one compilation at a time
package wasm
