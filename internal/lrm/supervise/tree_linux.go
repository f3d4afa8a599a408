package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	treeWait    = 2 * time.Second        // for a whole tree to stop; then it is killed
	treePoll    = 500 * time.Microsecond // between two looks
	stillRounds = 2                      // looks in a row that find nothing running
	starveAfter = 300 * time.Millisecond // what was told to stop may wait for a processor since then
	starveLook  = 30 * time.Millisecond  // three ticks of the times in /proc
	// The first process of a sandbox's namespaces ends a moment after the one outside.
	orphanPoll = 200 * time.Microsecond // the first pause for that; each is twice the last, up to
	orphanNap  = 5 * time.Millisecond   // this one, from which on what is left is killed
	orphanWait = 300 * time.Millisecond // then all processes of the machine are looked at
)

// member is a process of a tree.
type member struct{ pid int }

// running are the threads that have not stopped, and whether all of those sleep
// in a system call that cannot be interrupted. The state of a process is that of its
// first thread alone, which may have ended or be stopped by a tracer while others run.
func (m member) running() (threads []int, sleeping bool) {
	dir := fmt.Sprintf("/proc/%d/task", m.pid)
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, false
	}
	sleeping = true
	for _, name := range names {
		fields, ok := readStat(filepath.Join(dir, name.Name(), "stat"))
		tid, err := strconv.Atoi(name.Name())
		if !ok || err != nil || strings.Contains("TtZX", fields[0]) {
			continue
		}
		threads = append(threads, tid)
		sleeping = sleeping && fields[0] == "D"
	}
	return threads, sleeping
}

// adoptOrphans makes this process the parent of descendants whose parent dies,
// so that none gets lost when a sandbox dies before its program.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// endOrphans kills and reaps what this process adopted. It is only called when
// this process waits for no child of its own. Most sandboxes leave nothing, or only what is
// ending by itself, which the kernel tells directly: without a child there is no descendant.
// To look for what is left among all processes of the machine costs more than many an attempt,
// so that those are killed first that the kernel lists as children.
func endOrphans(limit time.Duration) {
	began := time.Now()
	for pause := orphanPoll; reapAll(); pause = min(2*pause, orphanNap) {
		past := time.Since(began)
		var left []member
		switch {
		case past >= limit:
			return
		case past >= orphanWait:
			left = descendants(os.Getpid())
		case pause == orphanNap:
			left = nearby(os.Getpid())
		}
		for _, m := range left {
			_ = unix.Kill(m.pid, unix.SIGKILL)
		}
		time.Sleep(pause)
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

// freezeTree stops root and all below it, and waits until all have stopped. By
// signals it stops again and again what is found running, because a process may
// start another one or continue a stopped one before it is stopped itself.
func freezeTree(root int, dir string) error {
	if dir != "" && freezeCgroup(dir) == nil {
		return nil
	}
	began := time.Now()
	deadline := began.Add(treeWait)
	for quiet := 0; quiet < stillRounds; {
		if err := freezeGroup(root); err != nil {
			return err
		}
		running, sleeping := stopRunning(root)
		late := time.Now().After(deadline)
		switch {
		case len(running) == 0 || late && len(running) == sleeping:
			quiet++
		case time.Since(began) > starveAfter && starved(running):
			quiet++
		case late:
			return fmt.Errorf("%d processes did not stop", len(running))
		default:
			quiet = 0
			time.Sleep(treePoll)
		}
	}
	return nil
}

// stopRunning stops the running processes below root. It returns them, and how
// many of them are in a system call that cannot be interrupted.
func stopRunning(root int) (running []member, sleeping int) {
	for _, m := range descendants(root) {
		threads, asleep := m.running()
		if len(threads) == 0 {
			continue
		}
		running = append(running, m)
		if asleep {
			sleeping++ // it stops before its next step
		}
		for _, tid := range threads { // each: of a traced process one signal stops one thread
			_ = unix.Tgkill(m.pid, tid, unix.SIGSTOP)
		}
	}
	return running, sleeping
}

// starved reports whether processes that were told to stop do not run, because
// all processors are taken by others: they stop before their next instruction. That
// happens on a machine whose owner is busy.
func starved(told []member) bool {
	times := func() (all []time.Duration) {
		for _, m := range told {
			used, _ := processTime(m.pid)
			all = append(all, used)
		}
		return all
	}
	before := times()
	time.Sleep(starveLook)
	return slices.Equal(before, times())
}

// freezeCgroup freezes a group and waits until the kernel says it is done, or
// until it is clear that the group only waits for a processor to do so.
func freezeCgroup(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("1"), 0); err != nil {
		return err
	}
	began := time.Now()
	for deadline := began.Add(treeWait); time.Now().Before(deadline); time.Sleep(treePoll) {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "frozen 1") {
			return nil
		}
		if time.Since(began) > starveAfter && starvedGroup(dir) {
			return nil
		}
	}
	return errors.New("the group does not freeze")
}

