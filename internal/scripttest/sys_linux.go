package scripttest

import (
	"os/exec"
	"syscall"
)

// dieWithTest lets the process end with the test, should that be killed.
func dieWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
