//go:build unix

package supervise

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// The kernel takes 0 for the caller's own group and -1 for all processes: neither is signalled.
// Signal 0 changes nothing, but reaches whom a signal would.
func TestNoSignalWithoutAGroup(t *testing.T) {
	t.Parallel()
	for _, leader := range []int{0, 1, -1} {
		if err := signalGroup(leader, 0); !errors.Is(err, errNoGroup) {
			t.Errorf("group %d was signalled: %v", leader, err)
		}
		if awaitGroupGone(leader, time.Millisecond) {
			t.Errorf("group %d is said to be gone", leader)
		}
	}
}

// A group is gone when its leader has ended, before or after it was waited for.
func TestAwaitGroupGone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if signalGroup(pid, 0) != nil || awaitGroupGone(pid, 5*time.Millisecond) {
		t.Error("a group that lives is said to be gone")
	}
	killGroup(pid)
	_ = cmd.Wait()
	if !awaitGroupGone(pid, time.Minute) {
		t.Error("a group that has ended is not said to be gone")
	}
	err := errors.Join(signalGroup(pid, syscall.SIGCONT), resumeGroup(pid), freezeGroup(pid))
	if err != nil {
		t.Errorf("a group that is gone: %v", err)
	}
}
