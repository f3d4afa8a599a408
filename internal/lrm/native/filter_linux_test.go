//go:build amd64 || arm64

package native

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// judged runs the kernel's program for a system call, as far as the program needs it.
func judged(t *testing.T, program []unix.SockFilter, call [64]byte) uint32 {
	t.Helper()
	var a uint32
	for at := 0; at < len(program); at++ {
		switch i := program[at]; i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.NativeEndian.Uint32(call[i.K:])
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			holds := a == i.K
			if i.Code&0xf0 == unix.BPF_JGE {
				holds = a >= i.K
			}
			if holds {
				at += int(i.Jt)
			} else {
				at += int(i.Jf)
			}
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		default:
			t.Fatalf("instruction %d: %+v", at, i)
		}
	}
	t.Fatal("the program has no end")
	return 0
}

// compiled is the filter, as bytes and as the kernel's instructions.
func compiled(t *testing.T, memoryHeld bool) (text []byte, program []unix.SockFilter) {
	t.Helper()
	if text = callFilter(memoryHeld); text == nil {
		t.Fatal("there is no filter")
	}
	program = make([]unix.SockFilter, len(text)/8)
	if err := binary.Read(bytes.NewReader(text), binary.NativeEndian, program); err != nil {
		t.Fatal(err)
	}
	return text, program
}

// Commands make the calls that namespaces enclose, and are refused the others, on this machine's
// architecture and on no other.
func TestWhichSystemCallsAreRefused(t *testing.T) {
	t.Parallel()
	text, program := compiled(t, true)
	_, alone := compiled(t, false)
	own := binary.NativeEndian.Uint32(text[8+4:]) // what the second instruction compares with
	if own != unix.AUDIT_ARCH_X86_64 && own != unix.AUDIT_ARCH_AARCH64 {
		t.Fatalf("it is for %x", own)
	}
	ownerless := []uint32{
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET,
	}
	const allow, refused = uint32(unix.SECCOMP_RET_ALLOW), uint32(unix.SECCOMP_RET_ERRNO)
	for _, c := range []struct {
		name                string
		arch, number        uint32
		first, second, want uint32
	}{
		{"a plain call", own, unix.SYS_READ, 0, 0, allow},
		{"a plain call that looks like a socket's", own, unix.SYS_READ, 99, unix.TIOCSTI, allow},
		{"of another architecture", own + 1, unix.SYS_READ, 0, 0, refused | uint32(unix.ENOSYS)},
		{"of another kind", own, otherABI, 0, 0, refused | uint32(unix.ENOSYS)},
		{"far above", own, 1 << 31, 0, 0, refused | uint32(unix.ENOSYS)},
		{"just below that", own, otherABI - 1, 0, 0, allow},
		{"keyctl", own, unix.SYS_KEYCTL, 0, 0, refused | uint32(unix.EPERM)},
		{"add_key", own, unix.SYS_ADD_KEY, 0, 0, refused | uint32(unix.EPERM)},
		{"request_key", own, unix.SYS_REQUEST_KEY, 0, 0, refused | uint32(unix.EPERM)},
		{"bpf", own, unix.SYS_BPF, 0, 0, refused | uint32(unix.EPERM)},
		{"perf_event_open", own, unix.SYS_PERF_EVENT_OPEN, 0, 0, refused | uint32(unix.EPERM)},
		{"userfaultfd", own, unix.SYS_USERFAULTFD, 0, 0, refused | uint32(unix.EPERM)},
		{"inotify_init1", own, unix.SYS_INOTIFY_INIT1, 0, 0, refused | uint32(unix.EMFILE)},
		{"fanotify_init", own, unix.SYS_FANOTIFY_INIT, 0, 0, refused | uint32(unix.EMFILE)},
		{"memory in a file", own, unix.SYS_MEMFD_CREATE, 0, 0, allow},
		{"secret memory", own, unix.SYS_MEMFD_SECRET, 0, 0, allow},
		{"memory in a segment", own, unix.SYS_SHMGET, 0, 0, allow},
		{"memory in a queue", own, unix.SYS_MSGGET, 0, 0, allow},
		{"io_uring", own, unix.SYS_IO_URING_SETUP, 0, 0, refused | uint32(unix.ENOSYS)},
		{"typing for others", own, unix.SYS_IOCTL, 0, unix.TIOCSTI, refused | uint32(unix.EPERM)},
		{"another ioctl", own, unix.SYS_IOCTL, unix.TIOCSTI, unix.TIOCGWINSZ, allow},
		{"a lease", own, unix.SYS_FCNTL, 0, unix.F_SETLEASE, refused | uint32(unix.EINVAL)},
		{"a delegation", own, unix.SYS_FCNTL, 0, 1040, refused | uint32(unix.EINVAL)},
		{"a notice", own, unix.SYS_FCNTL, 0, unix.F_NOTIFY, refused | uint32(unix.EINVAL)},
		{"a hint", own, unix.SYS_FCNTL, 0, unix.F_SET_RW_HINT, refused | uint32(unix.EINVAL)},
		{"a lock", own, unix.SYS_FCNTL, unix.F_SETLEASE, unix.F_SETLK, allow},
		{"a copy", own, unix.SYS_FCNTL, 0, unix.F_DUPFD_CLOEXEC, allow},
		{"a socket of this machine", own, unix.SYS_SOCKET, unix.AF_UNIX, 0, allow},
		{"of IPv4", own, unix.SYS_SOCKET, unix.AF_INET, 0, allow},
		{"of IPv6", own, unix.SYS_SOCKET, unix.AF_INET6, 0, allow},
		{"of the kernel", own, unix.SYS_SOCKET, unix.AF_NETLINK, 0, allow},
		{"of the host", own, unix.SYS_SOCKET, unix.AF_VSOCK, 0, refused | uint32(unix.EAFNOSUPPORT)},
		{"of a radio", own, unix.SYS_SOCKET, unix.AF_BLUETOOTH, 0, refused | uint32(unix.EAFNOSUPPORT)},
		{"of nothing", own, unix.SYS_SOCKET, 0, unix.AF_INET, refused | uint32(unix.EAFNOSUPPORT)},
	} {
		var call [64]byte // struct seccomp_data
		for at, value := range map[int]uint32{0: c.number, 4: c.arch, 16: c.first, 24: c.second} {
			binary.NativeEndian.PutUint32(call[at:], value)
		}
		if got := judged(t, program, call); got != c.want {
			t.Errorf("%s: %x, want %x", c.name, got, c.want)
		}
		want := c.want
		if slices.Contains(ownerless, c.number) && c.arch == own {
			want = refused | uint32(unix.ENOSYS)
		}
		if got := judged(t, alone, call); got != want {
			t.Errorf("%s, where no group holds memory: %x, want %x", c.name, got, want)
		}
	}
}
