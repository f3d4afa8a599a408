package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tree is a hierarchy of control groups that can bound what commands take.
type tree struct {
	root string // where it is mounted
	own  string // the directory of the process's group in it
	v2   bool
}

// bounding are the controllers that bound what commands take.
func bounding() []string { return []string{"memory", "pids", "cpu"} }

// ours are those of the names that bound what commands take.
func ours(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return !slices.Contains(bounding(), n)
	})
}

// treesOf reads a process's mountinfo and cgroup: the hierarchies of version 1 that have one of
// our controllers, and that of version 2, which stands beside them or alone. Each is named once.
func treesOf(mountinfo, groups string) []tree {
	where := groupsIn(groups)
	var all []tree
	seen := make(map[string]bool)
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		const mountFields, kindFields = 5, 3
		if !ok || len(left) < mountFields || len(right) < kindFields {
			continue
		}
		name := "" // the key of version 2
		switch right[0] {
		case "cgroup2":
		case "cgroup":
			used := ours(strings.Split(right[2], ","))
			if len(used) == 0 {
				continue
			}
			name = used[0]
		default:
			continue
		}
		group, ok := where[name]
		if !ok || seen[name] {
			continue
		}
		// A container may see a part of the tree alone.
		if below, ok := within(left[3], group); ok {
			seen[name] = true
			own := filepath.Join(left[4], below)
			all = append(all, tree{root: left[4], own: own, v2: name == ""})
		}
	}
	return all
}

// groupsIn maps controllers to a process's groups; version 2 has the empty name.
func groupsIn(text string) map[string]string {
	where := make(map[string]string)
	for line := range strings.Lines(text) {
		const fields = 3
		parts := strings.SplitN(strings.TrimSpace(line), ":", fields)
		if len(parts) != fields || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			where[name] = parts[2]
		}
	}
	return where
}

// within is a group's path below the part of the tree that is mounted.
func within(mounted, group string) (string, bool) {
	if mounted == "/" || group == mounted {
		return strings.TrimPrefix(group, mounted), true
	}
	return strings.CutPrefix(group, mounted+"/")
}

// parent finds where groups of the tree can be made that have our controllers: the process's own
// group or, in version 2, one above it. For there a group with processes gives none to those below
// it. What had to be enabled is returned; enabled once more with "-" it is as before.
func (t tree) parent() (dir string, enabled []string) {
	if !t.v2 {
		return t.own, nil
	}
	for dir = t.own; ; dir = filepath.Dir(dir) {
		if offered := ours(wordsOf(filepath.Join(dir, "cgroup.controllers"))); len(offered) > 0 {
			has := wordsOf(filepath.Join(dir, subtreeControl))
			missing := slices.DeleteFunc(offered, func(n string) bool {
				return slices.Contains(has, n)
			})
			if len(missing) == 0 || mayEnable(dir) && switchOn(dir, "+", missing) == nil {
				return dir, missing
			}
		}
		if dir == t.root || len(dir) <= len(t.root) {
			return t.own, nil
		}
	}
}

// subtreeControl is the file with the controllers of a group's children.
const subtreeControl = "cgroup.subtree_control"

// mayEnable reports whether a group may pass controllers on: it has no process, or is the root,
// which alone has no type. The kernel itself allows some more, which spoils the groups below.
func mayEnable(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.type"))
	return os.IsNotExist(err) || len(wordsOf(filepath.Join(dir, procs))) == 0
}

// switchOn enables controllers ("+") for a group's children, all or none, or disables them ("-").
func switchOn(dir, sign string, controllers []string) error {
	if len(controllers) == 0 {
		return nil
	}
	text := sign + strings.Join(controllers, " "+sign)
	return os.WriteFile(filepath.Join(dir, subtreeControl), []byte(text), 0)
}

// wordsOf are the words in a file; none where it cannot be read.
func wordsOf(name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}
