package wasm

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The Landlock versions that bring what the wall needs.
const (
	landlockRefer = 2 // lets scratch files be renamed into another directory; without it there is no wall
	landlockNet   = 4 // covers TCP
)

// enclose puts the second wall around this process: it may read the inputs,
// write cache and scratch, and neither connect nor listen by TCP. Nothing that
// the kernel lacks is an error.
func enclose(job job) error {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // no dumps of the guest on the owner's disk
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
		return []string{"the kernel's Landlock is missing or older than Linux 5.19: WebAssembly alone keeps programs in; enable the LSM \"landlock\" for a second wall"}
	case version < landlockNet:
		return []string{"the kernel's Landlock does not cover TCP; Linux 6.7 and later do"}
	default:
		return nil
	}
}
