//go:build !unix

package localmesh

import (
	"errors"
	"os"
	"os/exec"
)

var errUnsupported = errors.New("this needs Linux, macOS or another Unix: jobs cannot be run here")

func supported() error { return errUnsupported }

func separate(*exec.Cmd) {}

func interruptGroup(leader *os.Process) error { return leader.Kill() }

// Suspend is not supported here.
func Suspend(*os.Process) error { return errUnsupported }

// Resume is not supported here.
func Resume(*os.Process) error { return errUnsupported }
