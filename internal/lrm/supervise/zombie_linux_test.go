package supervise

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A leader that has ended and that nobody has waited for, as the first process of a
// container may leave it, is gone.
func TestAZombiesGroupIsGone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	if onlyZombie(cmd.Process.Pid) {
		t.Error("it lives")
	}
	if hasExited(cmd.Process.Pid) {
		t.Error("it has not exited")
	}
	killGroup(cmd.Process.Pid)
	if !awaitGroupGone(cmd.Process.Pid, time.Minute) || !hasExited(cmd.Process.Pid) {
		t.Error("a zombie's group is not said to be gone")
	}
}
