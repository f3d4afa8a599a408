//go:build !linux

package netlab

import (
	"os"
	"os/exec"
)

const tunDevice = "/dev/net/tun"

func inNamespace(string, func() error) error { return ErrUnsupported }

func openTUN(string) (*os.File, error) { return nil, ErrUnsupported }

func lead(*exec.Cmd) {}

func kill(int) error { return ErrUnsupported }

func isDead(int) bool { return false }
