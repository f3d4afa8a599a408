//go:build amd64 || arm64

package powercut

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ack notes, in a program that is recorded, that a thing is now said to be durable.
func Ack(text string) error {
	_, err := unix.Write(ackFD, []byte(text))
	return err
}

// Record runs the test of that name of this test's program in a process of its own,
// with Role naming the directory, and records what it does there. It skips the test
// where that is not allowed.
func Record(t testing.TB, test, root string) *Tape {
	t.Helper()
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // all of a process is traced by one thread; it ends with that
		done <- record(f, []string{os.Args[0], "-test.run=^" + test + "$", "-test.v"}, root, said)
	}()
	err = <-done
	text, _ := os.ReadFile(said.Name())
	if errors.Is(err, errNotAllowed) {
		t.Skipf("a process may not trace its children here: %v", err)
	}
	if err != nil {
		t.Fatalf("record %s: %v\n%s", test, err, text)
	}
	return f.tape
}

var errNotAllowed = errors.New("tracing is not allowed")

func record(f *files, argv []string, root string, said *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	//nolint:gosec // G204, G702: this program itself
	pid, err := syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Env:   append(os.Environ(), Role+"="+root),
		Files: []uintptr{null.Fd(), said.Fd(), said.Fd(), null.Fd()},
		Sys:   &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WALL, nil); err != nil || !status.Stopped() {
		return fmt.Errorf("%w: it did not stop: %w", errNotAllowed, err)
	}
	const options = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(pid, options); err != nil {
		return fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	r := &recorder{files: f, pid: pid, calls: make(map[int]*call)}
	return r.follow()
}

// recorder is the tracer of one process.
type recorder struct {
	*files
	pid    int
	calls  map[int]*call // the call that each thread is in; a thread that was met has an entry
	missed error
}

// call is a system call under way.
type call struct {
	number uint64
	args   [6]uint64
	paths  [2]string
	data   []byte
	covers int
}

// follow lets the threads go on from stop to stop, until the process has ended.
func (r *recorder) follow() error {
	thread, pass := r.pid, 0
	r.calls[thread] = nil
	for {
		// A thread that has gone meanwhile is no error: its end is told by Wait4.
		_ = syscall.PtraceSyscall(thread, pass)
		var status syscall.WaitStatus
		var err error
		for {
			thread, err = syscall.Wait4(-1, &status, syscall.WALL|unix.WNOTHREAD, nil)
			if !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if thread == r.pid && (status.Exited() || status.Signaled()) {
			if status.ExitStatus() != 0 {
				return fmt.Errorf("it ended with %v %d", status.Signal(), status.ExitStatus())
			}
			return r.missed
		}
		pass = r.stopped(thread, status)
	}
}

// stopped looks at a thread that stopped, and returns the signal that it is to get.
func (r *recorder) stopped(thread int, status syscall.WaitStatus) int {
	_, met := r.calls[thread]
	if !met {
		r.calls[thread] = nil
	}
	if !status.Stopped() {
		delete(r.calls, thread)
		return 0
	}
	switch signal := status.StopSignal(); {
	case signal == syscall.SIGTRAP|0x80:
		if err := r.atCall(thread); err != nil && r.missed == nil && !errors.Is(err, syscall.ESRCH) {
			r.missed = err
		}
		return 0
	case signal == syscall.SIGTRAP, signal == syscall.SIGSTOP && !met:
		return 0 // a new thread
	default:
		return int(signal)
	}
}

// callInfo describes a call: struct ptrace_syscall_info.
type callInfo struct {
	Op    uint8
	_     [7]byte
	_, _  uint64
	Union [7]uint64 // at the entry: number and arguments; at the end: the value
}

const (
	getCallInfo = 0x420e
	atEntry     = 1
	atExit      = 2
)

func (r *recorder) atCall(thread int) error {
	var info callInfo
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, getCallInfo, uintptr(thread),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0) //nolint:gosec // the only way
	if errno != 0 {
		return fmt.Errorf("look at a call: %w", errno)
	}
	switch info.Op {
	case atEntry:
		c := &call{number: info.Union[0], covers: len(r.tape.events)}
		copy(c.args[:], info.Union[1:])
		r.calls[thread] = c
		return r.begins(thread, c)
	case atExit:
		c := r.calls[thread]
		r.calls[thread] = nil
		if value := int64(info.Union[0]); c != nil && value >= 0 {
			return r.ends(c, value)
		}
	}
	return nil
}

