//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

var errUnsupported = errors.New("the quickstart needs Linux, macOS or another Unix: jobs cannot be run here")

func supported() error { return errUnsupported }

func separate(*exec.Cmd) {}

func interruptGroup(leader *os.Process) error { return leader.Kill() }

func suspend(*os.Process) error { return errUnsupported }

func resume(*os.Process) error { return errUnsupported }
