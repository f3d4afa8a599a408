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

	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
)

const (
	nobody     = "65534" // user and group inside
	trialCode  = 42      // of a sandbox that works
	trialLimit = 10 * time.Second
	// userNamespaces tells how to allow what every sandbox needs.
	userNamespaces = "the kernel must allow user namespaces: " +
		"see sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces and " +
		"kernel.apparmor_restrict_unprivileged_userns"
)

// host describes what this machine offers.
type host struct {
	sandbox      string // Bubblewrap or GVisor; empty = none
	bwrap        string // bubblewrap's executable
	gvisor       gvisor
	system       []systemPath // of the system's programs
	etc          string       // directory of bubblewrap's /etc
	proc         bool         // a private /proc can be mounted
	noMoreUsers  bool         // making user namespaces inside can be forbidden
	countsInside bool         // the kernel counts processes for each user namespace
	groups       groups
	warm         bool     // what a command leaves behind in its sandbox can be seen there
	held         bool     // each attempt has a file system of its own, which the kernel bounds
	filter       []byte   // of a command's system calls; empty = there is none
	notes        []string // for the owner
}

func (h *host) works() bool { return h.sandbox != "" }

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
	h.system = systemPaths()
	if !h.enclose(ctx, config) {
		return h
	}
	h.countsInside = countsInside()
	if !config.NoGroups {
		h.groups = findGroups(ctx)
		if os.Getuid() == 0 && !h.groups.pids() {
			return host{notes: append(h.notes, unbounded)}
		}
	}
	if !config.Unbounded {
		if err := h.bound(config); err != nil {
			return host{notes: append(h.notes, err.Error())}
		}
	}
	var err error
	if h.filter, err = callFilter(h.groups.memory()); err != nil {
		return host{notes: append(h.notes, "no commands: "+err.Error())}
	}
	h.notes = append(h.notes, h.remarks()...)
	return h
}

// unbounded is why root runs no commands without a group that counts processes:
// the kernel excepts root from every other limit on them.
const unbounded = "no commands: the agent runs as root and may not make control groups, " +
	"so nothing would bound how many processes a command starts; run it as an ordinary user"

// bound has the kernel hold what commands take, or says why it cannot.
func (h *host) bound(config Config) error {
	const remedy = "; to have them watched by looking instead, which a hostile command can " +
		"outrun: siteagent config set commands unbounded"
	if !h.groups.memory() || !h.groups.pids() {
		return errors.New("no commands: the agent may make no control groups that hold their " +
			"memory and their number of processes; run it as a service with Delegate=yes" + remedy)
	}
	err := config.Unheld
	if err == nil {
		err = scratch.Works(filepath.Dir(config.RecordPath))
	}
	if err != nil {
		return fmt.Errorf("no commands: nothing holds what they write: %w%s", err, remedy)
	}
	h.held = true
	return nil
}

// enclose finds the sandbox that the owner asks for. Left the choice, it takes
// bubblewrap, which starts many times as fast, and gVisor where that does not work.
// It leaves a note where there is something to be said.
func (h *host) enclose(ctx context.Context, config Config) bool {
	if config.Sandbox != GVisor {
		err := h.findBubblewrap(ctx, config.Bwrap)
		if err == nil {
			h.sandbox = Bubblewrap
			return true
		}
		h.notes = []string{"no commands: " + err.Error()}
		if config.Sandbox == Bubblewrap {
			return false
		}
	}
	trial, warning, err := findGVisor(ctx, config.Runsc, h.system)
	switch {
	case err == nil:
		h.sandbox, h.gvisor, h.proc, h.notes = GVisor, trial, true, nil
		if warning != "" {
			h.notes = []string{warning}
		}
		h.findSaving(ctx, config)
		if config.Sandbox == GVisor {
			return true
		}
		h.notes = append(
			h.notes,
			"commands run under gVisor, because bubblewrap does not work here; "+
				"each takes a quarter of a second longer to start",
		)
		return true
	case config.Sandbox == GVisor:
		h.notes = []string{"no commands: gVisor was asked for: " + err.Error()}
	case !errors.Is(err, exec.ErrNotFound):
		h.notes = append(h.notes, "gVisor does not work here either: "+err.Error())
	default:
	}
	return false
}

