//go:build unix

package lrmtest

import "syscall"

const stopSignal = syscall.SIGSTOP
