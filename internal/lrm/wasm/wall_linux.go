package wasm

import (
	"errors"
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The Landlock versions that bring what the wall needs.
const (
	// lets scratch files be renamed into another directory; without it there is no wall
	landlockRefer = 2
	landlockNet   = 4 // covers TCP
)

// What this process may take beside the guest's memory. The runtime's own need
// grows with the module, and a module may be made to be expensive: better that
// this process fails than that the machine swaps.
const (
	ownMemory = 1 << 30
	openFiles = 4096
)

// enclose puts the second wall around this process: it may read the inputs,
// write cache and scratch, and neither connect nor listen by TCP. Nothing that
// the kernel lacks is an error.
func enclose(job job) error {
	for resource, most := range map[int]uint64{
		unix.RLIMIT_CORE:   0, // no dumps of the guest on the owner's disk
		unix.RLIMIT_DATA:   uint64(min(max(job.MemoryBytes, 0), maxMemory)) + ownMemory,
		unix.RLIMIT_NOFILE: openFiles,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil &&
			!errors.Is(err, unix.EPERM) {
			return fmt.Errorf("limit resource %d: %w", resource, err)
		}
	}
	var files, dirs []string
	for _, in := range job.Inputs {
		if in.Dir {
			dirs = append(dirs, in.HostPath)
		} else {
			files = append(files, in.HostPath)
		}
	}
	err := landlock.V9.BestEffort().Restrict(
		landlock.ROFiles(files...), landlock.RODirs(dirs...),
		landlock.RWDirs(job.CacheDir), landlock.RWDirs(job.WorkDir).WithRefer())
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

// wallNotes tells the owner what of the second wall is missing.
func wallNotes() []string {
	version, err := llsyscall.LandlockGetABIVersion()
	switch {
	case err != nil || version < landlockRefer:
		return []string{
			"the kernel's Landlock is missing or older than Linux 5.19: " +
				"WebAssembly alone keeps programs in; enable the LSM \"landlock\" for a second wall",
		}
	case version < landlockNet:
		return []string{"the kernel's Landlock does not cover TCP; Linux 6.7 and later do"}
	default:
		return nil
	}
}
