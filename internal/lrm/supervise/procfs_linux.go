package supervise

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	statBytes  = 1 << 10 // enough for the first fields of /proc/PID/stat
	nearbyMost = 64      // threads; to find the children of more, all processes are read
)

// descendants are the processes below root, wherever they are: a process cannot
// leave its ancestors, and the first process of a namespace adopts what others
// leave behind. None is missed that was there all the time.
func descendants(root int) []member {
	pids, err := names("/proc")
	if err != nil {
		return nil
	}
	children := make(map[int][]member)
	buffer := make([]byte, statBytes)
	for _, name := range pids {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, ok := parentOf(name, buffer); ok {
			children[parent] = append(children[parent], member{pid: pid})
		}
	}
	found := append([]member{}, children[root]...)
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// nearby are the processes below root as the kernel lists them, from parent to
// child. It takes a small part of the time of descendants where the machine has
// many processes and the tree has few, but may miss some when others end at that
// very moment. Where the kernel has no such lists it is descendants.
func nearby(root int) []member {
	if unix.Access("/proc/thread-self/children", unix.R_OK) != nil {
		return descendants(root)
	}
	found, threads := []member{{pid: root}}, 0
	for i := 0; i < len(found); i++ {
		dir := "/proc/" + strconv.Itoa(found[i].pid) + "/task"
		tids, err := names(dir)
		if err != nil {
			continue // it ended
		}
		if threads += len(tids); threads > nearbyMost {
			return descendants(root)
		}
		for _, tid := range tids {
			text, err := os.ReadFile(dir + "/" + tid + "/children")
			if err != nil {
				continue
			}
			for field := range strings.FieldsSeq(string(text)) {
				pid, err := strconv.Atoi(field)
				if child := (member{pid: pid}); err == nil && !slices.Contains(found, child) {
					found = append(found, child)
				}
			}
		}
	}
	return found[1:]
}

// names lists the entries of a directory, in any order.
func names(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// parentOf is a process's parent. The name in parentheses, behind which it stands,
// may hold anything.
func parentOf(pid string, buffer []byte) (int, bool) {
	fd, err := unix.Open("/proc/"+pid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	n, err := unix.Read(fd, buffer)
	unix.Close(fd)
	if err != nil {
		return 0, false
	}
	text := buffer[:n]
	text = text[bytes.LastIndexByte(text, ')')+1:]
	if len(text) < len(" S 1") {
		return 0, false
	}
	field, _, _ := bytes.Cut(text[len(" S "):], []byte(" "))
	parent, err := strconv.Atoi(string(field))
	return parent, err == nil
}

// room is the free space of a file system.
type room struct{ bytes, files int64 }

// roomOf is the free space of the file system of a directory.
func roomOf(dir string) (room, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Blocks == 0 {
		return room{}, false
	}
	//nolint:unconvert // far below the limits; the types differ among machines
	return room{bytes: int64(st.Bfree) * int64(st.Bsize), files: int64(st.Ffree)}, true
}

// machine holds the memory that the whole machine has left, and counts its processes.
type machine struct {
	memory    int64 // in bytes, that programs can have without anything being moved out
	processes int   // and threads
}

// machineNow asks the kernel for them.
func machineNow() (machine, bool) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return machine{}, false
	}
	fd, err := unix.Open("/proc/meminfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return machine{}, false
	}
	defer unix.Close(fd)
	var head [statBytes]byte
	n, err := unix.Read(fd, head[:])
	if err != nil {
		return machine{}, false
	}
	_, after, _ := bytes.Cut(head[:n], []byte("\nMemAvailable:"))
	number, _, found := bytes.Cut(after, []byte(" kB\n"))
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(number)), 10, 64)
	return machine{memory: kib << 10, processes: int(info.Procs)}, found && err == nil
}