func starvedGroup(dir string) bool {
	before, ok := groupTime(dir)
	time.Sleep(starveLook)
	after, still := groupTime(dir)
	return ok && still && before == after
}

// resumeTree lets root and all below it go on. What a kernel of its own traces is left to that
// kernel, which holds its threads by SIGSTOP while it hands them from one of its own threads to
// another: one that went on by itself meanwhile would run into nothing, and the kernel would fail.
func resumeTree(root int, dir string, ownKernel bool) error {
	if dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("0"), 0); err != nil {
			return err
		}
	}
	for _, m := range descendants(root) {
		if !ownKernel || !m.traced() {
			_ = unix.Kill(m.pid, unix.SIGCONT)
		}
	}
	return resumeGroup(root)
}

// traced reports whether another process traces this one.
func (m member) traced() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		return false
	}
	_, after, found := strings.Cut(string(text), "\nTracerPid:\t")
	return found && !strings.HasPrefix(after, "0\n")
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

// lowerTree lowers the priority of the sessions of a tree's processes, where groups
// do not hold it.
func lowerTree(all []member, idle bool) {
	for _, m := range all {
		lowerSession(m.pid, idle)
	}
}

// treeMemory is the memory, in bytes, that processes have for themselves, alone or
// shared among each other; it may say more as long as that is not above enough. The
// more exact a sum, the longer it takes: first comes that of all that is mapped, then
// it without the files, and then with what they share divided among them.
func treeMemory(all []member, enough int64) int64 {
	if mapped := sumResident(all); mapped <= enough {
		return mapped
	}
	quick := sumFields(all, "status", "RssAnon:", "RssShmem:")
	if quick <= enough {
		return quick
	}
	return sumFields(all, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:")
}

// sumResident sums, in bytes, what of the processes' memory is there.
func sumResident(of []member) int64 {
	var pages int64
	for _, m := range of {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(m.pid) + "/statm")
		if err != nil {
			continue
		}
		if f := strings.Fields(string(text)); len(f) > 1 {
			n, _ := strconv.ParseInt(f[1], 10, 64) // the kernel's own number
			pages += n
		}
	}
	return pages * int64(os.Getpagesize())
}

// sumFields sums, in bytes, fields in kB of a file that each process has in /proc.
func sumFields(of []member, file string, names ...string) int64 {
	var total int64
	for _, m := range of {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", m.pid, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 2 || !slices.Contains(names, f[0]) {
				continue
			}
			if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				total += kib << 10
			}
		}
	}
	return total
}

// ownMemory is the memory, in bytes, of a tree that is a kernel of its own: its
// program's memory is a file in memory, mapped only where it was touched lately.
func ownMemory(all []member) int64 {
	_, memory := namelessUse(all)
	return memory + sumFields(all, "status", "RssAnon:")
}

// namelessUse is the size, in bytes, of the files that processes hold open without a name:
// on disk, removed ones; in memory, those that never had one.
func namelessUse(all []member) (disk, memory int64) {
	type file struct{ dev, inode uint64 }
	seen := make(map[file]bool)
	for _, m := range all {
		dir := "/proc/" + strconv.Itoa(m.pid) + "/fd/"
		links, err := names(dir)
		if err != nil {
			continue
		}
		for _, link := range links {
			var st unix.Stat_t
			if unix.Stat(dir+link, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 ||
				seen[file{st.Dev, st.Ino}] {
				continue
			}
			seen[file{st.Dev, st.Ino}] = true
			if name, err := os.Readlink(dir + link); err == nil && strings.HasPrefix(name, "/memfd:") {
				memory += st.Blocks * 512
			} else {
				disk += st.Blocks * 512
			}
		}
	}
	return disk, memory
}
