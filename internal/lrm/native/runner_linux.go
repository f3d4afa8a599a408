package native

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
)

// become bounds this process and turns it into the sandbox.
func become(work *supervise.Enclosure) error {
	runtime.LockOSThread() // what it loses it loses for itself
	if err := supervise.LeaveOwner(); err != nil {
		return err
	}
	if err := keepStatus(work.StatusPath); err != nil {
		return err
	}
	if len(work.Filter) > 0 {
		if err := keepFilter(work.Filter); err != nil {
			return fmt.Errorf("keep filter: %w", err)
		}
	}
	if err := work.Bound(os.Getpid()); err != nil {
		return err
	}
	err := unix.Exec(
		work.Program, slices.Concat([]string{filepath.Base(work.Program)}, work.Args, work.Command),
		[]string{},
	)
	return fmt.Errorf("start sandbox: %w", err)
}

// keepStatus puts the file of that path behind supervise.StatusFD and closes all other
// files, because nothing of this process but the streams may reach the command.
func keepStatus(path string) error {
	status := -1
	if path != "" {
		var err error
		if status, err = unix.Open(
			path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o600,
		); err != nil {
			return fmt.Errorf("keep status: %w", err)
		}
	}
	err := unix.CloseRange(supervise.StatusFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("close files: %w", err)
	}
	switch status {
	case -1:
		return nil
	case supervise.StatusFD:
		_, err = unix.FcntlInt(supervise.StatusFD, unix.F_SETFD, 0)
	default:
		err = unix.Dup3(status, supervise.StatusFD, 0)
	}
	if err != nil {
		return fmt.Errorf("keep status: %w", err)
	}
	return nil
}

// rlimits are the kernel's limits for each process of bubblewrap's sandbox.
func rlimits(fileBytes int64) map[int]uint64 {
	return map[int]uint64{
		unix.RLIMIT_CORE:   0, // no dumps on the owner's disk
		unix.RLIMIT_NOFILE: openFiles, unix.RLIMIT_FSIZE: uint64(max(fileBytes, 0)),
		// These two the kernel counts for the owner and the jobs together.
		unix.RLIMIT_SIGPENDING: pendingSignals, unix.RLIMIT_MSGQUEUE: queuedBytes,
	}
}

// insideLimits are the kernel's limits for each process of the command, which must not bound
// the sandbox's making: bytes of private memory, and processes in its namespace; 0 = no limit.
func insideLimits(memory int64, processes int) map[int]uint64 {
	limits := make(map[int]uint64)
	if memory > 0 {
		limits[unix.RLIMIT_DATA] = uint64(memory)
	}
	if processes > 0 {
		limits[unix.RLIMIT_NPROC] = uint64(processes)
	}
	return limits
}

// countsInside reports whether the kernel counts processes for each user
// namespace apart, which is so since Linux 5.14, and never for root.
func countsInside() bool {
	if os.Getuid() == 0 {
		return false
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false
	}
	var major, minor int
	release, _, _ := strings.Cut(unix.ByteSliceToString(name.Release[:]), "-")
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major > 5 || major == 5 && minor >= 14
}

// marked reports whether a directory carries attributes that a command gave it, or may.
func marked(dir string) bool {
	var names [1 << 10]byte
	n, err := unix.Llistxattr(dir, names[:])
	if err != nil {
		return !errors.Is(err, unix.ENOTSUP)
	}
	return bytes.Contains(names[:n], []byte("user."))
}
