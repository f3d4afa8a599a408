package native

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const openFiles = 1024

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
	status, err := unix.Open(work.StatusPath, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("keep status: %w", err)
	}
	// Nothing of this process but the streams may reach the command.
	if err = unix.CloseRange(statusFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("close files: %w", err)
	}
	if status != statusFD {
		err = unix.Dup3(status, statusFD, 0)
	} else {
		_, err = unix.FcntlInt(statusFD, unix.F_SETFD, 0)
	}
	if err != nil {
		return fmt.Errorf("keep status: %w", err)
	}
	if err := bound(work); err != nil {
		return err
	}
	return fmt.Errorf("start bubblewrap: %w", unix.Exec(work.Bwrap, append([]string{"bwrap"}, work.Args...), nil))
}

// bound sets what the kernel holds each process to.
func bound(work job) error {
	limits := map[int]uint64{
		unix.RLIMIT_CORE:   0, // no dumps on the owner's disk
		unix.RLIMIT_NOFILE: openFiles, unix.RLIMIT_FSIZE: uint64(max(work.FileBytes, 0)),
	}
	for resource, most := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("limit resource %d: %w", resource, err)
		}
	}
	return nil
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
