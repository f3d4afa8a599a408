//go:build unix && !linux

package intake

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command lets an executable start itself as the process of an intake.
func Command(executable string) []string { return []string{executable, Arg} }

// apart gives the process a session of its own, where no signal of a terminal reaches it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// lower gives this process the lowest priority, which belongs to all its threads.
func lower() error {
	const last = 19
	return unix.Setpriority(unix.PRIO_PROCESS, 0, last)
}

// beginSync does nothing: the agent makes files durable.
func beginSync(*os.File) {}
