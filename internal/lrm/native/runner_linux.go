package native

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// become bounds this process and turns it into the sandbox.
func become(work job) error {
	for _, door := range work.Join {
		if err := os.WriteFile(door, []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			return fmt.Errorf("join group: %w", err)
		}
	}
	if os.Getuid() == 0 {
		if err := unix.Setgroups(nil); err != nil && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("leave groups: %w", err)
		}
	}
	// An empty ring of keys in place of the owner's. A kernel without keys has none to
	// hide, and one that forbids the call also forbids it to the command.
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("leave the owner's keys: %w", err)
	}
	if err := keepStatus(work.StatusPath); err != nil {
		return err
	}
	if len(work.Filter) > 0 {
		if err := keepFilter(work.Filter); err != nil {
			return fmt.Errorf("keep filter: %w", err)
		}
	}
	for resource, most := range work.Rlimits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("limit resource %d: %w", resource, err)
		}
	}
	err := unix.Exec(work.Program, append([]string{filepath.Base(work.Program)}, work.Args...), []string{})
	return fmt.Errorf("start sandbox: %w", err)
}

// keepStatus puts the file of that path behind statusFD and closes all other
// files, because nothing of this process but the streams may reach the command.
func keepStatus(path string) error {
	status := -1
	if path != "" {
		var err error
		if status, err = unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o600); err != nil {
			return fmt.Errorf("keep status: %w", err)
		}
	}
	err := unix.CloseRange(statusFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("close files: %w", err)
	}
	switch status {
	case -1:
		return nil
	case statusFD:
		_, err = unix.FcntlInt(statusFD, unix.F_SETFD, 0)
	default:
		err = unix.Dup3(status, statusFD, 0)
	}
	if err != nil {
		return fmt.Errorf("keep status: %w", err)
	}
	return nil
}

// rlimits are what the kernel holds each process of bubblewrap's sandbox to.
func rlimits(fileBytes int64) map[int]uint64 {
	return map[int]uint64{
		unix.RLIMIT_CORE:   0, // no dumps on the owner's disk
		unix.RLIMIT_NOFILE: openFiles, unix.RLIMIT_FSIZE: uint64(max(fileBytes, 0)),
	}
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
