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
//   - no network.
//
// What keeps it in: WebAssembly itself; the file system of jail.go, which reaches
// the host only through os.Root; and, as the second wall where the kernel has it,
// Landlock around the runner's process, without TCP.
//
// Ends: proc_exit or return is CauseExited. A trap is CauseSignal 6, as an abort
// would be. A module that does not compile or link is CauseBadWork. A program
// that fails after it was refused memory or disk is CauseMemory or CauseDisk; WASI
// in wazero has no "no space" error, a full scratch answers "I/O error".
package wasm
