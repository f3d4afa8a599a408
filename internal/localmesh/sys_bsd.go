//go:build unix && !linux

package localmesh

import (
	"os/exec"
	"syscall"
)

// separate puts a process into a group of its own, so that ^C on the terminal
// reaches our program alone.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