// begins takes what a call is given, while its thread is stopped.
func (r *recorder) begins(thread int, c *call) (err error) {
	fd := int(int32(c.args[0]))
	switch c.number {
	case unix.SYS_OPENAT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT:
		c.paths[0], err = r.text(thread, fd, c.args[1])
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT:
		c.paths[0], err = r.text(thread, fd, c.args[1])
		if err == nil {
			c.paths[1], err = r.text(thread, int(int32(c.args[2])), c.args[3])
		}
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		if r.open[fd] != nil || fd == ackFD {
			c.data = make([]byte, c.args[2])
			err = r.memory(thread, c.args[1], c.data)
		}
	case unix.SYS_CLOSE:
		delete(r.open, fd)
	case unix.SYS_COPY_FILE_RANGE, unix.SYS_SPLICE:
		if to := r.open[int(int32(c.args[2]))]; to != nil {
			err = fmt.Errorf("call %d on %s is not recorded", c.number, to.path)
		}
	}
	return err
}

// ends takes down what a call did.
func (r *recorder) ends(c *call, value int64) error {
	fd := int(int32(c.args[0]))
	switch c.number {
	case unix.SYS_OPENAT:
		flags := int(c.args[2])
		r.opens(int(value), c.paths[0],
			flags&unix.O_CREAT != 0, flags&unix.O_TRUNC != 0, flags&unix.O_APPEND != 0)
	case unix.SYS_MKDIRAT:
		r.name(c.paths[0], r.newDir())
	case unix.SYS_UNLINKAT:
		r.name(c.paths[0], nil)
	case unix.SYS_LINKAT:
		_, _, n := r.find(c.paths[0])
		r.name(c.paths[1], n)
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		_, _, n := r.find(c.paths[0])
		r.name(c.paths[1], n)
		r.name(c.paths[0], nil)
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		return r.wrote(c, fd, value)
	default:
		return r.onFile(c, r.open[fd], value)
	}
	return nil
}

func (r *recorder) wrote(c *call, fd int, value int64) error {
	if fd == ackFD {
		r.add(event{kind: acked, text: string(c.data)})
		return nil
	}
	at := int64(-1)
	if c.number == unix.SYS_PWRITE64 {
		at = int64(c.args[3])
	}
	r.writes(fd, at, c.data[:min(value, int64(len(c.data)))])
	return nil
}

// onFile takes down a call on an open file below the root.
func (r *recorder) onFile(c *call, file *opened, value int64) error {
	if file == nil {
		return nil
	}
	switch c.number {
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		r.add(event{kind: synced, node: file.node, covers: c.covers})
	case unix.SYS_FTRUNCATE:
		r.truncate(file.node, int64(c.args[1]))
	case unix.SYS_LSEEK:
		file.at = value
	case unix.SYS_READ:
		file.at += value
	case unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_PWRITEV2, unix.SYS_FALLOCATE,
		unix.SYS_SENDFILE:
		return fmt.Errorf("call %d on %s is not recorded", c.number, file.path)
	}
	return nil
}

// text reads a path of the traced process.
func (r *recorder) text(thread, fd int, at uint64) (string, error) {
	var path []byte
	for len(path) < unix.PathMax {
		word := make([]byte, 8)
		if _, err := syscall.PtracePeekData(thread, uintptr(at)+uintptr(len(path)), word); err != nil {
			return "", fmt.Errorf("read a path: %w", err)
		}
		if last, _, ended := bytes.Cut(word, []byte{0}); ended {
			return r.path(fd, string(append(path, last...))), nil
		}
		path = append(path, word...)
	}
	return "", fmt.Errorf("read a path: %w", syscall.ENAMETOOLONG)
}

// memory reads the traced process's memory.
func (r *recorder) memory(thread int, at uint64, into []byte) error {
	if len(into) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	remote := []unix.RemoteIovec{{Base: uintptr(at), Len: len(into)}}
	n, err := unix.ProcessVMReadv(thread, local, remote, 0)
	if err != nil || n != len(into) {
		return fmt.Errorf("read %d bytes that are written: %d, %w", len(into), n, err)
	}
	return nil
}
