//go:build !linux

package scratch

import (
	"context"
	"errors"
)

// Arg is the argument of a trial, which no other system makes.
const Arg = "__try-mount"

// errLinux means that another system was asked for a file system.
var errLinux = errors.New("file systems of a size that the kernel holds are made on Linux only")

// Enter does nothing.
func Enter(context.Context, string, []string) error { return errLinux }

// Trial fails.
func Trial(string) int { return 1 }

// Mount fails.
func Mount(string, int64, int) error { return errLinux }

// Resize fails.
func Resize(string, int64, int) error { return errLinux }

// Move fails.
func Move(string, string) error { return errLinux }

// Unmount does nothing: nothing is mounted.
func Unmount(string) error { return nil }

// IsFull is false.
func IsFull(string) bool { return false }

// Works says that nothing can be mounted.
func Works(string) error { return errLinux }
