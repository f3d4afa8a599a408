//go:build unix && !linux

package supervise

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// asLeader makes the command the leader of a group. There is no parent-death
// signal here: a supervisor that is killed itself leaves its runner.
func asLeader(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func lowerSession(int, bool) {}

func sacrificeFirst(int) {}

func lowerThreads(int, bool) {}

func freezeGroup(leader int) error { return signalGroup(leader, syscall.SIGSTOP) }

func onlyZombie(int) bool { return false }

// ownIdentity is the identity of this process.
func ownIdentity() lrm.Identity { return lrm.Identity{PID: os.Getpid()} }

// alive cannot tell a process from a later one with the same ID, so it never
// claims that one is: supervisors end by themselves when their agent dies.
func alive(lrm.Identity) bool { return false }

// hasExited is unknown here, where supervisors are not used again.
func hasExited(int) bool { return false }
