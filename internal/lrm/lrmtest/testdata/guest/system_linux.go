package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

func systemVerbs() map[string]func(args []string) error {
	return map[string]func(args []string) error{
		"hogShared": hogShared, "hogFile": hogFile, "forks": forks, "zombies": zombies, "daemons": daemons, "sleep": sleep,
		"dial": dial, "terminal": terminal, "devices": devices, "privileges": privileges, "keys": keys, "trace": trace,
		"descriptors": descriptors, "watches": watches, "holds": holds, "ownerless": ownerless,
		"calls": calls, "hide": hide, "leaveQueue": leaveQueue, "leaveConnection": leaveConnection,
	}
}

// hogShared takes memory that it shares with nobody, in a form that is.
func hogShared([]string) error {
	for range 64 {
		block, err := syscall.Mmap(-1, 0, 16<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
		if err != nil {
			return err
		}
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("1 GiB and no end")
}

// hogFile takes memory that is mapped nowhere; where there is none, any.
func hogFile([]string) error {
	name := []byte("hog\x00")
	fd, _, no := syscall.Syscall(memfdCreate(), uintptr(unsafe.Pointer(&name[0])), 0, 0)
	if no == syscall.ENOSYS {
		return hogShared(nil)
	} else if no != 0 {
		return no
	}
	f := os.NewFile(fd, "hog")
	block := make([]byte, 1<<20)
	for range 1 << 10 {
		if _, err := f.Write(block); err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errors.New("1 GiB and no end")
}

// hide writes 16 MiB into files without a name, which are mapped or wait in a socket, until there is
// no space, and tells how much it has hidden.
func hide([]string) error {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	const each = 64 << 10
	for n := range 256 {
		err := hideFile(pair[0], each, n%2 == 0)
		if errors.Is(err, syscall.ENOSPC) {
			fmt.Println(n * each)
			return err
		}
		if err != nil {
			return err
		}
	}
	fmt.Println(256 * each)
	return nil
}

// hideFile hides a file of so many bytes: in the socket, where few have space, or mapped.
func hideFile(socket, bytes int, sent bool) error {
	f, err := os.CreateTemp("/work", "")
	if err != nil {
		return err
	}
	defer f.Close()
	if err = os.Remove(f.Name()); err != nil {
		return err
	}
	if _, err = f.Write(make([]byte, bytes)); err != nil {
		return err
	}
	fd := int(f.Fd())
	if sent && syscall.Sendmsg(socket, []byte{0}, syscall.UnixRights(fd), nil, syscall.MSG_DONTWAIT) == nil {
		return nil
	}
	_, err = syscall.Mmap(fd, 0, bytes, syscall.PROT_READ, syscall.MAP_SHARED)
	return err
}

// memfdCreate is the number of a call that package syscall does not know everywhere.
func memfdCreate() uintptr {
	if runtime.GOARCH == "amd64" {
		return 319
	}
	return 279 // arm64, riscv64, loong64
}

// again starts this program with another verb.
func again(attr *syscall.SysProcAttr, args ...string) (*os.Process, error) {
	return os.StartProcess("/proc/self/exe", append([]string{"guest"}, args...), &os.ProcAttr{Sys: attr, Files: []*os.File{nil, os.Stdout, os.Stderr}})
}

// forks starts itself twice, each of which does the same, for so many generations as
// its argument says: a bomb that spares the machine where a sandbox does not hold it.
func forks(args []string) error {
	left, err := strconv.Atoi(args[0])
	if err != nil || left <= 0 || left > 8 {
		return err
	}
	next := strconv.Itoa(left - 1)
	_, first := again(nil, "forks", next)
	_, second := again(&syscall.SysProcAttr{Setsid: true}, "forks", next)
	time.Sleep(3 * time.Second)
	return errors.Join(first, second)
}

// zombies starts programs and never asks how they ended.
func zombies([]string) error {
	for range 300 {
		if _, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{}); err != nil {
			time.Sleep(time.Second)
			return err
		}
	}
	return errors.New("300 and no end")
}

// daemons leaves programs behind that left its session.
func daemons([]string) error {
	for range 8 {
		if _, err := again(&syscall.SysProcAttr{Setsid: true}, "sleep"); err != nil {
			return err
		}
	}
	return nil
}

func sleep([]string) error {
	time.Sleep(time.Hour)
	return nil
}

// dial tries to reach the host, whose listeners are told as pairs of network and
// address, and networks.
func dial(args []string) error {
	var leaks []string
	for i := 0; i+1 < len(args); i += 2 {
		if c, err := net.DialTimeout(args[i], args[i+1], 2*time.Second); err == nil {
			c.Close()
			leaks = append(leaks, args[i]+" "+args[i+1])
		}
	}
	if c, err := net.DialTimeout("tcp", "192.0.2.1:80", time.Second); err == nil {
		c.Close()
		leaks = append(leaks, "a network")
	}
	for name, family := range map[string]int{"raw": syscall.AF_PACKET, "vsock": 40, "bluetooth": 31} {
		fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
		if err != nil && name == "raw" {
			fd, err = syscall.Socket(family, syscall.SOCK_RAW, 0)
		}
		if err == nil {
			syscall.Close(fd)
			leaks = append(leaks, "a socket: "+name)
		}
	}
	return verdict(leaks)
}

// terminal tries to type into a terminal.
func terminal([]string) error {
	var leaks []string
	fds := []uintptr{0, 1, 2}
	if f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		leaks = append(leaks, "/dev/tty")
		fds = append(fds, f.Fd())
	}
	letter := byte('x')
	for _, fd := range fds {
		if _, _, no := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCSTI, uintptr(unsafe.Pointer(&letter))); no == 0 {
			leaks = append(leaks, fmt.Sprint("typed into ", fd))
		}
	}
	return verdict(leaks)
}

