//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

// delegation is of Linux alone.
type delegation struct{}

func delegate(*account) (delegation, error) {
	return delegation{}, errors.New("-delegate: only Linux has control groups")
}

func (delegation) end() error { return nil }

func (delegation) run(cmd *exec.Cmd) ([]byte, error) { return cmd.CombinedOutput() }