// findSaving finds out whether commands can be saved whole.
func (h *host) findSaving(ctx context.Context, config Config) {
	h.gvisor.runner = config.Runner
	err := h.gvisor.trySaving(ctx, h.system)
	if h.gvisor.saves = err == nil; err != nil {
		h.notes = append(h.notes, "commands cannot be saved whole: "+err.Error())
	}
}

// findBubblewrap finds bubblewrap and tries it.
func (h *host) findBubblewrap(ctx context.Context, name string) error {
	if name == "" {
		name = "bwrap"
	}
	bwrap, err := exec.LookPath(name)
	if err != nil {
		return errors.New("bubblewrap is missing; install the package bubblewrap")
	}
	if err := h.tryVariants(ctx, bwrap); err != nil {
		return fmt.Errorf("bubblewrap does not work here (%w); %s", err, userNamespaces)
	}
	return nil
}

// tryVariants finds the strictest sandbox that works.
func (h *host) tryVariants(ctx context.Context, bwrap string) error {
	var first error
	for _, v := range []struct{ proc, noMoreUsers bool }{
		{true, true}, {true, false}, {false, true}, {false, false},
	} {
		h.proc, h.noMoreUsers = v.proc, v.noMoreUsers
		err := h.try(ctx, bwrap, fmt.Sprintf("exit %d", trialCode))
		if err == nil {
			h.bwrap = bwrap
			h.warm = h.proc && h.try(ctx, bwrap, tryWarm, "--mqueue", queuesPath) == nil
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// try runs a script that ends with trialCode in a sandbox like those of attempts.
func (h *host) try(ctx context.Context, bwrap, script string, further ...string) error {
	dir, err := os.MkdirTemp("", "mrs-sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := append(h.flags(), "--bind", dir, "/")
	args = append(args, mountArguments(h.system)...)
	args = append(append(append(args, "--dev", "/dev"), further...), "--remount-ro", "/dev")
	if h.proc {
		args = append(args, procMount()...)
	}
	args = append(args, "--", "/bin/sh", "-c", script)
	cmd := exec.CommandContext(ctx, bwrap, args...) //nolint:gosec // arguments of our own
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

// systemPath is a part of the system's programs as commands see it.
type systemPath struct {
	path string // in the sandbox
	host string // what stands there, read-only; empty = a link
	link string // target of the link
}

// systemPaths are the system's programs.
func systemPaths() []systemPath {
	paths := []systemPath{{path: "/usr", host: "/usr"}}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if target, err := os.Readlink(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
			paths = append(paths, systemPath{path: dir, link: target})
			continue
		}
		paths = append(paths, systemPath{path: dir, host: dir})
	}
	for _, name := range []string{"/etc/alternatives", "/etc/ld.so.cache"} {
		if target, err := filepath.EvalSymlinks(name); err == nil {
			paths = append(paths, systemPath{path: name, host: target})
		}
	}
	return paths
}

// mountArguments are bubblewrap's arguments for them.
func mountArguments(paths []systemPath) []string {
	var args []string
	for _, p := range paths {
		if p.host == "" {
			args = append(args, "--symlink", p.link, p.path)
			continue
		}
		args = append(args, "--ro-bind", p.host, p.path)
	}
	return args
}

// remarks tells the owner what holds commands here, and what is missing.
func (h *host) remarks() []string {
	var notes []string
	if !h.proc {
		notes = append(
			notes, "commands get no /proc: this machine is a container that hides parts of its own",
		)
	}
	if os.Getuid() == 0 {
		notes = append(
			notes,
			"the agent runs as root, so a weakness of the kernel would give commands the machine; "+
				"run it as an ordinary user",
		)
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
	const remedy = "; run the agent as a service with Delegate=yes to have the kernel hold the " +
		"whole command"
	switch {
	case len(bound) == 0:
		notes = append(
			notes,
			"commands: no control groups; memory, processes and cores are watched up to forty times a "+
				"second"+remedy,
		)
	case len(bound) < 3:
		notes = append(
			notes, "commands: control groups bound "+strings.Join(bound, " and ")+" only"+remedy,
		)
	default:
	}
	return notes
}