// devices tries to open and make devices of the host.
func devices(args []string) error {
	var leaks []string
	emulated := map[string]bool{"fuse": len(args) > 0, "net/tun": len(args) > 0}
	for _, name := range []string{
		"mem", "kmem", "port", "kmsg", "sda", "vda", "nvme0n1", "dm-0", "loop0", "loop-control", "kvm", "fuse", "net/tun", "mapper/control", "uinput", "vhost-vsock", "rtc0",
	} {
		if emulated[name] {
			continue
		}
		for _, mode := range []int{os.O_RDONLY, os.O_WRONLY} {
			if f, err := os.OpenFile("/dev/"+name, mode, 0); err == nil {
				f.Close()
				leaks = append(leaks, "open "+name)
			}
		}
	}
	for name, number := range map[string]int{"/tmp/mem": 1<<8 | 1, "/tmp/vda": 254 << 8, "/tmp/sda": 8 << 8} {
		for _, kind := range []uint32{syscall.S_IFCHR, syscall.S_IFBLK} {
			if syscall.Mknod(name, kind|0o600, number) != nil {
				continue
			}
			if f, err := os.Open(name); err == nil {
				f.Close()
				leaks = append(leaks, "made "+name)
			}
			os.Remove(name)
		}
	}
	return verdict(leaks)
}

// privileges tries what only root of a machine may.
func privileges(args []string) error {
	var leaks []string
	if _, err := syscall.Klogctl(3, make([]byte, 64)); err == nil && len(args) == 0 {
		leaks = append(leaks, "kernel log")
	}
	for what, try := range map[string]func() error{
		"mount":       func() error { return syscall.Mount("x", "/usr", "tmpfs", 0, "") },
		"remount":     func() error { return syscall.Mount("", "/usr", "", syscall.MS_REMOUNT|syscall.MS_BIND, "") },
		"unmount":     func() error { return syscall.Unmount("/usr", syscall.MNT_DETACH) },
		"chroot":      func() error { return syscall.Chroot("/tmp") },
		"pivot root":  func() error { return syscall.PivotRoot("/", "/tmp") },
		"host name":   func() error { return syscall.Sethostname([]byte("x")) },
		"other user":  func() error { return syscall.Setuid(1) },
		"own a file":  func() error { return syscall.Chown("/tmp", 12, 12) },
		"change /usr": func() error { return os.WriteFile("/usr/mrs-test", nil, 0o644) },
	} {
		if try() == nil {
			leaks = append(leaks, what)
		}
	}
	return verdict(leaks)
}

// keys looks for a key of the owner.
func keys(args []string) error {
	kind, name := []byte("user\x00"), append([]byte(args[0]), 0)
	var leaks []string
	const search, read = 10, 11
	for _, ring := range []int{-1, -2, -3, -4, -5} {
		id, _, no := syscall.Syscall6(syscall.SYS_KEYCTL, search, uintptr(ring), uintptr(unsafe.Pointer(&kind[0])), uintptr(unsafe.Pointer(&name[0])), 0, 0)
		if no == 0 {
			leaks = append(leaks, fmt.Sprintf("key %d on ring %d", id, ring))
		}
	}
	if id, _, no := syscall.Syscall6(syscall.SYS_REQUEST_KEY, uintptr(unsafe.Pointer(&kind[0])), uintptr(unsafe.Pointer(&name[0])), 0, 0, 0, 0); no == 0 {
		leaks = append(leaks, fmt.Sprint("asked for key ", id))
	}
	return verdict(leaks)
}

