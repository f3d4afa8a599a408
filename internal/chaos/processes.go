package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(link), "stat"))
		_, after, _ := bytes.Cut(stat, []byte(") "))
		if err == nil && len(after) > 0 && after[0] != 'Z' && after[0] != 'X' {
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
