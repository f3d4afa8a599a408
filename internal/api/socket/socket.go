// Package socket tells whether an agent's socket can be that of somebody else. Where no directory
// of the user's own is known, it lies in one below /tmp, which any local user can make first: who
// answers there gets the jobs of the user, and who listens there is at the mercy of its owner.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckFolder looks at the folder in which a socket is to be made. It must belong to this user or
// to root, and no others but those of its group may be able to replace what is in it.
func CheckFolder(path string) error { return checkFolder(path, os.Geteuid()) }

// Check looks at a socket and its folder before anything is sent there. A socket that is not there
// is no error.
func Check(path string) error { return check(path, os.Geteuid()) }

// root is the user that can do everything anyway.
const root = 0

func checkFolder(path string, me int) error {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder) // where a link leads counts
	if err != nil {
		return fmt.Errorf("look at the socket's folder: %w", err)
	}
	if err := belongs(info, me); err != nil {
		return fmt.Errorf("%s, the folder of the socket, %w", folder, err)
	}
	if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 && hasOwners {
		return fmt.Errorf("%s, the folder of the socket, can be written to by any user of this "+
			"machine; `chmod o-w %s`, or choose another one", folder, folder)
	}
	return nil
}

func check(path string, me int) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // who connects says it better
		return nil
	case err != nil:
		return fmt.Errorf("look at the socket: %w", err)
	}
	if err := checkFolder(path, me); err != nil {
		return err
	}
	if err := belongs(info, me); err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	return nil
}

// belongs wants a file to be this user's, or root's.
func belongs(info fs.FileInfo, me int) error {
	owner, known := ownerOf(info)
	if !known || owner == me || owner == root || me == root {
		return nil
	}
	return fmt.Errorf("belongs to another user, number %d, who could answer in the agent's place; "+
		"set XDG_RUNTIME_DIR, or choose another socket (api.socket of siteagent, --addr of submit)",
		owner)
}
