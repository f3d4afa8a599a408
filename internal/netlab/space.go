package netlab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// namePrefix begins the name of every namespace; the process's ID follows.
	namePrefix = "mrslab-"
	// ip keeps namespaces by name in runNetns.
	runNetns = "/run/netns"
	// commandLimit bounds a command that builds a part of a lab.
	commandLimit = 30 * time.Second
)

// Supported says why this machine cannot hold a lab: what is missing and how to
// get it. Empty: it can. It makes a namespace and removes it again.
func Supported(ctx context.Context) (reason string) {
	if runtime.GOOS != "linux" {
		return "network namespaces are a matter of Linux, not of " + runtime.GOOS
	}
	if os.Geteuid() != 0 {
		return "making network namespaces takes root"
	}
	for tool, from := range map[string]string{
		"ip": "iproute2", "tc": "iproute2", "iptables": "iptables", "nsenter": "util-linux",
	} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is missing: install the package " + from
		}
	}
	if _, err := os.Stat(tunDevice); err != nil {
		return "there are no TUN devices: " + err.Error()
	}
	return probe(ctx)
}

// probe tries what a lab is made of.
func probe(ctx context.Context) string {
	space := newPrefix() + "probe"
	if err := run(ctx, "ip", "netns", "add", space); err != nil {
		return err.Error()
	}
	err := inside(ctx, space, "ip link add name v0 type veth peer name v1",
		"tc qdisc add dev v0 root tbf rate 1mbit burst 16kb latency 50ms",
		"iptables -w 10 -t nat -A POSTROUTING -o v0 -j MASQUERADE --random-fully",
		"iptables -w 10 -A FORWARD -i v0 -m conntrack --ctstate NEW -j DROP")
	if err = errors.Join(err, remove(ctx, space)); err != nil {
		return err.Error()
	}
	return ""
}

// run runs a command to its end; the error has what it said.
func run(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	//nolint:gosec // the package names it
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf(
			"%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)),
		)
	}
	return nil
}

// inside runs commands in a namespace, one after the other until one fails.
func inside(ctx context.Context, space string, commands ...string) error {
	for _, c := range commands {
		args := append([]string{"--net=" + filepath.Join(runNetns, space), "--"}, strings.Fields(c)...)
		if err := run(ctx, "nsenter", args...); err != nil {
			return err
		}
	}
	return nil
}

// remove ends all processes in a namespace and removes it, its interfaces with
// it.
func remove(ctx context.Context, space string) error {
	//nolint:gosec // a name of the package
	out, err := exec.CommandContext(ctx, "ip", "netns", "pids", space).Output()
	if err == nil {
		for field := range strings.FieldsSeq(string(out)) {
			if pid, errPid := strconv.Atoi(field); errPid == nil && pid != os.Getpid() {
				_ = kill(pid) // one that has ended needs none
			}
		}
	}
	return run(ctx, "ip", "netns", "del", space)
}

// sweep removes the namespaces of labs whose process is dead.
func sweep(ctx context.Context) error {
	entries, err := os.ReadDir(runNetns)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for what dead runs left: %w", err)
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), namePrefix)
		digits, _, whole := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(digits)
		if !ours || !whole || err != nil || pid <= 0 || !isDead(pid) {
			continue
		}
		_ = remove(ctx, e.Name()) // another process may be doing the same
	}
	return nil
}

// Do calls a function on a thread that is in the host's namespace. Sockets that
// it makes on this goroutine belong there and may be used anywhere afterwards.
func (h *Host) Do(do func() error) error { return inNamespace(h.full, do) }

// Command is a command that runs in the host's namespace, as the leader of a
// process group, and is killed when this process dies. Kill ends the group.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	all := append([]string{"--net=" + filepath.Join(runNetns, h.full), "--", name}, args...)
	// nsenter becomes the command: the process ID is the same.
	//nolint:gosec // the command is the caller's choice
	cmd := exec.CommandContext(ctx, "nsenter", all...)
	lead(cmd)
	cmd.Cancel = func() error { return Kill(cmd) }
	return cmd
}

// Kill kills a command of Command and its process group. It does not
// wait for it.
func Kill(cmd *exec.Cmd) error { return kill(-cmd.Process.Pid) }
