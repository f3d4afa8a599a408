package native

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
)

// The places in what the kernel shows a filter of a system call.
const (
	callNumber = 0
	callArch   = 4
	callFirst  = 16 // lower half of the first argument, on little-endian machines
	callSecond = 24
	otherABI   = 0x40000000 // of a number: the x32 calls of amd64
	refuse     = unix.SECCOMP_RET_ERRNO
)

// callFilter is a program for the kernel that refuses a command the system calls
// which namespaces do not enclose: sockets that reach the machine's host or its
// radios, the owner's keys, typing into a terminal, watches of files, which the
// kernel counts together with the owner's, what holds files for others, and calls that
// no command needs and that had many holes. Where no control group holds memory it refuses
// memory that belongs to no process, too: looking at processes does not see it.
// It is nil where the machine's architecture is not known.
func callFilter(memoryHeld bool) []byte {
	arch, known := map[string]uint32{
		"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64,
	}[runtime.GOARCH]
	if !known {
		return nil
	}
	program := []unix.SockFilter{
		load(callArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: 1},
		end(refuse | uint32(unix.ENOSYS)),
		load(callNumber),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: otherABI, Jf: 1},
		end(refuse | uint32(unix.ENOSYS)),
	}
	refused := map[unix.Errno][]uint32{
		unix.EPERM: {
			unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF,
			unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		},
		unix.EMFILE: watches(), // programs know that there may be no more of them
	}
	if !memoryHeld {
		refused[unix.ENOSYS] = []uint32{
			unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET,
		}
	}
	for _, why := range []unix.Errno{unix.EPERM, unix.EMFILE, unix.ENOSYS} {
		for _, call := range refused[why] {
			program = append(program, skipUnless(call, 1), end(refuse|uint32(why)))
		}
	}
	const allow = unix.SECCOMP_RET_ALLOW
	program = slices.Concat(program,
		// io_uring makes sockets past this filter.
		[]unix.SockFilter{
			skipUnless(unix.SYS_IO_URING_SETUP, 1), end(refuse | uint32(unix.ENOSYS)),
		},
		byArgument(
			unix.SYS_IOCTL, callSecond, []uint32{unix.TIOCSTI}, refuse|uint32(unix.EPERM), allow,
		),
		byArgument(unix.SYS_FCNTL, callSecond, sharedHolds(), refuse|uint32(unix.EINVAL), allow),
		byArgument(unix.SYS_SOCKET, callFirst, []uint32{
			unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK,
		}, allow, refuse|uint32(unix.EAFNOSUPPORT)),
		[]unix.SockFilter{end(allow)},
	)
	var out bytes.Buffer
	out.Grow(len(program) * int(unsafe.Sizeof(unix.SockFilter{})))
	if binary.Write(&out, binary.NativeEndian, program) != nil {
		return nil
	}
	return out.Bytes()
}

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func end(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// skipUnless goes over the next n instructions unless the value is the one.
func skipUnless(value uint32, n uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: n}
}

// byArgument ends a system call by one verdict if the argument at a place is among some values, and
// else by the other.
func byArgument(call, at uint32, values []uint32, among, other uint32) []unix.SockFilter {
	var program []unix.SockFilter
	for _, v := range values {
		program = append(program, skipUnless(v, 1), end(among))
	}
	program = append(program, end(other))
	begin := []unix.SockFilter{skipUnless(call, uint8(len(program)+1)), load(at)}
	return append(begin, program...)
}

// sharedHolds are the commands of fcntl by which one command could stop another, or tell it
// something, through a file that both may only read: inputs, and what all see of the system, belong
// to the user that both are to the kernel. A lease lets the next one that opens the file wait for
// most of a minute, a notice tells that it is read, and a hint of how long it lives stays with it.
func sharedHolds() []uint32 {
	const setDelegation = 1040 // a lease, also of a directory, since Linux 6.19
	return []uint32{unix.F_SETLEASE, unix.F_NOTIFY, unix.F_SET_RW_HINT, setDelegation}
}

// watches are the calls that begin to watch files. The older one has a number on amd64 alone.
func watches() []uint32 {
	const inotifyInitAMD64 = 253
	calls := []uint32{unix.SYS_INOTIFY_INIT1, unix.SYS_FANOTIFY_INIT}
	if runtime.GOARCH == "amd64" {
		calls = append(calls, inotifyInitAMD64)
	}
	return calls
}

// keepFilter puts the filter behind supervise.FilterFD.
func keepFilter(program []byte) error {
	fd, err := unix.MemfdCreate("filter", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err = unix.Pwrite(fd, program, 0); err != nil {
		return err
	}
	if fd == supervise.FilterFD {
		_, err = unix.FcntlInt(supervise.FilterFD, unix.F_SETFD, 0)
		return err
	}
	return unix.Dup3(fd, supervise.FilterFD, 0)
}
