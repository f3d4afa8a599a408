//go:build e2e

package e2e_test

import "syscall"

// attributes lets an agent lead a process group of its own, and end with the
// test when that ends without its clean-up, as by a panic.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
