// Package durable puts whole files in place in one step: a reader, and a machine
// that loses power, finds either what was there before or all of what is new.
//
// It is for files that are written anew as a whole. How one grows in between is
// the business of the room that it belongs to.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Replace writes the file, with mode 0600, in place of what may be there.
func Replace(file string, content []byte) error {
	return put(file, content, os.Rename)
}

// Create writes the file, with mode 0600; one that is there already is left as it
// is, and an error that is fs.ErrExist.
func Create(file string, content []byte) error {
	return put(file, content, os.Link)
}

// Rewrite replaces a file that is open for appending, or nil, and opens it again:
// Windows renames nothing onto an open file. Where the new content could not be
// put in place, the file that it gives beside the error has what was there before.
func Rewrite(open *os.File, file string, content []byte) (*os.File, error) {
	var errs []error
	if open != nil {
		errs = append(errs, open.Close())
	}
	errs = append(errs, Replace(file, content))
	again, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0) //nolint:gosec // the caller chose it
	return again, errors.Join(append(errs, err)...)
}

// NoRoom reports whether a write failed for want of space on the disk, or in the user's
// share of it.
func NoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// put writes the content beside the file and lets place give it its name.
func put(file string, content []byte, place func(from, to string) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // after Rename it is gone
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err = place(tmp.Name(), file); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(file))
}

// SyncDir makes the names in a directory durable. Windows keeps names durable by
// itself and refuses to sync a directory.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) //nolint:gosec // the caller chose it
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !cannotSync(err) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// cannotSync reports whether a file system has no way to sync a directory, as some that are
// in user space or behind a network: then its names are as durable as it makes them.
func cannotSync(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}
