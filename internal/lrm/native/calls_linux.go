package native

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// profile is the list of system calls that commands may make: a line for each, with its numbers on
// amd64 and arm64, - for none, and what is said of it. It is the containers' default profile for a
// program without capabilities. TestTheListIsTheProfiles compares it, and writes it with -update.
//
//go:embed calls.txt
var profile string

// What the profile says of a system call.
const (
	sayAllow    = "allow"
	sayRefuse   = "refuse"
	sayUnknown  = "unknown"  // refused as if the kernel did not have it
	sayArgument = "argument" // it depends on an argument
)

// The kernel's verdicts.
const (
	allow   = uint32(unix.SECCOMP_RET_ALLOW)
	refuse  = uint32(unix.SECCOMP_RET_ERRNO)
	denied  = refuse | uint32(unix.EPERM)
	unknown = refuse | uint32(unix.ENOSYS)
)

// rule tells the kernel how to end a system call.
type rule struct {
	verdict uint32    // unless the argument says otherwise
	by      *argument // nil = every call has the same verdict
}

// argument lets 32 bits of a system call's argument decide.
type argument struct {
	at      uint32 // place in what a filter sees
	mask    uint32 // the bits that count
	among   []uint32
	verdict uint32 // if they are among these
}

// among is the rule that gives one verdict if an argument is among some values, and else another.
func among(at uint32, values []uint32, verdict, other uint32) rule {
	return rule{other, &argument{at, math.MaxUint32, values, verdict}}
}

// rulesOf lists what commands may call on an architecture, by number: the profile's list and, above
// it, what is said here. A number that is not in it is unknown.
func rulesOf(arch string, memoryHeld bool) (map[uint32]rule, error) {
	column, ok := map[string]int{"amd64": 1, "arm64": 2}[arch]
	if !ok {
		return nil, fmt.Errorf("no list of system calls for %s", arch)
	}
	return readRules(profile, column, memoryHeld)
}

// readRules reads a list, with the numbers of one column. Calls newer than all that it allows are
// left out, so that they are unknown: a library then does without them, which it does not when they
// are denied.
func readRules(list string, column int, memoryHeld bool) (map[uint32]rule, error) {
	said := map[string]rule{
		sayAllow: {verdict: allow}, sayRefuse: {verdict: denied}, sayUnknown: {verdict: unknown},
	}
	own, rules, newest := ownRules(memoryHeld), make(map[uint32]rule), uint32(0)
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			return nil, fmt.Errorf("list of system calls: %q: want a name, two numbers and a word",
				line)
		}
		if fields[column] == "-" {
			continue
		}
		number, err := strconv.ParseUint(fields[column], 10, 16)
		if err != nil {
			return nil, fmt.Errorf("list of system calls: %q: number: %w", line, err)
		}
		r, decided := own[fields[0]]
		if !decided {
			r, decided = said[fields[3]]
		}
		if !decided {
			return nil, fmt.Errorf("list of system calls: %q: nothing decides it", line)
		}
		rules[uint32(number)] = r
		if fields[3] == sayAllow {
			newest = max(newest, uint32(number))
		}
	}
	maps.DeleteFunc(rules, func(number uint32, r rule) bool {
		return number > newest && r.verdict == denied
	})
	return rules, nil
}

// ownRules are those that differ from the profile's, or must stay whatever a later profile says: it
// is made for containers, each of which is its owner's, with a network of its own.
func ownRules(memoryHeld bool) map[string]rule {
	rules := map[string]rule{
		"ioctl":       among(callSecond, []uint32{unix.TIOCSTI}, denied, allow),
		"fcntl":       among(callSecond, sharedHolds(), refuse|uint32(unix.EINVAL), allow),
		"socket":      among(callFirst, families(), allow, refuse|uint32(unix.EAFNOSUPPORT)),
		"socketpair":  among(callFirst, families(), allow, refuse|uint32(unix.EAFNOSUPPORT)),
		"personality": among(callFirst, personalities(), allow, denied),
		// Its flags are behind an address, where a filter cannot look. Libraries then use clone.
		"clone3": {verdict: unknown},
		"clone":  {denied, &argument{callFirst, namespaceFlags, []uint32{0}, allow}},
	}
	all := func(verdict uint32, names ...string) {
		for _, name := range names {
			rules[name] = rule{verdict: verdict}
		}
	}
	all(denied, "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd")
	// The kernel counts watches together with the owner's. Programs know that there may be no more.
	all(refuse|uint32(unix.EMFILE), "inotify_init", "inotify_init1", "fanotify_init")
	// They make sockets past this filter.
	all(unknown, "io_uring_setup", "io_uring_enter", "io_uring_register")
	// They place a program's own memory on a machine with several memories, which any program may.
	all(allow, "get_mempolicy", "set_mempolicy", "mbind")
	if !memoryHeld {
		all(unknown, "memfd_create", "memfd_secret", "shmget", "msgget")
	}
	return rules
}

// namespaceFlags are those of clone that make namespaces. In one of users a command would have
// every capability, and with it the parts of the kernel with the most holes.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// families are the kinds of sockets that namespaces enclose.
func families() []uint32 {
	return []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
}

// personalities are those of the profile, each also with addresses that chance does not change:
// debuggers and some languages start programs so.
func personalities() []uint32 {
	const linux32, uname26, fixedAddresses, ask = 0x8, 0x20000, 0x40000, math.MaxUint32
	values := []uint32{ask}
	for _, p := range []uint32{0, linux32, uname26, linux32 | uname26} {
		values = append(values, p, p|fixedAddresses)
	}
	return values
}

// sharedHolds are the commands of fcntl by which one command could stop another, or tell it
// something, through a file that both may only read: inputs, and what all see of the system, belong
// to the user that both are to the kernel. A lease lets the next one that opens the file wait for
// most of a minute, a notice tells that it is read, and a hint of how long it lives stays with it.
func sharedHolds() []uint32 {
	const setDelegation = 1040 // a lease, also of a directory, since Linux 6.19
	return []uint32{unix.F_SETLEASE, unix.F_NOTIFY, unix.F_SET_RW_HINT, setDelegation}
}
