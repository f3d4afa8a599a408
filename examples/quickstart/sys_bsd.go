//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// separate puts a process into a group of its own, so that ^C on the terminal
// reaches the quickstart alone.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
