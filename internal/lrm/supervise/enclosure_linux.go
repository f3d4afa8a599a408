package supervise

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNotBounded means that a sandbox's program cannot be bounded before its first
// step.
var errNotBounded = errors.New("the program cannot be bounded from outside")

// startEnclosed starts the enclosure's program by the calling thread, which must be
// locked and must end afterwards: it loses what the program must not have. The
// program stops at its first step, by way of being traced, and goes on when it is
// bounded. Its priority is lowered then, and not the thread's: the agent, which waits for this
// process, would spin in the kernel until a thread of low priority had got a processor for its end.
//
// What it returns is to be opened, if there is a gate. Further files get the descriptors from
// TaskFD on, and remain the caller's.
func startEnclosed(
	cmd *exec.Cmd, e *Enclosure, idle bool, further ...*os.File,
) (*gate, error) {
	if gainsRights(e.Program) {
		return nil, errNotBounded
	}
	if err := LeaveOwner(); err != nil {
		return nil, err
	}
	files, err := e.open()
	if err != nil {
		return nil, err
	}
	defer func() { closeAll(files) }()
	var g *gate
	if e.Gate != nil {
		if g, files, err = newGate(e.Gate.Rlimits, files); err != nil {
			return nil, err
		}
	}
	cmd.Stdin, cmd.ExtraFiles = files[0], files[1:]
	if len(further) > 0 {
		cmd.ExtraFiles = append(padded(files[1:], TaskFD-StatusFD), further...)
	}
	cmd.SysProcAttr.Ptrace = true
	way := e.enter()
	way.begin(cmd)
	if err = cmd.Start(); err != nil {
		g.close()
		return nil, errors.Join(err, way.leave())
	}
	if err = way.leave(); err == nil {
		err = boundStopped(cmd.Process.Pid, e, way.rest, idle)
	}
	if err != nil {
		g.close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	return g, nil
}

// gainsRights reports whether a program has rights of its own, which the kernel
// does not give to one that is traced.
func gainsRights(program string) bool {
	info, err := os.Stat(program)
	if err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return true
	}
	size, err := unix.Getxattr(program, "security.capability", nil)
	return err == nil && size > 0
}

// boundStopped bounds a traced process that stops at its first step, and lets it go. It joins the
// groups of these doors.
func boundStopped(pid int, e *Enclosure, doors []string, idle bool) error {
	var status unix.WaitStatus
	got, err := unix.Wait4(pid, &status, unix.WALL, nil)
	for errors.Is(err, unix.EINTR) {
		got, err = unix.Wait4(pid, &status, unix.WALL, nil)
	}
	if err != nil || got != pid || !status.Stopped() {
		return errors.Join(errNotBounded, err)
	}
	sacrificeFirst(pid)
	lowerPriority(pid, idle)
	lowerSession(pid, idle)
	if err := errors.Join(join(pid, doors), limit(pid, e.Rlimits)); err != nil {
		return err
	}
	return unix.PtraceDetach(pid)
}

// LeaveOwner takes from the calling thread what a sandbox must not inherit and no
// namespace hides: the owner's further groups and keys.
func LeaveOwner() error {
	if os.Getuid() == 0 {
		// Of this thread alone; unix.Setgroups is for all threads of the process.
		if _, _, errno := unix.RawSyscall(sysSetgroups, 0, 0, 0); errno != 0 && errno != unix.EPERM {
			return fmt.Errorf("leave groups: %w", errno)
		}
	}
	// An empty ring of keys in place of the owner's. A kernel without keys has none to
	// hide, and one that forbids the call also forbids it to the command.
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil &&
		!errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("leave the owner's keys: %w", err)
	}
	return nil
}

// Bound holds a process, which has started no other, to what the enclosure says: it
// moves into the groups and gets the limits.
func (e *Enclosure) Bound(pid int) error {
	if err := join(pid, e.Join); err != nil {
		return err
	}
	return limit(pid, e.Rlimits)
}

// join moves a process into the groups of these doors.
func join(pid int, doors []string) error {
	for _, door := range doors {
		if err := os.WriteFile(door, []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("join group: %w", err)
		}
	}
	return nil
}

// limit bounds a process. Where it has a lower limit already, which it cannot be relieved of,
// that stays.
func limit(pid int, limits map[int]uint64) error {
	for resource, most := range limits {
		err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
		if errors.Is(err, unix.EPERM) {
			var has unix.Rlimit
			if unix.Prlimit(pid, resource, nil, &has) == nil && has.Max <= most {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("limit resource %d: %w", resource, err)
		}
	}
	return nil
}

// open opens the standard input, which is empty, and what stands behind StatusFD and
// FilterFD. A pipe without a writer is nobody's file: a device of the machine could
// be told things.
func (e *Enclosure) open() (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	stdin, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	writer.Close()
	files = []*os.File{stdin}
	if e.StatusPath != "" {
		status, wrong := os.OpenFile(e.StatusPath, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if wrong != nil {
			return files, fmt.Errorf("keep status: %w", wrong)
		}
		files = append(files, status)
	}
	if len(e.Filter) == 0 {
		return files, nil
	}
	if e.StatusPath == "" {
		files = append(files, nil) // nothing behind StatusFD
	}
	fd, err := unix.MemfdCreate("filter", unix.MFD_CLOEXEC)
	if err != nil {
		return files, fmt.Errorf("keep filter: %w", err)
	}
	filter := os.NewFile(uintptr(fd), "filter")
	files = append(files, filter)
	if _, err := filter.WriteAt(e.Filter, 0); err != nil {
		return files, fmt.Errorf("keep filter: %w", err)
	}
	return files, nil
}

// padded adds nothing behind the descriptors up to so many.
func padded(files []*os.File, to int) []*os.File {
	return append(slices.Clone(files), make([]*os.File, max(to-len(files), 0))...)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// enclosed is the command for the enclosure's program.
func enclosed(e *Enclosure) *exec.Cmd {
	command := e.Command
	if e.Gate != nil {
		command = e.Gate.Command
	}
	//nolint:gosec,noctx // told by the agent
	cmd := exec.Command(e.Program, slices.Concat(e.Args, command)...)
	cmd.Args[0] = filepath.Base(e.Program)
	cmd.Env = []string{}
	return cmd
}

// keepFiles keeps what files this process was started with from those it starts.
func keepFiles() { _ = unix.CloseRange(reportFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// logTo lets this process's standard error go to the end of a file.
func logTo(path string) bool {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Dup3(fd, syscall.Stderr, 0) == nil
}

// childless reports whether this process has no child left, which means that it has
// no descendant: it adopts what others leave behind, or its runner can have started
// nothing.
func childless() bool { return !reapAll() }
