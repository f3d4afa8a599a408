package netlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const tunDevice = "/dev/net/tun"

// inNamespace calls a function on a thread that is in the namespace meanwhile.
// A thread that does not find its way back ends with its goroutine.
func inNamespace(space string, do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		back, err := enter(space)
		if err != nil {
			runtime.UnlockOSThread()
			result <- err
			return
		}
		err = do()
		if errBack := back(); errBack != nil {
			result <- fmt.Errorf("leave the namespace: %w", errBack)
			return // locked: the thread is thrown away
		}
		runtime.UnlockOSThread()
		result <- err
	}()
	return <-result
}

// enter moves the thread into a namespace and returns the way back. After an
// error the thread is in the namespace it was in.
func enter(space string) (func() error, error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("open the own namespace: %w", err)
	}
	there, err := os.Open(filepath.Join(runNetns, space))
	if err != nil {
		return nil, fmt.Errorf("open the namespace: %w", closing(own, err))
	}
	err = unix.Setns(int(there.Fd()), unix.CLONE_NEWNET)
	if err = closing(there, err); err != nil {
		return nil, fmt.Errorf("enter the namespace: %w", closing(own, err))
	}
	return func() error { return closing(own, unix.Setns(int(own.Fd()), unix.CLONE_NEWNET)) }, nil
}

// closing closes a file that was only read and gives back the error.
func closing(f *os.File, err error) error {
	_ = f.Close()
	return err
}

// openTUN makes a TUN device in the thread's namespace. It lives as long as the
// file is open; each Read and Write is one IP packet.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", tunDevice, err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("make a TUN device: %w", err)
	}
	return os.NewFile(uintptr(fd), tunDevice), nil
}

// lead makes a command the leader of a process group that dies with this
// process.
func lead(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill ends a process, or the group of -pid.
func kill(pid int) error {
	err := unix.Kill(pid, unix.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// isDead reports whether there is no such process.
func isDead(pid int) bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
