package native

import (
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	kernel "github.com/elastic/go-seccomp-bpf/arch"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the list of system calls anew")

// tables are the kernel's system calls by name, for each architecture.
func tables() map[string]map[string]int {
	all := make(map[string]map[string]int)
	for name, info := range map[string]*kernel.Info{
		"amd64": kernel.X86_64, "arm64": kernel.AARCH64,
	} {
		calls := maps.Clone(info.SyscallNames)
		delete(calls, "arch_specific_syscall") // a number that is set aside
		if number, ok := calls["fstatat"]; ok {
			delete(calls, "fstatat")
			calls["newfstatat"] = number // as profiles call it
		}
		all[name] = calls
	}
	return all
}

// said has the words of the containers' default profile for a program without capabilities.
func said(t *testing.T, arch string) map[string]string {
	t.Helper()
	words := make(map[string]string)
	for _, s := range seccomp.DefaultProfile().Syscalls {
		if s.Includes != nil && (len(s.Includes.Caps) > 0 ||
			len(s.Includes.Arches) > 0 && !slices.Contains(s.Includes.Arches, arch)) {
			continue
		}
		if s.Excludes != nil && slices.Contains(s.Excludes.Arches, arch) {
			continue
		}
		word := sayAllow
		switch {
		case len(s.Args) > 0:
			word = sayArgument
		case s.Action == specs.ActErrno && s.ErrnoRet != nil && *s.ErrnoRet == uint(unix.ENOSYS):
			word = sayUnknown
		case s.Action != specs.ActAllow:
			t.Fatalf("the profile has a new kind of rule: %+v", s)
		}
		for _, name := range s.Names {
			if old, twice := words[name]; twice && old != word {
				t.Fatalf("the profile says %s and %s of %s", old, word, name)
			}
			words[name] = word
		}
	}
	return words
}

// The list is the containers' default profile, as the library has it.
func TestTheListIsTheProfiles(t *testing.T) {
	t.Parallel()
	numbers, names := tables(), make(map[string]bool)
	for _, calls := range numbers {
		for name := range calls {
			names[name] = true
		}
	}
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		columns, word := "", ""
		for _, arch := range []string{"amd64", "arm64"} {
			number, ok := numbers[arch][name]
			if !ok {
				columns += " -"
				continue
			}
			columns += fmt.Sprint(" ", number)
			own := said(t, arch)[name]
			if own == "" {
				own = sayRefuse
			}
			if word != "" && word != own {
				t.Errorf("%s: %s on one architecture, %s on the other", name, word, own)
			}
			word = own
		}
		fmt.Fprintf(&list, "%s%s %s\n", name, columns, word)
	}
	if *update {
		if err := os.WriteFile("calls.txt", []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	same(t, "calls.txt", strings.Split(profile, "\n"), strings.Split(list.String(), "\n"))
}

// call has all that this filter sees of one.
type call struct{ arch, number, first, second uint32 }

// tester is a test, also one of rapid's.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// judged runs a filter for a system call.
func judged(t tester, vm *bpf.VM, c call) uint32 {
	t.Helper()
	var data [64]byte // struct seccomp_data, with words as bpf.VM reads them
	for at, value := range map[int]uint32{
		callNumber: c.number, callArch: c.arch, callFirst: c.first, callSecond: c.second,
	} {
		binary.BigEndian.PutUint32(data[at:], value)
	}
	verdict, err := vm.Run(data[:])
	if err != nil {
		t.Fatal(err)
	}
	return uint32(verdict)
}

// machine runs the filter of an architecture.
func machine(t *testing.T, arch string, memoryHeld bool) *bpf.VM {
	t.Helper()
	program, err := filterFor(arch, memoryHeld)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(program); n > 1000 { // the kernel takes 4096
		t.Errorf("%s: the filter has %d instructions", arch, n)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// twin judges calls by names alone.
type twin struct {
	names      map[uint32]string
	words      map[string]string
	newest     uint32
	memoryHeld bool
}

func newTwin(t *testing.T, arch string, memoryHeld bool) twin {
	t.Helper()
	w := twin{names: make(map[uint32]string), words: said(t, arch), memoryHeld: memoryHeld}
	for name, number := range tables()[arch] {
		w.names[uint32(number)] = name
		if w.words[name] == sayAllow {
			w.newest = max(w.newest, uint32(number))
		}
	}
	return w
}

func (w twin) judge(c call) uint32 {
	const refused = uint32(unix.SECCOMP_RET_ERRNO)
	when := func(ok bool, no unix.Errno) uint32 {
		if ok {
			return unix.SECCOMP_RET_ALLOW
		}
		return refused | uint32(no)
	}
	name, known := w.names[c.number]
	switch name {
	case "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd":
		return refused | uint32(unix.EPERM)
	case "inotify_init", "inotify_init1", "fanotify_init":
		return refused | uint32(unix.EMFILE)
	case "io_uring_setup", "io_uring_enter", "io_uring_register", "clone3":
		return refused | uint32(unix.ENOSYS)
	case "memfd_create", "memfd_secret", "shmget", "msgget":
		return when(w.memoryHeld, unix.ENOSYS)
	case "get_mempolicy", "set_mempolicy", "mbind":
		return unix.SECCOMP_RET_ALLOW
	case "ioctl":
		return when(c.second != unix.TIOCSTI, unix.EPERM)
	case "fcntl":
		return when(!slices.Contains([]uint32{1024, 1026, 1036, 1040}, c.second), unix.EINVAL)
	case "socket", "socketpair":
		return when(slices.Contains([]uint32{1, 2, 10, 16}, c.first), unix.EAFNOSUPPORT)
	case "clone":
		return when(c.first&0x7e020000 == 0, unix.EPERM)
	case "personality":
		return when(c.first == math.MaxUint32 || c.first&^uint32(0x60008) == 0, unix.EPERM)
	}
	if !known || c.number > w.newest && w.words[name] != sayAllow {
		return refused | uint32(unix.ENOSYS)
	}
	return when(w.words[name] == sayAllow, unix.EPERM)
}

// eachFilter tries the filters of both architectures, with and without a group that holds memory.
func eachFilter(t *testing.T, try func(t *testing.T, vm *bpf.VM, w twin, id uint32)) {
	t.Helper()
	for _, arch := range []string{"amd64", "arm64"} {
		for _, memoryHeld := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, memory held %v", arch, memoryHeld), func(t *testing.T) {
				id, _ := auditArch(arch)
				try(t, machine(t, arch, memoryHeld), newTwin(t, arch, memoryHeld), id)
			})
		}
	}
}

// For every number the kernel's program judges as names do, on each architecture. Of another
// architecture it allows nothing.
func TestTheFilterIsTheList(t *testing.T) {
	t.Parallel()
	const x32 = 0x40000000
	eachFilter(t, func(t *testing.T, vm *bpf.VM, w twin, id uint32) {
		for n := range uint32(2048) {
			for _, number := range []uint32{n, n | x32, n | 1<<31} {
				c := call{arch: id, number: number}
				if got, want := judged(t, vm, c), w.judge(c); got != want {
					t.Errorf("%s %+v: %x, want %x", w.names[number], c, got, want)
				}
				c.arch = unix.AUDIT_ARCH_I386
				if got := judged(t, vm, c); got != unknown {
					t.Errorf("of another architecture: %+v: %x", c, got)
				}
			}
		}
	})
}

// The same with any arguments.
func TestTheFilterLooksAtArguments(t *testing.T) {
	t.Parallel()
	value := rapid.OneOf(
		rapid.Uint32(), rapid.Uint32Range(0, 64), rapid.Uint32Range(1020, 1045),
		rapid.SampledFrom([]uint32{
			unix.TIOCSTI, unix.CLONE_NEWUSER, unix.CLONE_NEWNS | unix.CLONE_VM, unix.CLONE_THREAD,
			0x8, 0x20000, 0x40000, 0x40008, 0x60008, 0x400000, math.MaxUint32,
		}),
	)
	looked := []string{"ioctl", "fcntl", "socket", "socketpair", "clone", "personality"}
	eachFilter(t, func(t *testing.T, vm *bpf.VM, w twin, id uint32) {
		var numbers []uint32
		for _, number := range slices.Sorted(maps.Keys(w.names)) {
			if slices.Contains(looked, w.names[number]) {
				numbers = append(numbers, number)
			}
		}
		number := rapid.OneOf(
			rapid.SampledFrom(numbers), rapid.Uint32Range(0, 600), rapid.Uint32(),
		)
		rapid.Check(t, func(t *rapid.T) {
			c := call{id, number.Draw(t, "number"), value.Draw(t, "first"), value.Draw(t, "second")}
			if got, want := judged(t, vm, c), w.judge(c); got != want {
				t.Fatalf("%s %+v: %x, want %x", w.names[c.number], c, got, want)
			}
		})
	})
}

// What is said here holds whatever a profile says: one that allowed every call would open no keys,
// watches, sockets to the host or namespaces.
func TestOwnRulesOutliveTheProfile(t *testing.T) {
	t.Parallel()
	var open strings.Builder
	for line := range strings.Lines(profile) {
		fields := strings.Fields(line)
		fmt.Fprintln(&open, fields[0], fields[1], fields[2], sayAllow)
	}
	for arch, column := range map[string]int{"amd64": 1, "arm64": 2} {
		for _, memoryHeld := range []bool{true, false} {
			rules, err := readRules(open.String(), column, memoryHeld)
			if err != nil {
				t.Fatal(err)
			}
			w := newTwin(t, arch, memoryHeld)
			for _, name := range w.names {
				w.words[name] = sayAllow
			}
			for number, r := range rules {
				want := w.judge(call{number: number, first: unix.AF_VSOCK, second: unix.TIOCSTI})
				got := r.verdict
				if r.by != nil {
					given := map[uint32]uint32{
						callFirst: unix.AF_VSOCK, callSecond: unix.TIOCSTI,
					}[r.by.at]
					if slices.Contains(r.by.among, given&r.by.mask) {
						got = r.by.verdict
					}
				}
				if got != want {
					t.Errorf("%s: %s: %x, want %x", arch, w.names[number], got, want)
				}
			}
		}
	}
}
