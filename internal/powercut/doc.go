// Package powercut shows what a disk may hold after the power fails while a program
// writes: it is for tests.
//
// Record runs a program and takes down every call by which it changes files below a
// directory, every sync, and every word that it gives as durable (Ack). Tape.Cut then
// lays out the directory as a disk may have it at any point of that: what was synced
// is there; of what was written, created, renamed or removed since, each thing may be
// there or not, and a write may be there in part. Syncing a file does not make its name
// durable, syncing its directory does. The rules are those of POSIX, and stricter than
// those of any one file system; that a disk loses what it said to have synced is not
// among them.
//
// The calls are seen by ptrace, as a debugger does, so that the program under test and
// the libraries in it are the real ones. That needs Linux, and a system that allows a
// process to trace its children; elsewhere the tests skip.
//
//	tape.go           what was recorded, and the directories that may result
//	files.go          the names and open files while it is recorded
//	record_linux.go   a program run and its calls taken down
//	record_other.go   other systems, which record nothing
package powercut
