package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// mountDisk makes a directory and mounts a file system of that size there.
func mountDisk(dir string, bytes int64) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		return errors.Join(fmt.Errorf("mount %s: %w", dir, err), os.Remove(dir))
	}
	return nil
}

// unmountDisk takes it down; its directory must be empty then, or stays.
func unmountDisk(dir string) error {
	if err := syscall.Unmount(dir, 0); err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return os.Remove(dir)
}

const ballastName = "ballast"

// fillDisk writes a file until nothing more fits.
func fillDisk(dir string) error {
	f, err := os.Create(filepath.Join(dir, ballastName))
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 16 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("fill %s: %w", dir, err)
		}
		err = nil
	}
	return nil
}

// relieveDisk makes room again, unless the end of an earlier trouble of the disk has.
func relieveDisk(dir string) error {
	err := os.Remove(filepath.Join(dir, ballastName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
