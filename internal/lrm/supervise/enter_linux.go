package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A process that runs joins a group slowly: the kernel waits until no process of the machine is
// about to fork or to end, some ten milliseconds. A thread that moves itself, and a process that
// begins in a group, are there in a tenth of one. So the thread that starts a sandbox's program
// goes into the program's groups of version 1 for the moment of the start, which the program
// inherits, and into the one of version 2 the program is born.

// entry is that thread's way into the groups of a program and back.
type entry struct {
	rest []string   // doors of groups that the program is not in yet
	back []*os.File // where the thread goes back to, by version 1's hierarchies
	born *os.File   // the directory of the group in which the program begins; nil: none
}

// enter takes the calling thread, which must be locked, into what it can of the enclosure's groups.
func (e *Enclosure) enter() *entry {
	way := &entry{}
	for _, door := range e.Join {
		group := filepath.Dir(door)
		if group == e.Born && way.born == nil {
			if dir, err := os.Open(group); err == nil {
				way.born = dir
				continue
			}
		}
		if !way.cross(group) {
			way.rest = append(way.rest, door)
		}
	}
	return way
}

// threadDoor is a file of version 1's groups. Who writes a zero to it joins alone.
const threadDoor = "tasks"

// cross takes the calling thread into a group of version 1, if it can also come back into the one
// around it, where the agent and its supervisors are.
func (w *entry) cross(group string) bool {
	back, err := os.OpenFile(filepath.Join(filepath.Dir(group), threadDoor), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	if err := os.WriteFile(filepath.Join(group, threadDoor), []byte("0"), 0); err != nil {
		back.Close()
		return false
	}
	w.back = append(w.back, back)
	return true
}

// begin has the command begin in its group of version 2.
func (w *entry) begin(cmd *exec.Cmd) {
	if w.born != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(w.born.Fd())
	}
}

// leave takes the calling thread back.
func (w *entry) leave() error {
	var errs []error
	for _, back := range w.back {
		if _, err := back.WriteString("0"); err != nil {
			errs = append(errs, fmt.Errorf("leave group: %w", err))
		}
	}
	closeAll(append(w.back, w.born))
	return errors.Join(errs...)
}

// Bears reports whether processes can begin in a group of version 2, by letting one do so.
func Bears(ctx context.Context, group string) bool {
	dir, err := os.Open(group)
	if err != nil {
		return false
	}
	defer dir.Close()
	trial := exec.CommandContext(ctx, "/bin/sh", "-c", "exit 0")
	trial.Env = []string{}
	trial.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	return trial.Run() == nil
}
