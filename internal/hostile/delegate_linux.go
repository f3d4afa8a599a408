package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// delegation are control groups of root's that an account may divide further, one in each
// hierarchy, as a service with Delegate=yes has them.
type delegation []string

// delegate makes the groups, for an account that is to run tests with them.
func delegate(to *account) (delegation, error) {
	if to == nil {
		return nil, errors.New("-delegate: it goes with -as, for root has all groups")
	}
	own, err := ownGroups()
	if err != nil {
		return nil, err
	}
	var made delegation
	for _, parent := range own {
		dir := filepath.Join(parent, "hostile-"+strconv.Itoa(os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as groups are
			return nil, errors.Join(fmt.Errorf("-delegate: %w", err), made.end())
		}
		made = append(made, dir)
		for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control", "tasks"} {
			path := filepath.Join(dir, name)
			if err := os.Chown(path, int(to.uid), int(to.gid)); err != nil && !os.IsNotExist(err) {
				return nil, errors.Join(fmt.Errorf("-delegate: %w", err), made.end())
			}
		}
	}
	if len(made) == 0 {
		return nil, errors.New("-delegate: this machine has no control groups at /sys/fs/cgroup")
	}
	return made, nil
}

// ownGroups are the directories of this process's groups, in the hierarchies that bound what
// commands take and in that of version 2.
func ownGroups() ([]string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("-delegate: %w", err)
	}
	const root = "/sys/fs/cgroup"
	var dirs []string
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || !bounds(parts[1]) {
			continue
		}
		places := []string{filepath.Join(root, parts[1])}
		if parts[1] == "" {
			places = []string{filepath.Join(root, "unified"), root}
		}
		for _, p := range places {
			if _, err := os.Stat(filepath.Join(p, parts[2], "cgroup.procs")); err == nil {
				dirs = append(dirs, filepath.Join(p, parts[2]))
				break
			}
		}
	}
	return dirs, nil
}

// bounds reports whether a hierarchy bounds what commands take: one of version 2, whose name is
// empty, or one of version 1 with a controller that does.
func bounds(controllers string) bool {
	return controllers == "" || slices.ContainsFunc(
		strings.Split(controllers, ","),
		func(c string) bool { return slices.Contains([]string{"memory", "pids", "cpu"}, c) },
	)
}

// end removes the groups, in which nothing runs any more.
func (d delegation) end() error {
	var errs []error
	for _, dir := range d {
		errs = append(errs, os.Remove(dir))
	}
	return errors.Join(errs...)
}

// run runs a command in the groups, from its beginning on, and returns what it says.
func (d delegation) run(cmd *exec.Cmd) ([]byte, error) {
	if len(d) == 0 {
		return cmd.CombinedOutput()
	}
	cmd.Args = append([]string{"sh", "-c", `read _; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	gate, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err = cmd.Start(); err != nil {
		return nil, err
	}
	var errs []error
	for _, dir := range d {
		pid := []byte(strconv.Itoa(cmd.Process.Pid))
		errs = append(errs, os.WriteFile(filepath.Join(dir, "cgroup.procs"), pid, 0))
	}
	if err = errors.Join(errs...); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	_, err = io.WriteString(gate, "\n")
	err = errors.Join(err, gate.Close(), cmd.Wait())
	return []byte(said.String()), err
}
