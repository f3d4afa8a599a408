package native

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	modeDir    = 0o755
	cpuPeriod  = 100_000 // us
	minQuota   = 1_000   // us, the lowest that the kernel takes
	milli      = 1000
	lowWeight  = "10" // cpu.weight; 100 is usual
	lowShares  = "102"
	removeWait = 2 * time.Second
	removePoll = 2 * time.Millisecond
)

// The controllers that are used.
const (
	ctlMemory = "memory"
	ctlPids   = "pids"
	ctlCPU    = "cpu"
)

// hierarchy is one tree of cgroups in which the agent may make groups.
type hierarchy struct {
	dir         string   // new groups are made here
	v2          bool     // version 2, or 1
	freezes     bool     // version 2 alone: a whole group can be frozen
	bears       bool     // version 2 alone: processes can begin in a group
	controllers []string // those that work
}

func (h *hierarchy) has(controller string) bool {
	return slices.Contains(h.controllers, controller)
}

// groups are all hierarchies that may be used; none is fine, too.
type groups []hierarchy

func (g groups) has(controller string) bool {
	for _, h := range g {
		if h.has(controller) {
			return true
		}
	}
	return false
}

func (g groups) memory() bool { return g.has(ctlMemory) }
func (g groups) pids() bool   { return g.has(ctlPids) }
func (g groups) cpu() bool    { return g.has(ctlCPU) }

// need holds the limits of a group.
type need struct {
	memory    int64 // bytes
	processes int
	milliCPUs int64 // 0 = no bound
	idle      bool  // the processor only when nobody else wants it
}

// setting is a line for a file of a group.
type setting struct {
	file, value string
	must        bool // else the kernel may lack it
}

// settings lists what is written to a hierarchy for a new group.
func (h *hierarchy) settings(n need) []setting {
	var all []setting
	quota := strconv.FormatInt(max(n.milliCPUs*cpuPeriod/milli, minQuota), 10)
	idle := "0"
	if n.idle {
		idle = "1"
	}
	memory, processes := strconv.FormatInt(n.memory, 10), strconv.Itoa(n.processes)
	if h.has(ctlMemory) && h.v2 {
		all = append(
			all, setting{"memory.max", memory, true}, setting{"memory.swap.max", "0", false},
			setting{"memory.oom.group", "1", false},
		)
	}
	if h.has(ctlMemory) && !h.v2 {
		all = append(
			all, setting{"memory.limit_in_bytes", memory, true},
			setting{"memory.memsw.limit_in_bytes", memory, false},
		)
	}
	if h.has(ctlPids) {
		all = append(all, setting{"pids.max", processes, true})
	}
	if h.has(ctlCPU) && h.v2 {
		all = append(all, setting{"cpu.weight", lowWeight, false}, setting{"cpu.idle", idle, false})
		if n.milliCPUs > 0 {
			all = append(all, setting{"cpu.max", quota + " " + strconv.Itoa(cpuPeriod), true})
		}
	}
	if h.has(ctlCPU) && !h.v2 {
		all = append(all, setting{"cpu.shares", lowShares, false}, setting{"cpu.idle", idle, false})
		if n.milliCPUs > 0 {
			all = append(
				all, setting{"cpu.cfs_period_us", strconv.Itoa(cpuPeriod), true},
				setting{"cpu.cfs_quota_us", quota, true},
			)
		}
	}
	return all
}

// group is an attempt's group, a directory in each hierarchy.
type group struct {
	dirs    []string
	freezer string // the directory of version 2 that freezes, or empty
	born    string // the directory of version 2 in which processes can begin, or empty
}

// add makes a group.
func (g groups) add(name string, n need) (group, error) {
	var made group
	for _, h := range g {
		dir := filepath.Join(h.dir, name)
		if err := os.Mkdir(dir, modeDir); err != nil {
			return group{}, errors.Join(fmt.Errorf("make group: %w", err), made.remove())
		}
		made.dirs = append(made.dirs, dir)
		if h.freezes {
			made.freezer = dir
		}
		if h.bears {
			made.born = dir
		}
		if err := h.bound(dir, n); err != nil {
			return group{}, errors.Join(err, made.remove())
		}
	}
	return made, nil
}

// bound gives a group its limits, or others.
func (h *hierarchy) bound(dir string, n need) error {
	var errs []error
	for _, s := range h.settings(n) {
		if err := os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0); err != nil && s.must {
			errs = append(errs, fmt.Errorf("bound group: %w", err))
		}
	}
	return errors.Join(errs...)
}

// again is a group that add has made, with other limits.
func (g groups) again(name string, n need) (group, error) {
	var made group
	for _, h := range g {
		dir := filepath.Join(h.dir, name)
		made.dirs = append(made.dirs, dir)
		if h.freezes {
			made.freezer = dir
		}
		err := h.bound(dir, n)
		if err != nil { // of two limits the larger one has to be raised first
			err = h.bound(dir, n)
		}
		if err != nil {
			return group{}, err
		}
	}
	return made, nil
}

// doors are the files through which a process joins.
func (g group) doors() []string {
	var doors []string
	for _, dir := range g.dirs {
		doors = append(doors, filepath.Join(dir, "cgroup.procs"))
	}
	return doors
}

// starved reports whether the kernel killed a process of the group for want of
// memory.
func (g group) starved() bool {
	for _, dir := range g.dirs {
		for _, name := range []string{"memory.events", "memory.oom_control"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" && f[1] != "0" {
					return true
				}
			}
		}
	}
	return false
}

// remove removes the group once it is empty, which it is shortly after the last
// process was reaped.
func (g group) remove() error {
	var errs []error
	for _, dir := range g.dirs {
		deadline := time.Now().Add(removeWait)
		err := os.Remove(dir)
		for ; err != nil && !errors.Is(err, fs.ErrNotExist) &&
			time.Now().Before(deadline); err = os.Remove(dir) {
			time.Sleep(removePoll)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove group: %w", err))
		}
	}
	return errors.Join(errs...)
}

// sweep ends and removes the groups that an earlier agent left.
func (g groups) sweep(prefix string) error {
	var errs []error
	for _, h := range g {
		left, err := filepath.Glob(filepath.Join(h.dir, prefix+"*"))
		if err != nil {
			return err
		}
		for _, dir := range left {
			killMembers(dir)
			errs = append(errs, group{dirs: []string{dir}}.remove())
		}
	}
	return errors.Join(errs...)
}

func killMembers(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for field := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}
}

// groupPrefix begins the names of an agent's groups.
func groupPrefix(recordPath string) string { return "mrs-" + shortHash(recordPath) + "-" }

// groupName is the name of an attempt's group.
func groupName(recordPath, dir string) string { return groupPrefix(recordPath) + shortHash(dir) }

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
