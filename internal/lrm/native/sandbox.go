package native

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
)

const (
	startDir   = "/work" // where a command starts, and its HOME
	tempDir    = "/tmp"
	searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	maxArgs    = 8000 // bubblewrap takes 9000
	openFiles  = 1024 // of each process

	pendingSignals = 1024    // of all processes together
	queuedBytes    = 1 << 16 // in message queues, of all processes together
)

// taken are the paths where the sandbox itself puts something.
func taken() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/dev", "/etc",
	}
}

// sandbox encloses an attempt.
type sandbox struct {
	host      host
	attempt   lrm.Attempt
	processes int
	idle      bool // the processor only when nobody else wants it

	key    string // of its series; empty: it is for this attempt alone
	copied int64  // bytes of inputs that are put into its root
	name   string // of its group, and of its root between two tasks
	queues bool   // it shows the queues of messages
}

// refuse says why the work can be run nowhere, or nothing.
func (s sandbox) refuse() string {
	task := s.attempt.Task
	if len(task.Args) == 0 || task.Args[0] == "" {
		return "the command is empty"
	}
	for _, in := range s.attempt.Inputs {
		for _, p := range taken() {
			if in.SandboxPath == p || strings.HasPrefix(in.SandboxPath, p+"/") {
				return "input " + in.SandboxPath + ": " + p + " belongs to the site; put it elsewhere, " +
					"such as below /in"
			}
		}
	}
	if n := len(task.Args) + 3*len(task.Env) + 3*len(s.attempt.Inputs); n > maxArgs {
		return "too many arguments, variables and inputs; put them into files"
	}
	return ""
}

// prepare makes the root directory and lays it out, and what /etc gets if that is not there for
// all.
func (s sandbox) prepare() error {
	if s.host.held {
		work, bytes := s.attempt.WorkDir(), s.filesInMemory()
		if err := os.MkdirAll(work, 0o700); err != nil {
			return err
		}
		if err := scratch.Mount(work, bytes, lrm.MaxEntries); err != nil {
			return err
		}
	}
	if s.host.sandbox == GVisor {
		if err := layEtc(s.etcDir(), s.host.id()); err != nil {
			return err
		}
	}
	return s.lay()
}

// lay lays out the root directory.
func (s sandbox) lay() error {
	if err := lrm.PrepareDir(s.attempt); err != nil {
		return err
	}
	for _, dir := range []string{startDir, tempDir} {
		if err := os.MkdirAll(filepath.Join(s.attempt.WorkDir(), dir), 0o700); err != nil {
			return err
		}
	}
	if s.key == "" {
		return nil
	}
	return s.placeInputs()
}

// command tells what the runner is to become.
func (s sandbox) command(work *supervise.Enclosure) error {
	if s.host.sandbox == GVisor {
		if err := s.writeBundle(); err != nil {
			return err
		}
		work.Program, work.Args = s.host.gvisor.unshare, s.host.gvisor.arguments(s.attempt.Dir)
		if s.keeps() {
			work.Args = s.host.gvisor.keepArguments()
			return s.writeKeepOrder()
		}
		return nil
	}
	work.Program, work.Args, work.StatusPath = s.host.bwrap, s.arguments(), statusPath(s.attempt)
	s.begin(work)
	work.Filter = s.filter()
	work.Rlimits = rlimits(s.attempt.Limits.OrDefault().DiskBytes)
	return nil
}

// filter is the kernel's program for the command's system calls.
func (s sandbox) filter() []byte { return s.host.filter }

// need holds the limits of the attempt's group: for the command and, with gVisor, its kernel.
func (s sandbox) need() need {
	n := need{
		memory:    s.attempt.Limits.OrDefault().MemoryBytes + s.ownMemory() + s.filesInMemory(),
		processes: s.processes, milliCPUs: s.attempt.Limits.OrDefault().MilliCPUs, idle: s.idle,
	}
	if s.host.sandbox == GVisor {
		n.processes = s.processes*gvisorThreadsEach + gvisorThreads
	}
	return n
}

