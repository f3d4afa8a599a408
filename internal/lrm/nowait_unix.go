//go:build unix

package lrm

import "syscall"

// noWait does not wait where a pipe stands.
const noWait = syscall.O_NONBLOCK
