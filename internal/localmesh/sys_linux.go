package localmesh

import (
	"os/exec"
	"syscall"
)

// separate puts a process into a group of its own, so that ^C on the terminal
// reaches our program alone, and lets it die with it.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
