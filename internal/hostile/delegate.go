package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	procs = "cgroup.procs"
	// agentLeaf is the group of an agent beside those of its attempts, by internal/lrm/native. All
	// processes begin there: in version 2 a group with processes gives no controller to those in
	// it, and of several agents none would find itself alone.
	agentLeaf = "mrs-agent"
	// leavePatience bounds the wait for the processes of ended tests, such as those of an agent
	// that was killed.
	leavePatience = 5 * time.Second
	leavePoll     = 20 * time.Millisecond
)

// errNoGroups means that there is nothing to be delegated.
var errNoGroups = errors.New("this machine lets nobody make control groups that hold " +
	"memory and processes: see /proc/self/mountinfo, and in version 2 cgroup.controllers")

// delegation are control groups that an account may divide further, one in each hierarchy, as a
// service with Delegate=yes has them.
type delegation struct {
	groups   []string
	doors    []string       // the files through which a process enters them
	undo     []func() error // puts back what was enabled for them
	patience time.Duration  // until processes left in them are killed, and as long again
}

// delegate makes the groups, for an account that is to run tests in them.
func delegate(to *account) (*delegation, error) {
	if to == nil {
		return nil, errors.New("-delegate: name an ordinary user by -as; " +
			"root makes its groups itself")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("-delegate: %w: %w", errNoGroups, err)
	}
	places, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("-delegate: %w: %w", errNoGroups, err)
	}
	d := &delegation{patience: leavePatience}
	var held []string
	for _, t := range treesOf(string(mounts), string(places)) {
		has, err := d.add(t, to)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
				err = errors.Join(errNoGroups, err) // as in a container
			}
			_, more := d.end()
			return nil, errors.Join(fmt.Errorf("-delegate: %w", err), more)
		}
		held = append(held, has...)
	}
	if !slices.Contains(held, "memory") || !slices.Contains(held, "pids") {
		_, more := d.end()
		return nil, errors.Join(fmt.Errorf("-delegate: %w", errNoGroups), more)
	}
	return d, nil
}

// canDelegate says before all tests why groups cannot be delegated.
func canDelegate(to *account) error {
	d, err := delegate(to)
	if err != nil {
		return err
	}
	_, err = d.end()
	return err
}

// add makes the group in a tree, and returns which of our controllers bound it.
func (d *delegation) add(t tree, to *account) ([]string, error) {
	parent, enabled := t.parent()
	if len(enabled) > 0 {
		d.undo = append(d.undo, func() error { return switchOn(parent, "-", enabled) })
	}
	dir := filepath.Join(parent, "hostile-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as groups are
		return nil, err
	}
	d.groups = append(d.groups, dir)
	leaf := dir
	if t.v2 {
		leaf = filepath.Join(dir, agentLeaf)
		//nolint:gosec // as groups are
		if err := errors.Join(os.Mkdir(leaf, 0o755), to.give(leaf)); err != nil {
			return nil, err
		}
	}
	d.doors = append(d.doors, filepath.Join(leaf, procs))
	for file, much := range shares() { // versions differ, and it may have no such controller
		_ = os.WriteFile(filepath.Join(dir, file), []byte(much), 0)
	}
	return t.controllers(dir), to.give(dir)
}

// shares are eight times the usual part of the processors, which would be that of one process
// outside of all groups: tests have deadlines.
func shares() map[string]string {
	return map[string]string{"cpu.shares": "8192", "cpu.weight": "800"}
}

// give gives a group to the account, to divide it.
func (a *account) give(dir string) error {
	for _, name := range []string{"", procs, subtreeControl, "cgroup.threads", "tasks"} {
		err := os.Chown(filepath.Join(dir, name), int(a.uid), int(a.gid))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // versions differ
			return err
		}
	}
	return nil
}

// controllers are those of ours that bound a group.
func (t tree) controllers(dir string) []string {
	if t.v2 {
		return ours(wordsOf(filepath.Join(dir, "cgroup.controllers")))
	}
	var has []string
	for controller, file := range map[string]string{
		"memory": "memory.limit_in_bytes", "pids": "pids.max", "cpu": "cpu.shares",
	} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			has = append(has, controller)
		}
	}
	return has
}

// start starts a command in the groups. It waits behind a shell until it is in all of them, so
// that what it starts is, too.
func (d *delegation) start(cmd *exec.Cmd) error {
	cmd.Args = append([]string{"sh", "-c", `read _; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	gate, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err = cmd.Start(); err != nil {
		return err
	}
	var errs []error
	pid := []byte(strconv.Itoa(cmd.Process.Pid))
	for _, door := range d.doors {
		errs = append(errs, os.WriteFile(door, pid, 0))
	}
	if err = errors.Join(errs...); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("-delegate: enter the groups: %w", err)
	}
	_, err = io.WriteString(gate, "\n")
	return errors.Join(err, gate.Close())
}

// end removes the groups, with those that were made in them, once nothing runs in them any more.
// What outlives the tests by seconds is killed, and named.
func (d *delegation) end() (strays []string, err error) {
	for began := time.Now(); len(d.members()) > 0; time.Sleep(leavePoll) {
		switch late := time.Since(began); {
		case late > 2*d.patience:
			return strays, fmt.Errorf("-delegate: processes %v do not end; afterwards remove %s",
				d.members(), strings.Join(d.groups, " "))
		case late > d.patience:
			for _, pid := range d.members() {
				if name := kill(pid); name != "" && !slices.Contains(strays, name) {
					strays = append(strays, name)
				}
			}
		}
	}
	var errs []error
	for _, dir := range d.groups {
		errs = append(errs, d.remove(dir))
	}
	d.groups = nil
	for _, undo := range slices.Backward(d.undo) {
		errs = append(errs, undo())
	}
	return strays, errors.Join(errs...)
}

// members are the processes in the groups and in those below them.
func (d *delegation) members() []int {
	var all []int
	for _, top := range d.groups {
		for _, dir := range groupsBelow(top) {
			for _, word := range wordsOf(filepath.Join(dir, procs)) {
				pid, err := strconv.Atoi(word)
				if err == nil && !slices.Contains(all, pid) {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

// kill ends a process of the groups and says what it was; empty: it had ended.
func kill(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
	return fmt.Sprintf("%s (%d)", strings.TrimSpace(string(name)), pid)
}

// groupsBelow are a group and all below it, those inside after those around them. A group that
// goes meanwhile is left out.
func groupsBelow(top string) []string {
	var dirs []string
	_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}

// remove removes a group and the groups in it. It removes directories one by one, which takes
// away nothing but groups without processes.
func (d *delegation) remove(top string) error {
	var errs []error
	for began := time.Now(); ; time.Sleep(leavePoll) {
		errs = nil
		for _, dir := range slices.Backward(groupsBelow(top)) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("-delegate: %w", err))
			}
		}
		if len(errs) == 0 || time.Since(began) > d.patience {
			return errors.Join(errs...)
		}
	}
}
