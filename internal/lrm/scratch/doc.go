// Package scratch gives attempts file systems of their own, whose size and number of files the
// kernel holds: in memory, where an attempt's files count as its memory.
//
// To mount anything, a program needs a mount namespace of its own, and an ordinary user a user
// namespace for that. A process with several threads cannot move into one, so the agent runs
// itself again in them, in the same process, by unshare(1); under systemd --user also in a scope,
// where it may make control groups. What is mounted is seen by nothing but the agent and what it
// starts, and is gone when they are.
//
//	enter_linux.go  the way into the namespaces, and what is given up there
//	mount_linux.go  a file system mounted, and taken away
//	other.go        systems that have none of it
package scratch