// ownMemory limits the memory of the sandbox itself, in bytes.
func (s sandbox) ownMemory() int64 {
	if s.keeps() {
		return gvisorMemory + keeperMemory
	}
	if s.host.sandbox == GVisor {
		return gvisorMemory
	}
	return 0
}

// filesInMemory bounds the part of its group's memory that the attempt's files take, in bytes.
func (s sandbox) filesInMemory() int64 {
	if !s.host.held {
		return 0
	}
	return s.attempt.Limits.OrDefault().DiskBytes + s.copied
}

// watchedProcesses limits the attempt's processes as this machine counts them. gVisor
// counts those of the command itself; this bounds its own.
func (s sandbox) watchedProcesses() int {
	if s.host.sandbox == GVisor {
		return s.processes*2 + gvisorProcesses
	}
	return s.processes
}

// environment holds the variables that the command gets besides the task's.
func (s sandbox) environment() [][2]string {
	own := [][2]string{{"PATH", searchPath}, {"HOME", startDir}, {"TMPDIR", tempDir}}
	return append(own, s.attempt.Variables()...)
}

// etcDir holds what an attempt's /etc gets where each has its own.
func (s sandbox) etcDir() string { return filepath.Join(s.attempt.Dir, "etc") }

// statusPath names the file in which bubblewrap tells how the command ended; out of its reach.
func statusPath(a lrm.Attempt) string { return filepath.Join(a.Dir, "bwrap.json") }

// arguments is bubblewrap's command line, without its name and without what it runs.
func (s sandbox) arguments() []string {
	args := append(s.host.flags(), "--bind", s.attempt.WorkDir(), "/")
	args = append(args, "--ro-bind", s.host.etc, etcPath)
	args = append(args, mountArguments(s.host.system)...)
	args = append(
		args, "--dev", "/dev", "--bind", filepath.Join(s.attempt.WorkDir(), tempDir), "/dev/shm",
	)
	if s.queues {
		args = append(args, "--mqueue", queuesPath)
	}
	args = append(args, "--remount-ro", "/dev")
	if s.host.proc {
		args = append(args, procMount()...)
	}
	if s.key == "" { // else they are in the root
		for _, in := range s.attempt.Inputs {
			args = append(args, "--ro-bind", in.HostPath, path.Clean(in.SandboxPath))
		}
	}
	for _, v := range s.environment() {
		args = append(args, "--setenv", v[0], v[1])
	}
	for _, v := range s.attempt.Task.Env {
		args = append(args, "--setenv", v.Name, v.Value)
	}
	if len(s.filter()) > 0 {
		args = append(args, "--seccomp", fmt.Sprint(supervise.FilterFD))
	}
	return append(args, "--chdir", startDir, "--json-status-fd", fmt.Sprint(supervise.StatusFD))
}

// procMount shows a /proc of the sandbox's own that cannot be written to: to the
// kernel a command of root's agent owns the settings in /proc/sys.
func procMount() []string { return []string{"--proc", "/proc", "--remount-ro", "/proc"} }

// shell starts the command in place of itself, with the answers of a shell where
// there is none. It sets what must not bound the sandbox's own making: memory, and
// processes, which are counted inside the sandbox apart from all others, if
// the kernel does that.
func (s sandbox) shell() []string {
	script := ""
	if s.host.sandbox == GVisor { // it bounds by itself
		return []string{"/bin/sh", "-c", `exec "$@"`, "sh"}
	}
	if !s.host.groups.memory() {
		const kib = 10 // bits
		script += fmt.Sprintf("ulimit -d %d; ", max(s.attempt.Limits.OrDefault().MemoryBytes>>kib, 1))
	}
	if s.host.countsInside {
		script += fmt.Sprintf(
			"ulimit -u %d 2>/dev/null || ulimit -p %d 2>/dev/null; ", s.processes, s.processes,
		)
	}
	return []string{"/bin/sh", "-c", script + `exec "$@"`, "sh"}
}
