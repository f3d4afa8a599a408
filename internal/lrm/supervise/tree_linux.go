package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	treeWait    = 2 * time.Second        // for a whole tree to stand still; then it is killed
	treePoll    = 500 * time.Microsecond // between two looks
	stillRounds = 2                      // looks in a row that find nothing running
)

// member is a process of a tree.
type member struct {
	pid   int
	state byte // as in /proc/PID/stat
}

func (m member) still() bool { return strings.IndexByte("TtZX", m.state) >= 0 }

// descendants are the processes below root, wherever they are: a process cannot
// leave its ancestors, and the first process of a namespace adopts what others
// leave behind.
func descendants(root int) []member {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	children := make(map[int][]member)
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if fields, ok := statFields(pid); ok {
			if parent, err := strconv.Atoi(fields[1]); err == nil {
				children[parent] = append(children[parent], member{pid: pid, state: fields[0][0]})
			}
		}
	}
	found := append([]member{}, children[root]...)
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// adoptOrphans makes this process the parent of descendants whose parent dies,
// so that none gets lost when a sandbox dies before its program.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// endOrphans kills and reaps what this process adopted. It is only called when
// this process waits for no child of its own. Most sandboxes leave nothing, which
// the kernel tells at once: who has no child has no descendant. Only what is left
// is looked for among all processes of the machine.
func endOrphans(limit time.Duration) {
	deadline := time.Now().Add(limit)
	for reapAll() && time.Now().Before(deadline) {
		for _, m := range descendants(os.Getpid()) {
			_ = unix.Kill(m.pid, unix.SIGKILL)
		}
		if !reapAll() {
			return
		}
		time.Sleep(treePoll)
	}
}

// reapAll reaps the children that have ended, and reports whether there are more.
func reapAll() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return false // no child
		case pid == 0:
			return true
		}
	}
}

// freezeTree stops root and all below it, and waits until all stand still. By
// signals it stops again and again what is found running, because a process may
// start another one or continue a stopped one before it is stopped itself.
func freezeTree(root int, dir string) error {
	if dir != "" && freezeCgroup(dir) == nil {
		return nil
	}
	deadline := time.Now().Add(treeWait)
	for quiet := 0; quiet < stillRounds; {
		if err := freezeGroup(root); err != nil {
			return err
		}
		running, sleeping := 0, 0
		for _, m := range descendants(root) {
			if m.still() {
				continue
			}
			running++
			if m.state == 'D' {
				sleeping++ // in a system call that cannot be interrupted: it stops before its next step
			}
			_ = unix.Kill(m.pid, unix.SIGSTOP)
		}
		late := time.Now().After(deadline)
		switch {
		case running == 0 || late && running == sleeping:
			quiet++
		case late:
			return fmt.Errorf("%d processes do not stand still", running)
		default:
			quiet = 0
			time.Sleep(treePoll)
		}
	}
	return nil
}

// freezeCgroup freezes a group and waits until the kernel says it is done.
func freezeCgroup(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("1"), 0); err != nil {
		return err
	}
	for deadline := time.Now().Add(treeWait); time.Now().Before(deadline); time.Sleep(treePoll) {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "frozen 1") {
			return nil
		}
	}
	return errors.New("the group does not freeze")
}

func resumeTree(root int, dir string) error {
	if dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("0"), 0); err != nil {
			return err
		}
	}
	for _, m := range descendants(root) {
		_ = unix.Kill(m.pid, unix.SIGCONT)
	}
	return resumeGroup(root)
}

// killTree kills what is below root, and root only if there is nothing: root is
// left to wait for its namespace, so that its own end means that all are gone.
func killTree(root int, dir string) {
	_ = freezeGroup(root) // it must not start a child behind our back
	below := descendants(root)
	for _, m := range below {
		_ = unix.Kill(m.pid, unix.SIGKILL)
	}
	if len(below) == 0 {
		killGroup(root)
	}
	if dir != "" {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("0"), 0)
	}
	_ = resumeGroup(root)
}

func treeCount(root int) int { return len(descendants(root)) }

// treeMemory is the memory, in bytes, that the tree has for itself. Only when the
// quick sum is above enough does it look closely at what processes share.
func treeMemory(root int, enough int64) int64 {
	var quick, exact int64
	page := int64(os.Getpagesize())
	below := descendants(root)
	for _, m := range below {
		var size, resident, shared int64
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", m.pid))
		if err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(text), &size, &resident, &shared); err == nil {
			quick += (resident - shared) * page
		}
	}
	if quick <= enough {
		return quick
	}
	for _, m := range below {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", m.pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			var kib int64
			if _, err := fmt.Sscanf(line, "Pss_Anon: %d kB", &kib); err == nil {
				exact += kib << 10
			}
		}
	}
	return exact
}

// namelessUse is what files take on disk, in bytes, that the tree holds open
// after their names were removed.
func namelessUse(root int) int64 {
	type file struct{ dev, inode uint64 }
	seen := make(map[file]bool)
	var total int64
	for _, m := range descendants(root) {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", m.pid))
		if err != nil {
			continue
		}
		for _, link := range links {
			var st unix.Stat_t
			if unix.Stat(link, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 {
				continue
			}
			if id := (file{st.Dev, st.Ino}); !seen[id] {
				seen[id] = true
				total += st.Blocks * 512
			}
		}
	}
	return total
}
