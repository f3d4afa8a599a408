//go:build !linux

package supervise

import (
	"context"
	"os/exec"
)

// gate is none: sandboxes are not started from here.
type gate struct{}

func (*gate) open() error { return ErrUnsupported }

func (*gate) close() {}

func startEnclosed(*exec.Cmd, *Enclosure, bool) (*gate, error) { return nil, ErrUnsupported }

//nolint:gosec,noctx // told by the agent
func enclosed(e *Enclosure) *exec.Cmd { return exec.Command(e.Program, e.Args...) }

// Bears is false: there are no groups.
func Bears(context.Context, string) bool { return false }

func keepFiles() {}

// logTo cannot be done here, so that a supervisor watches over one attempt only.
func logTo(string) bool { return false }

func childless() bool { return false }
