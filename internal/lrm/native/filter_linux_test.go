//go:build amd64 || arm64

package native

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Commands make the calls that namespaces enclose, and are refused the others, on this machine's
// architecture and on no other.
func TestWhichSystemCallsAreRefused(t *testing.T) {
	t.Parallel()
	held, alone := machine(t, runtime.GOARCH, true), machine(t, runtime.GOARCH, false)
	own, _ := auditArch(runtime.GOARCH)
	ownerless := []uint32{
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET,
	}
	const otherABI = 0x40000000 // of a number: the x32 calls of amd64
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
		{"just below that", own, otherABI - 1, 0, 0, refused | uint32(unix.ENOSYS)},
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
		made := call{c.arch, c.number, c.first, c.second}
		if got := judged(t, held, made); got != c.want {
			t.Errorf("%s: %x, want %x", c.name, got, c.want)
		}
		want := c.want
		if slices.Contains(ownerless, c.number) && c.arch == own {
			want = refused | uint32(unix.ENOSYS)
		}
		if got := judged(t, alone, made); got != want {
			t.Errorf("%s, where no group holds memory: %x, want %x", c.name, got, want)
		}
	}
}

// The kernel gets the program in its own form.
func TestTheFilterAsTheKernelReadsIt(t *testing.T) {
	t.Parallel()
	for _, memoryHeld := range []bool{true, false} {
		text, err := callFilter(memoryHeld)
		if err != nil {
			t.Fatal(err)
		}
		program := make([]unix.SockFilter, len(text)/8)
		if err = binary.Read(bytes.NewReader(text), binary.NativeEndian, program); err != nil {
			t.Fatal(err)
		}
		raw := make([]bpf.RawInstruction, len(program))
		for i, in := range program {
			raw[i] = bpf.RawInstruction{Op: in.Code, Jt: in.Jt, Jf: in.Jf, K: in.K}
		}
		got, whole := bpf.Disassemble(raw)
		vm, err := bpf.NewVM(got)
		if err != nil || !whole {
			t.Fatal(err, whole)
		}
		id, _ := auditArch(runtime.GOARCH)
		w := newTwin(t, runtime.GOARCH, memoryHeld)
		for n := range uint32(600) {
			c := call{arch: id, number: n}
			if got, want := judged(t, vm, c), w.judge(c); got != want {
				t.Errorf("%+v: %x, want %x", c, got, want)
			}
		}
	}
}

// A list that cannot be read, or leaves a call undecided, makes no filter.
func TestListsThatMakeNoFilter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"read 0 63":                             "want a name",
		"read 0 63 allow now":                   "want a name",
		"read x x allow":                        "number",
		"read -1 -1 allow":                      "number",
		"read 0 63 maybe":                       "nothing decides it",
		"read 0 63 argument":                    "nothing decides it",
		"ioctl 16 29 argument\nread 0 63 allow": "",
	} {
		_, err := readRules(text, 1, true)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := rulesOf("vax", true); err == nil {
		t.Error("there is a list for an unknown architecture")
	}
}
