package main

import (
	"os/exec"
	"syscall"
)

// separate puts a process into a group of its own, so that ^C on the terminal
// reaches the quickstart alone, and lets it die with the quickstart.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
