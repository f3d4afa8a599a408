package native

import (
	"os"
	"path/filepath"
)

// GroupsLeft are the control groups of an agent's attempts.
func GroupsLeft(record string) []string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var left []string
	for _, h := range candidates(string(mounts), string(own)) {
		for _, dir := range []string{h.dir, filepath.Dir(h.dir)} {
			if found, err := filepath.Glob(filepath.Join(dir, groupPrefix(record)+"*")); err == nil {
				left = append(left, found...)
			}
		}
	}
	return left
}
