//go:build !unix

package supervise

import (
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

func detach(*exec.Cmd) error { return ErrUnsupported }

func asLeader(*exec.Cmd) {}

func lowerSession(int, bool) {}

func sacrificeFirst(int) {}

func lowerThreads(int, bool) {}

func killGroup(int) {}

func freezeGroup(int) error { return ErrUnsupported }

func resumeGroup(int) error { return ErrUnsupported }

func awaitGroupGone(int, time.Duration) bool { return false }

func lockFile(string) (func(), error) { return nil, ErrUnsupported }

func isTooLong(error) bool { return false }

func isBrokenPipe(error) bool { return false }

func signalOf(*os.ProcessState) int { return 0 }

func diskUse(info fs.FileInfo) int64 { return info.Size() }

// ownIdentity is the identity of this process.
func ownIdentity() lrm.Identity { return lrm.Identity{PID: os.Getpid()} }

func alive(lrm.Identity) bool { return false }

// hasExited is unknown here, where supervisors are not used again.
func hasExited(int) bool { return false }
