//go:build unix

package supervise

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// detach gives the supervisor a session of its own: what the terminal or a
// service manager sends to the agent's group does not reach it.
func detach(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}

// errNoGroup means that a process that leads no group of its own was to be signalled.
var errNoGroup = errors.New("no group of an attempt")

// signalGroup sends a signal to all of a leader's group. One that is gone is no error; 0
// and 1 lead none: the kernel takes them for the caller's own group, and for all processes.
func signalGroup(leader int, sig syscall.Signal) error {
	if !isProcess(leader) {
		return errNoGroup
	}
	if err := syscall.Kill(-leader, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

func killGroup(leader int) { _ = signalGroup(leader, syscall.SIGKILL) }

func resumeGroup(leader int) error { return signalGroup(leader, syscall.SIGCONT) }

// awaitGroupGone reports whether nothing of the group was left within limit.
func awaitGroupGone(leader int, limit time.Duration) bool {
	if !isProcess(leader) {
		return false
	}
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		if errors.Is(syscall.Kill(-leader, 0), syscall.ESRCH) || onlyZombie(leader) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// lockFile waits until nobody else holds the lock of that name.
func lockFile(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return func() { _ = f.Close() }, err
		}
	}
}

func isTooLong(err error) bool { return errors.Is(err, syscall.ENAMETOOLONG) }

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// signalOf is the signal that killed the process, 0 if none.
func signalOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return int(status.Signal())
	}
	return 0
}

// diskUse is the space that a file takes on disk, in bytes.
func diskUse(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
