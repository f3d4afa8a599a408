package native

import (
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
)

// ownLeaf is the group of the agent itself, where it had to make one.
const ownLeaf = "mrs-agent"

// findGroups finds the hierarchies in which this process may make groups, by
// making one and moving a process into it.
func findGroups(ctx context.Context) groups {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	places, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var found groups
	for _, h := range candidates(string(mounts), string(places)) {
		if h.v2 {
			if path.Base(h.dir) == ownLeaf { // moved there before
				h.dir = path.Dir(h.dir)
			}
			h.enable()
		}
		if h.try(ctx) {
			found = append(found, h)
		}
	}
	return found
}

// candidates are the hierarchies that are mounted, with the directory of this
// process in each.
func candidates(mountinfo, own string) groups {
	where := make(map[string]string) // of this process, by controller; version 2 by the empty name
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			where[name] = parts[2]
		}
	}
	var found groups
	seen := make(map[string]bool)
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		root, point := left[3], left[4]
		h := hierarchy{v2: right[0] == "cgroup2"}
		name := ""
		if right[0] == "cgroup" {
			h.controllers = ours(strings.Split(right[2], ","))
			if len(h.controllers) == 0 {
				continue
			}
			name = h.controllers[0]
		} else if !h.v2 {
			continue
		}
		at, ok := where[name]
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		h.dir = filepath.Join(point, strings.TrimPrefix(at, strings.TrimSuffix(path.Clean(root), "/")))
		found = append(found, h)
	}
	return found
}

// ours are those of the names that are used.
func ours(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return n != ctlMemory && n != ctlPids && n != ctlCPU
	})
}

// enable finds the controllers of version 2. It asks for more of them where this
// process is alone in its group, as a service is: then it goes into a group
// beside those of the attempts, as the kernel demands.
func (h *hierarchy) enable() {
	control := filepath.Join(h.dir, "cgroup.subtree_control")
	offered, err := os.ReadFile(filepath.Join(h.dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	want := ours(strings.Fields(string(offered)))
	self := strconv.Itoa(os.Getpid())
	members, err := os.ReadFile(filepath.Join(h.dir, "cgroup.procs"))
	if err == nil && len(want) > 0 && strings.TrimSpace(string(members)) == self {
		leaf := filepath.Join(h.dir, ownLeaf)
		if os.Mkdir(leaf, modeDir) == nil || isDir(leaf) {
			_ = os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(self), 0)
		}
	}
	for _, name := range want {
		//nolint:gosec // the kernel's own names; what is not allowed is not there below
		_ = os.WriteFile(control, []byte("+"+name), 0)
	}
	if text, err := os.ReadFile(control); err == nil {
		h.controllers = ours(strings.Fields(string(text)))
	}
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// try makes a group, moves a process into it, and finds out what can be bounded.
func (h *hierarchy) try(ctx context.Context) bool {
	name := "mrs-trial-" + strconv.Itoa(os.Getpid()) + "-" + rand.Text()
	made, err := groups{*h}.add(name, need{memory: 1 << 30, processes: 64, milliCPUs: milli})
	if err != nil {
		return false
	}
	defer func() { _ = made.remove() }()
	trial := exec.CommandContext(ctx, "/bin/sh", "-c", "read _")
	trial.Env = []string{}
	hold, err := trial.StdinPipe()
	if err != nil || trial.Start() != nil {
		return false
	}
	entered := os.WriteFile(made.doors()[0], []byte(strconv.Itoa(trial.Process.Pid)), 0) == nil
	_, _ = io.WriteString(hold, "\n")
	_ = trial.Wait() // its own end does not matter
	_, err = os.Stat(filepath.Join(made.dirs[0], "cgroup.freeze"))
	h.freezes = h.v2 && err == nil
	h.bears = h.v2 && supervise.Bears(ctx, made.dirs[0])
	return entered && (h.freezes || len(h.controllers) > 0)
}
