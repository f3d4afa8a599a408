package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	nobody     = "65534" // user and group inside
	trialCode  = 42      // of a sandbox that works
	trialLimit = 10 * time.Second
)

// host is what this machine offers.
type host struct {
	bwrap        string   // executable; empty = no sandbox
	mounts       []string // of the system's programs, as arguments
	proc         bool     // a private /proc can be mounted
	noMoreUsers  bool     // making user namespaces inside can be forbidden
	countsInside bool     // the kernel counts processes for each user namespace
	groups       groups
	notes        []string // for the owner
}

func (h *host) works() bool { return h.bwrap != "" }

// flags are the arguments that make the namespaces.
func (h *host) flags() []string {
	flags := []string{
		"--die-with-parent", "--unshare-all", "--unshare-user", "--uid", nobody, "--gid", nobody,
		"--cap-drop", "ALL", "--new-session", "--hostname", "sandbox",
	}
	if h.noMoreUsers {
		flags = append(flags, "--disable-userns")
	}
	return flags
}

// explore tries what works here.
func explore(ctx context.Context, config Config) host {
	h := host{}
	if runtime.GOOS != "linux" {
		h.notes = []string{"commands are run on Linux only"}
		return h
	}
	ctx, cancel := context.WithTimeout(ctx, trialLimit)
	defer cancel()
	name := config.Bwrap
	if name == "" {
		name = "bwrap"
	}
	bwrap, err := exec.LookPath(name)
	if err != nil {
		h.notes = []string{"no commands: bubblewrap is missing; install the package bubblewrap"}
		return h
	}
	h.mounts = systemMounts()
	if err := h.tryVariants(ctx, bwrap); err != nil {
		h.notes = []string{"no commands: bubblewrap does not work here (" + err.Error() +
			"); the kernel must allow user namespaces: see sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns"}
		return h
	}
	h.countsInside = countsInside()
	if !config.NoGroups {
		h.groups = findGroups(ctx)
	}
	h.notes = h.remarks()
	return h
}

// tryVariants finds the strictest sandbox that works.
func (h *host) tryVariants(ctx context.Context, bwrap string) error {
	var first error
	for _, v := range []struct{ proc, noMoreUsers bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		h.proc, h.noMoreUsers = v.proc, v.noMoreUsers
		err := h.try(ctx, bwrap)
		if err == nil {
			h.bwrap = bwrap
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// try runs a shell in a sandbox like those of attempts.
func (h *host) try(ctx context.Context, bwrap string) error {
	dir, err := os.MkdirTemp("", "mrs-sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := append(h.flags(), "--bind", dir, "/")
	args = append(args, h.mounts...)
	args = append(args, "--dev", "/dev", "--remount-ro", "/dev")
	if h.proc {
		args = append(args, procMount()...)
	}
	cmd := exec.CommandContext(ctx, bwrap, append(args, "--", "/bin/sh", "-c", fmt.Sprintf("exit %d", trialCode))...) //nolint:gosec // arguments of our own
	cmd.Env, cmd.Dir = []string{}, dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == trialCode:
		return nil
	case len(out) > 0:
		return errors.New(strings.TrimSpace(string(out)))
	case err != nil:
		return err
	default:
		return errors.New("its shell does not tell how it ends")
	}
}

// systemMounts are the arguments that show the system's programs, read-only.
func systemMounts() []string {
	args := []string{"--ro-bind", "/usr", "/usr"}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if target, err := os.Readlink(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
			args = append(args, "--symlink", target, dir)
			continue
		}
		args = append(args, "--ro-bind", dir, dir)
	}
	for _, name := range []string{"/etc/alternatives", "/etc/ld.so.cache"} {
		if target, err := filepath.EvalSymlinks(name); err == nil {
			args = append(args, "--ro-bind", target, name)
		}
	}
	return args
}

// remarks tells the owner what holds commands here, and what is missing.
func (h *host) remarks() []string {
	var notes []string
	if !h.proc {
		notes = append(notes, "commands get no /proc: this machine is a container that hides parts of its own")
	}
	if os.Getuid() == 0 {
		notes = append(notes, "the agent runs as root, so a weakness of the kernel would give commands the machine; run it as an ordinary user")
	}
	var bound []string
	if h.groups.memory() {
		bound = append(bound, "memory")
	}
	if h.groups.pids() {
		bound = append(bound, "processes")
	}
	if h.groups.cpu() {
		bound = append(bound, "cores")
	}
	const remedy = "; run the agent as a service with Delegate=yes to have the kernel hold the whole command"
	switch {
	case len(bound) == 0:
		notes = append(notes, "commands: no control groups; memory, processes and cores are watched up to forty times a second"+remedy)
	case len(bound) < 3:
		notes = append(notes, "commands: control groups bound "+strings.Join(bound, " and ")+" only"+remedy)
	default:
	}
	return notes
}
