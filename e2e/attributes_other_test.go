//go:build e2e && !linux

package e2e_test

import "syscall"

// attributes lets an agent lead a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
