package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processesBelow lists the living processes that work below a directory: supervisors and
// programs of jobs, each as "PID in DIRECTORY".
func processesBelow(dir string) []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(cwd, dir+"/") {
			continue
		}
		if isLiving(filepath.Dir(link)) {
			found = append(found, fmt.Sprintf("%s in %s", filepath.Base(filepath.Dir(link)), cwd))
		}
	}
	return found
}

// mountsBelow lists what is mounted below a directory, itself left out.
func mountsBelow(dir string) []string {
	var found []string
	table, _ := os.ReadFile("/proc/self/mounts") // where there is none nothing is found
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			found = append(found, fields[1])
		}
	}
	return found
}

// attemptsBelow lists the directories of attempts that an agent's state still has.
func attemptsBelow(state string) []string {
	left, _ := filepath.Glob(filepath.Join(state, "attempts", "*")) // the pattern is right
	return left
}

// isLiving reports whether a process, as its directory below /proc, has not ended.
func isLiving(process string) bool {
	stat, err := os.ReadFile(filepath.Join(process, "stat"))
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return err == nil && len(after) > 0 && after[0] != 'Z' && after[0] != 'X'
}

// childrenOf lists the living processes that a process has started, as their directories below
// /proc: one that waits for work does not work below any directory yet.
func childrenOf(pid int) []string {
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range all {
		stat, _ := os.ReadFile(filepath.Join(process, "stat")) // none: it has ended
		_, after, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(after))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			found = append(found, process)
		}
	}
	return found
}