// trace tries to stop, trace and signal processes of the host.
func trace(args []string) error {
	var leaks []string
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			continue
		}
		if syscall.PtraceAttach(pid) == nil {
			leaks = append(leaks, "traced "+arg)
		}
		if syscall.Kill(pid, 0) == nil {
			leaks = append(leaks, "signalled "+arg)
		}
		if _, err := os.ReadFile("/proc/" + arg + "/maps"); err == nil {
			leaks = append(leaks, "read the memory of "+arg)
		}
	}
	return verdict(leaks)
}

// descriptors tries those that a careless parent may have left open.
func descriptors([]string) error {
	var leaks []string
	for fd := 3; fd < 64; fd++ {
		target, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err == nil && target[0] == '/' && target != "/proc/self/fd" {
			leaks = append(leaks, target)
		}
	}
	return verdict(leaks)
}

// watches takes what the kernel counts for the owner and the jobs together.
func watches(args []string) error {
	var leaks []string
	for range 4 {
		if fd, err := syscall.InotifyInit1(0); err == nil && len(args) == 0 {
			leaks = append(leaks, fmt.Sprint("watch ", fd))
		} else if err != nil && err != syscall.EMFILE {
			leaks = append(leaks, "no watch: "+err.Error())
		}
	}
	return verdict(leaks)
}

// holds tries what would stop or tell others who read the same files.
func holds(args []string) error {
	var leaks []string
	for _, name := range args {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		lives := uint64(2)
		for what, call := range map[string][2]uintptr{
			"read lease":  {syscall.F_SETLEASE, syscall.F_RDLCK},
			"write lease": {syscall.F_SETLEASE, syscall.F_WRLCK},
			"delegation":  {1040, uintptr(unsafe.Pointer(&[2]uint32{0, syscall.F_RDLCK}))},
			"notice":      {syscall.F_NOTIFY, 1},
			"hint":        {1036, uintptr(unsafe.Pointer(&lives))},
		} {
			if _, _, no := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), call[0], call[1]); no == 0 {
				leaks = append(leaks, what+" of "+name)
			}
		}
	}
	return verdict(leaks)
}

// ownerless takes memory that belongs to no process, so that no look at processes finds it.
func ownerless([]string) error {
	var leaks []string
	name := []byte("hidden\x00")
	for what, call := range map[string][4]uintptr{
		"file in memory": {memfdCreate(), uintptr(unsafe.Pointer(&name[0])), 0, 0},
		"segment":        {syscall.SYS_SHMGET, 0, 1 << 20, 0o600},
		"queue":          {syscall.SYS_MSGGET, 0, 0o600, 0},
	} {
		if id, _, no := syscall.Syscall(call[0], call[1], call[2], call[3]); no == 0 {
			leaks = append(leaks, fmt.Sprint(what, " ", id))
		}
	}
	return verdict(leaks)
}

// calls makes system calls, by number, with arguments that are good for nothing, and prints how
// each ended.
func calls(args []string) error {
	for _, arg := range args {
		number, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		bad := ^uintptr(0)
		_, _, no := syscall.RawSyscall6(uintptr(number), bad, bad, bad, bad, bad, bad)
		fmt.Println(number, int(no))
	}
	return nil
}

// strangeFiles leaves what is neither a file nor a directory.
func strangeFiles() bool {
	syscall.Mknod("/out/device", syscall.S_IFCHR|0o600, 1<<8|3)
	if l, err := net.Listen("unix", "/out/socket"); err == nil {
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
	}
	syscall.Mkfifo("/out/pipe", 0o600)
	return syscall.Mkfifo("/out/pipes/pipe", 0o600) == nil
}

// burrow makes directories in each other and goes into them, so that no name is
// ever too long.
func burrow(name string) error {
	if err := os.Mkdir(name, 0o755); err != nil {
		return err
	}
	if err := syscall.Chdir(name); err != nil {
		return err
	}
	for {
		if err := syscall.Mkdir("d", 0o755); err != nil {
			return err
		}
		if err := syscall.Chdir("d"); err != nil {
			return err
		}
	}
}

// leaveQueue makes a queue of messages, which stays without a process.
func leaveQueue([]string) error {
	name, _ := syscall.BytePtrFromString(".left")
	attributes := [8]int64{1: 1, 2: 16} // one message of 16 bytes
	fd, _, errno := syscall.Syscall6(syscall.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)),
		syscall.O_CREAT|syscall.O_RDWR, 0o600, uintptr(unsafe.Pointer(&attributes)), 0, 0)
	if errno != 0 {
		return errno
	}
	return syscall.Close(int(fd))
}

// leaveConnection closes a connection, whose port stays taken for a minute.
func leaveConnection([]string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	far, err := listener.Accept()
	return errors.Join(err, near.Close(), far.Close(), listener.Close())
}
