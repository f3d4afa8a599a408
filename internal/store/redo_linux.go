package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData waits until what was written to a file is on the disk, without the time of it.
func syncData(file *os.File) error {
	for {
		err := unix.Fdatasync(int(file.Fd()))
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return &os.PathError{Op: "sync", Path: file.Name(), Err: err}
		}
	}
}
