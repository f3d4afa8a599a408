//go:build !linux

package main

import (
	"errors"
	"os"
	"os/exec"
)

// dress has a command run with temporary files of its own.
func (a *account) dress(cmd *exec.Cmd, home string) error {
	if a != nil {
		return errors.New("-as: only Linux runs the tests as another user")
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+home)
	return nil
}
