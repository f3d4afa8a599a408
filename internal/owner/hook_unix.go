//go:build unix

package owner

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// inGroup gives a command a process group of its own, all of which ends when it is cancelled.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killGroup kills what is left of a group that still has a process.
func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

// beLast gives a group the lowest priority. Best effort.
func beLast(group int) {
	const nicest = 19
	_ = unix.Setpriority(unix.PRIO_PGRP, group, nicest)
	lastOnDisk(group)
}
