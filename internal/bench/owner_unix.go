//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// nobody is the user that agents run as when the bench runs as root: an agent of
// root takes no commands where nothing counts their processes, and owners are told
// to run theirs as an ordinary user.
const nobody = 65534

// asOwner lets a command run as an ordinary user.
func asOwner(cmd *exec.Cmd) {
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// giveToOwner gives a directory and all in it, which the bench made, to that user.
func giveToOwner(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody) //nolint:gosec // G122: nobody else writes there yet
	})
	if err != nil {
		return fmt.Errorf("give the agents their directory: %w", err)
	}
	return nil
}
