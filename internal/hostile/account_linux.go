package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// dress has a command run as the account, in a home of its own: with its groups, and none of
// this program's.
func (a *account) dress(cmd *exec.Cmd, home string) error {
	cmd.Env = append(os.Environ(), "TMPDIR="+home)
	if a == nil {
		return nil
	}
	cmd.Env = append(cmd.Env, "HOME="+home, "USER="+a.name, "LOGNAME="+a.name, "XDG_RUNTIME_DIR=",
		"GOFLAGS=-buildvcs=false") // git does not speak of another user's checkout
	if a.caches != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(a.caches, "build"),
			"GOMODCACHE="+filepath.Join(a.caches, "mod"))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid},
	}
	return os.Chown(home, int(a.uid), int(a.gid))
}
