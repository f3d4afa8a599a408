package scratch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// overhead is the part of a file system's size that is added to it: a file that fills the limit to
// the last byte needs some for itself.
const overhead = 32

// Mount puts a file system on a directory, which is then the agent's alone: of so many bytes, and a
// 32nd more, and of so many files and directories.
func Mount(dir string, bytes int64, files int) error { return mount(dir, bytes, files, 0) }

// Resize bounds what Mount put on a directory anew. What is in it stays.
func Resize(dir string, bytes int64, files int) error {
	return mount(dir, bytes, files, unix.MS_REMOUNT)
}

func mount(dir string, bytes int64, files int, further uintptr) error {
	const private = 0o700
	options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=%o", bytes+bytes/overhead, files, private)
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("scratch", dir, "tmpfs", flags|further, options); err != nil {
		return fmt.Errorf("mount a file system in memory: %w", err)
	}
	return nil
}

// Move moves what Mount put on a directory to another directory.
func Move(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move a file system in memory: %w", err)
	}
	return nil
}

// Unmount takes away what Mount put on a directory, with all that is in it. Where nothing is
// mounted it does nothing.
func Unmount(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	switch {
	case err == nil, errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT),
		errors.Is(err, unix.ENOTDIR):
		return nil
	case errors.Is(err, unix.EPERM): // who may mount nothing has mounted nothing
		return nil
	default:
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
}

// IsFull reports whether a file system has no space, or no file, left.
func IsFull(dir string) bool {
	var free unix.Statfs_t
	if err := unix.Statfs(dir, &free); err != nil {
		return false
	}
	return free.Bavail == 0 || free.Ffree == 0
}

// Works tries whether a file system can be mounted below a directory, and says why not.
func Works(dir string) error {
	trial, err := os.MkdirTemp(dir, "mount-")
	if err != nil {
		return err
	}
	const little = 1 << 16
	err = Mount(trial, little, little)
	return errors.Join(err, Unmount(trial), os.Remove(trial))
}
