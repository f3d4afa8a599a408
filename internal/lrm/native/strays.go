package native

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	straysWait = 3 * time.Second // for those that were killed
	straysPoll = 10 * time.Millisecond
)

// endStrays kills the sandboxes that are left in a directory, which has no supervisor any more, and
// waits until they are gone. Bubblewrap's first process inside learns to die with the one outside
// only when all is made, just after its gate: when a supervisor and bubblewrap are killed before
// that, it stays, and waits there forever. Nobody knows it then but by its arguments.
func endStrays(dir string) error {
	for deadline := time.Now().Add(straysWait); ; time.Sleep(straysPoll) {
		left := slices.DeleteFunc(strays(dir), refusesDeath)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("end sandbox without a supervisor: kill process %d", left[0])
		}
	}
}

// refusesDeath kills a process, or reports that it cannot: it has ended, or is another user's, who
// may give it what arguments they like.
func refusesDeath(pid int) bool {
	p, err := os.FindProcess(pid)
	return err != nil || p.Kill() != nil
}

// strays are the processes of bubblewrap whose root is in a directory.
func strays(dir string) []int {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	var found []int
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || !hasRootIn(strings.Split(string(text), "\x00"), dir) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// hasRootIn reports whether bubblewrap's arguments bind a root from a directory.
func hasRootIn(args []string, dir string) bool {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if i+2 < len(args) && arg == "--bind" && args[i+2] == "/" &&
			strings.HasPrefix(args[i+1], dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}
