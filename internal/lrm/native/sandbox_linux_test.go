package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// boxed is a sandbox of a command in a directory of its own.
func boxed(t *testing.T, kind string, args ...string) sandbox {
	t.Helper()
	id := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: 1}
	return sandbox{
		host: host{
			sandbox: kind, bwrap: "/opt/bwrap", proc: true, noMoreUsers: true,
			filter: []byte("filter"),
			gvisor: gvisor{runsc: "/opt/runsc", unshare: "/opt/unshare", flags: []string{"--flag"}},
			system: []systemPath{{path: "/usr", host: "/usr"}, {path: "/bin", link: "usr/bin"}},
		},
		attempt: lrm.Attempt{
			ID: id, Dir: t.TempDir(), Limits: lrm.Limits{MemoryBytes: 3 << 20, DiskBytes: 5 << 20},
			Task: grid.Task{ID: id.Task, Args: args},
		},
		processes: 7,
	}
}

// put writes a file of an attempt.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// holds reads a whole file.
func holds(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// same compares two lists.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// No command, an input where the site has something, and more words than bubblewrap takes are
// refused, each with its reason; all else is not.
func TestWorkThatIsRefused(t *testing.T) {
	t.Parallel()
	many := func(args, env, inputs int) func(*sandbox) {
		return func(s *sandbox) {
			s.attempt.Task.Args = slices.Repeat([]string{"x"}, args)
			s.attempt.Task.Env = make([]grid.EnvVar, env)
			s.attempt.Inputs = slices.Repeat([]lrm.Bind{{SandboxPath: "/in/x"}}, inputs)
		}
	}
	at := func(path string) func(*sandbox) {
		return func(s *sandbox) {
			s.attempt.Inputs = []lrm.Bind{{SandboxPath: "/in"}, {SandboxPath: path}}
		}
	}
	const empty = "the command is empty"
	const full = "too many arguments, variables and inputs; put them into files"
	cases := map[string]struct {
		change func(*sandbox)
		want   string
	}{
		"a command":   {func(*sandbox) {}, ""},
		"none":        {func(s *sandbox) { s.attempt.Task.Args = nil }, empty},
		"an empty":    {func(s *sandbox) { s.attempt.Task.Args = []string{"", "x"} }, empty},
		"its input":   {at("/in/usr"), ""},
		"beside /usr": {at("/usr2"), ""},
		"words":       {many(maxArgs, 0, 0), ""}, "a word more": {many(maxArgs+1, 0, 0), full},
		"variables": {many(maxArgs-30, 10, 0), ""}, "inputs": {many(maxArgs-30, 0, 10), ""},
		"a word more than variables": {many(maxArgs-29, 10, 0), full},
		"a word more than inputs":    {many(maxArgs-29, 0, 10), full},
	}
	for _, own := range taken() {
		for _, path := range []string{own, own + "/x"} {
			cases[path] = struct {
				change func(*sandbox)
				want   string
			}{
				at(path), "input " + path + ": " + own + " belongs to the site; " +
					"put it elsewhere, such as below /in",
			}
		}
	}
	for name, c := range cases {
		s := boxed(t, Bubblewrap, "true")
		if c.change(&s); s.refuse() != c.want {
			t.Errorf("%s: %q, want %q", name, s.refuse(), c.want)
		}
	}
}

// The directories and the /etc that a command finds are there before it starts.
func TestWhatACommandFinds(t *testing.T) {
	t.Parallel()
	for kind, id := range map[string]string{Bubblewrap: "65534", GVisor: "0"} {
		s := boxed(t, kind, "true")
		dirs := []string{"work", "work/work", "work/tmp"}
		etc := filepath.Join(s.attempt.Dir, "etc")
		if kind == GVisor {
			dirs = append(dirs, "etc")
		} else {
			etc = filepath.Join(t.TempDir(), "etc")
		}
		for range 2 { // also when they are there already
			err := s.prepare()
			if kind == Bubblewrap {
				err = errors.Join(err, s.host.shareEtc(etc))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range map[string]string{
			"passwd": "nobody:x:" + id + ":" + id + ":nobody:/work:/bin/sh\n",
			"group":  "nogroup:x:" + id + ":\n", "hosts": "127.0.0.1 localhost\n",
		} {
			if got := holds(t, filepath.Join(etc, name)); got != want {
				t.Errorf("%s: /etc/%s is %q, want %q", kind, name, got, want)
			}
		}
		for _, dir := range dirs {
			if info, err := os.Stat(filepath.Join(s.attempt.Dir, dir)); err != nil ||
				info.Mode() != os.ModeDir|0o700 {
				t.Errorf("%s: %s is %v, %v", kind, dir, info, err)
			}
		}
	}
	for _, name := range []string{"work", "etc"} {
		s := boxed(t, GVisor, "true")
		put(t, filepath.Join(s.attempt.Dir, name), "")
		if err := s.prepare(); err == nil {
			t.Errorf("%s is a file, and all is prepared", name)
		}
	}
	for _, name := range []string{"work/work", "etc/hosts"} {
		s := boxed(t, GVisor, "true")
		if err := s.prepare(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(s.attempt.Dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if name == "etc/hosts" {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		} else {
			put(t, path, "")
		}
		if err := s.prepare(); err == nil {
			t.Errorf("%s is in the way, and all is prepared", name)
		}
	}
}

// The /etc that all share has a place for what of the system is mounted there, and what
// somebody changed in it is put right.
func TestTheEtcThatAllShare(t *testing.T) {
	t.Parallel()
	s := boxed(t, Bubblewrap, "true")
	cache := filepath.Join(t.TempDir(), "cache")
	put(t, cache, "of the host")
	s.host.system = append(s.host.system,
		systemPath{path: "/etc/alternatives", host: t.TempDir()},
		systemPath{path: "/etc/ld.so.cache", host: cache},
	)
	dir := filepath.Join(t.TempDir(), "state", "etc")
	for range 2 {
		if err := s.host.shareEtc(dir); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "passwd"), "somebody")
	}
	if err := s.host.shareEtc(dir); err != nil || s.host.etc != dir {
		t.Errorf("it is at %q, %v", s.host.etc, err)
	}
	if got := holds(t, filepath.Join(dir, "passwd")); !strings.HasPrefix(got, "nobody:x:65534:") {
		t.Errorf("/etc/passwd is %q", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var has []string
	for _, e := range entries {
		has = append(has, e.Name()+" "+e.Type().String())
	}
	same(t, "entries", has, []string{
		"alternatives d---------", "group ----------", "hosts ----------", "ld.so.cache ----------",
		"passwd ----------",
	})
	if got := holds(t, filepath.Join(dir, "ld.so.cache")); got != "" {
		t.Errorf("the place of the loader's cache holds %q", got)
	}
	s.host.system = append(s.host.system, systemPath{path: "/etc/none", host: cache + "/none"})
	if s.host.shareEtc(dir) == nil {
		t.Error("what is not there has a place")
	}
	if s.host.shareEtc(cache) == nil {
		t.Error("a file is an /etc")
	}
	swapped := systemPath{path: "/etc/alternatives", host: cache}
	s.host.system = []systemPath{swapped}
	if err := s.host.shareEtc(dir); err == nil ||
		!strings.Contains(err.Error(), filepath.Join(dir, "alternatives")) {
		t.Errorf("a directory is the place of a file: %v", err)
	}
}

// What bubblewrap is told: namespaces, mounts in their order, variables, and the command behind
// the shell that bounds it.
func TestWhatBubblewrapIsTold(t *testing.T) {
	t.Parallel()
	s := boxed(t, Bubblewrap, "prog", "arg")
	s.attempt.Task.Env = []grid.EnvVar{{Name: "A", Value: "1"}}
	s.attempt.Inputs = []lrm.Bind{{SandboxPath: "/in//x", HostPath: "/host/x"}}
	s.host.etc = "/state/etc"
	dir := s.attempt.Dir
	want := slices.Concat(
		[]string{
			"--die-with-parent", "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534",
			"--cap-drop", "ALL", "--new-session", "--hostname", "sandbox", "--disable-userns",
			"--bind", dir + "/work", "/", "--ro-bind", "/state/etc", "/etc",
			"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
			"--dev", "/dev", "--bind", dir + "/work/tmp", "/dev/shm", "--remount-ro", "/dev",
			"--proc", "/proc", "--remount-ro", "/proc", "--ro-bind", "/host/x", "/in/x",
			"--setenv", "PATH", searchPath, "--setenv", "HOME", "/work", "--setenv", "TMPDIR", "/tmp",
			"--setenv", "MRS_CKPT_DIR", "/ckpt",
			"--setenv", "A", "1",
		},
		[]string{"--seccomp", "4", "--chdir", "/work", "--json-status-fd", "3"},
	)
	same(t, "arguments", s.arguments(), want)
	unfiltered := s
	unfiltered.host.filter = nil
	same(t, "without a filter", unfiltered.arguments(), slices.DeleteFunc(
		slices.Clone(want), func(a string) bool { return a == "--seccomp" || a == "4" },
	))
	s.host.proc, s.host.noMoreUsers = false, false
	less := slices.Concat(want[:12], want[13:])
	at := slices.Index(less, "--proc")
	same(t, "without /proc", s.arguments(), slices.Concat(less[:at], less[at+4:]))

	var e supervise.Enclosure
	if err := s.command(&e); err != nil {
		t.Fatal(err)
	}
	if e.Program != "/opt/bwrap" || e.StatusPath != dir+"/bwrap.json" ||
		!slices.Equal(e.Args, s.arguments()) || !slices.Equal(e.Filter, s.filter()) {
		t.Errorf("it becomes %+v", e)
	}
	same(t, "command", e.Command,
		[]string{"--", "/bin/sh", "-c", `ulimit -d 3072; exec "$@"`, "sh", "prog", "arg"})
	same(t, "limits", e.Rlimits, map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 1024, unix.RLIMIT_FSIZE: 5 << 20,
		unix.RLIMIT_SIGPENDING: 1024, unix.RLIMIT_MSGQUEUE: 1 << 16,
	})
	same(t, "limits of nothing", rlimits(-1)[unix.RLIMIT_FSIZE], uint64(0))
}

// The shell bounds what nothing else does: memory where no group holds it, processes where the
// kernel counts them inside.
func TestWhatTheShellBounds(t *testing.T) {
	t.Parallel()
	memory := groups{{controllers: []string{ctlMemory}}}
	const processes = "ulimit -u 7 2>/dev/null || ulimit -p 7 2>/dev/null; "
	for _, c := range []struct {
		change func(*sandbox)
		want   string
	}{
		{func(*sandbox) {}, `ulimit -d 3072; exec "$@"`},
		{func(s *sandbox) { s.attempt.Limits.MemoryBytes = 1 }, `ulimit -d 1; exec "$@"`},
		{func(s *sandbox) { s.host.groups = memory }, `exec "$@"`},
		{func(s *sandbox) { s.host.countsInside = true }, "ulimit -d 3072; " + processes + `exec "$@"`},
		{
			func(s *sandbox) { s.host.groups, s.host.countsInside = memory, true },
			processes + `exec "$@"`,
		},
		{func(s *sandbox) { s.host.sandbox, s.host.countsInside = GVisor, true }, `exec "$@"`},
	} {
		s := boxed(t, Bubblewrap)
		c.change(&s)
		same(t, "shell", s.shell(), []string{"/bin/sh", "-c", c.want, "sh"})
	}
}

// A program of the system begins without a shell, bounded at a gate or by its group; all else
// has the shell's answers.
func TestHowACommandBegins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "text"), "#!/bin/sh")
	put(t, filepath.Join(dir, "shut"), elfMagic)
	put(t, filepath.Join(dir, "mine"), elfMagic)
	put(t, filepath.Join(dir, "prog"), elfMagic)
	put(t, filepath.Join(dir, "short"), "\x7f")
	for name, mode := range map[string]os.FileMode{
		"text": 0o755, "prog": 0o755, "short": 0o755, "mine": 0o744,
	} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	hidden := filepath.Join(t.TempDir(), "prog")
	for link, to := range map[string]string{
		"link": "prog", "out": hidden, "round": "round", "back": filepath.Join(dir, "link"),
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "prog"), hidden); err != nil {
		t.Fatal(err)
	}
	memory := groups{{controllers: []string{ctlMemory}}}
	for _, c := range []struct {
		name   string
		change func(*sandbox)
		direct bool
		limits map[int]uint64
	}{
		{dir + "/prog", func(*sandbox) {}, true, map[int]uint64{unix.RLIMIT_DATA: 64 << 20}},
		{
			dir + "/link", func(s *sandbox) { s.host.countsInside = true }, true,
			map[int]uint64{unix.RLIMIT_DATA: 64 << 20, unix.RLIMIT_NPROC: 7},
		},
		{
			dir + "/back",
			func(s *sandbox) { s.host.groups, s.host.countsInside = memory, true }, true,
			map[int]uint64{unix.RLIMIT_NPROC: 7},
		},
		{dir + "/prog", func(s *sandbox) { s.host.groups = memory }, true, nil},
		{dir + "/prog", func(s *sandbox) { s.attempt.Limits.MemoryBytes = 16<<20 - 1 }, false, nil},
		{dir + "//prog", func(*sandbox) {}, false, nil},
		{dir + "/text", func(*sandbox) {}, false, nil},
		{dir + "/short", func(*sandbox) {}, false, nil},
		{dir + "/shut", func(*sandbox) {}, false, nil},
		{dir + "/mine", func(*sandbox) {}, false, nil},
		{dir + "/none", func(*sandbox) {}, false, nil},
		{dir + "/out", func(*sandbox) {}, false, nil},
		{dir + "/round", func(*sandbox) {}, false, nil},
		{hidden, func(*sandbox) {}, false, nil},
		{dir, func(*sandbox) {}, false, nil},
		{"none-of-that-name", func(*sandbox) {}, false, nil},
		{"sh", func(s *sandbox) {
			s.attempt.Task.Env = []grid.EnvVar{{Name: "PATH", Value: dir}}
		}, false, nil},
	} {
		s := boxed(t, Bubblewrap, c.name, "arg")
		s.attempt.Limits.MemoryBytes = 64 << 20
		s.host.system = append(s.host.system, systemPath{path: dir, host: dir})
		c.change(&s)
		var e supervise.Enclosure
		s.begin(&e)
		shell := slices.Concat([]string{"--"}, s.shell(), []string{c.name, "arg"})
		switch {
		case c.limits != nil:
			same(t, c.name, e, supervise.Enclosure{Command: shell, Gate: &supervise.Gate{
				Command: []string{"--block-fd", "5", "--info-fd", "6", "--", c.name, "arg"},
				Rlimits: c.limits,
			}})
		case c.direct:
			same(t, c.name, e, supervise.Enclosure{Command: []string{"--", c.name, "arg"}})
		default:
			same(t, c.name, e, supervise.Enclosure{Command: shell})
		}
	}
	s := boxed(t, Bubblewrap, "env")
	s.attempt.Limits.MemoryBytes, s.host.system = 64<<20, systemPaths()
	if !s.isDirect() {
		t.Error("env of the system has a shell before it")
	}
}

// Whose root stands in a directory is told by bubblewrap's own arguments, and not by those of
// what it runs.
func TestWhoseRootIsInADirectory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"bwrap", "--bind", "/state/a/work", "/", "--", "true"}, true},
		{[]string{"bwrap", "--x", "--bind", "/state/a", "/"}, true},
		{[]string{"bwrap", "--bind", "/state/a/work", "/tmp", "--", "true"}, false},
		{[]string{"bwrap", "--bind", "/state", "/", "--", "true"}, false},
		{[]string{"bwrap", "--bind", "/stateless/a", "/", "--", "true"}, false},
		{[]string{"bwrap", "--", "bwrap", "--bind", "/state/a", "/"}, false},
		{[]string{"bwrap", "--bind", "/state/a"}, false},
		{[]string{""}, false},
	} {
		if got := hasRootIn(c.args, "/state"); got != c.want {
			t.Errorf("%q: %t", c.args, got)
		}
	}
	s := boxed(t, Bubblewrap, "true")
	if !hasRootIn(append([]string{"bwrap"}, s.arguments()...), filepath.Dir(s.attempt.Dir)) {
		t.Error("an attempt's own arguments do not tell it")
	}
}

// What a group must hold is the command's, and with gVisor its kernel's besides.
func TestWhatAGroupMustHold(t *testing.T) {
	t.Parallel()
	s := boxed(t, Bubblewrap)
	s.attempt.Limits.MilliCPUs, s.idle = 1500, true
	if got, want := s.need(), (need{3 << 20, 7, 1500, true}); got != want ||
		s.watchedProcesses() != 7 || s.ownMemory() != 0 {
		t.Errorf("%+v, want %+v; %d processes, %d bytes", got, want, s.watchedProcesses(), s.ownMemory())
	}
	s.host.sandbox, s.attempt.Limits, s.idle = GVisor, lrm.Limits{}, false
	if got, want := s.need(), (need{1<<30 + 64<<20, 7*32 + 256, 1000, false}); got != want ||
		s.watchedProcesses() != 7*2+32 || s.ownMemory() != 64<<20 {
		t.Errorf("%+v, want %+v; %d processes, %d bytes", got, want, s.watchedProcesses(), s.ownMemory())
	}
}

// What gVisor is told is in the bundle, and what starts it gives it namespaces of its own.
func TestWhatGVisorIsTold(t *testing.T) {
	t.Parallel()
	s := boxed(t, GVisor, "prog", "arg")
	s.attempt.Task.Env = []grid.EnvVar{{Name: "A", Value: "1"}}
	s.attempt.Inputs = []lrm.Bind{{SandboxPath: "/in//x", HostPath: "/host/x"}}
	dir := s.attempt.Dir
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	var e supervise.Enclosure
	for range 2 { // also when its links are there already
		if err := s.command(&e); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "arguments", e, supervise.Enclosure{Program: "/opt/unshare", Args: []string{
		"--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=KILL",
		"--net", "--ipc", "--uts", "/opt/runsc", "--root", dir + "/runsc", "--log", dir + "/runsc.log",
		"--flag", "run", "--bundle", dir + "/bundle", "--pid-file", dir + "/runsc.pid", "job",
	}})
	var got bundle
	if err := json.Unmarshal([]byte(holds(t, dir+"/bundle/config.json")), &got); err != nil {
		t.Fatal(err)
	}
	limit := func(name string, n uint64) bundleResource { return bundleResource{name, n, n} }
	mount := func(from, to, way string) bundleMount {
		return bundleMount{Destination: to, Type: "bind", Source: from, Options: []string{"bind", way}}
	}
	same(t, "bundle", got, bundle{
		Version: "1.0.2", Hostname: "sandbox", Root: bundleRoot{Path: dir + "/work"},
		Process: bundleProcess{
			User: map[string]int{"uid": 0, "gid": 0}, Cwd: "/work", NoNew: true,
			Args: []string{"/bin/sh", "-c", `exec "$@"`, "sh", "prog", "arg"},
			Env: []string{
				"PATH=" + searchPath, "HOME=/work", "TMPDIR=/tmp", "MRS_CKPT_DIR=/ckpt", "A=1",
			},
			Rlimits: []bundleResource{
				limit("RLIMIT_NPROC", 7), limit("RLIMIT_NOFILE", 1024), limit("RLIMIT_CORE", 0),
				limit("RLIMIT_FSIZE", 5<<20),
			},
		},
		Mounts: []bundleMount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs"},
			mount("/usr", "/usr", "ro"), mount(dir+"/etc/passwd", "/etc/passwd", "ro"),
			mount(dir+"/etc/group", "/etc/group", "ro"), mount(dir+"/etc/hosts", "/etc/hosts", "ro"),
			mount(dir+"/work/tmp", "/tmp", "rw"), mount(dir+"/work/tmp", "/dev/shm", "rw"),
			mount("/host/x", "/in/x", "ro"),
		},
		Linux: bundleLinux{Namespaces: []map[string]string{
			{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"},
		}},
	})
	if to, err := os.Readlink(dir + "/work/bin"); err != nil || to != "usr/bin" {
		t.Errorf("/bin leads to %q, %v", to, err)
	}
	s.processes, s.attempt.Limits.DiskBytes = 0, -1
	same(t, "least limits", s.bundleRlimits(), []bundleResource{
		limit("RLIMIT_NPROC", 1), limit("RLIMIT_NOFILE", 1024), limit("RLIMIT_CORE", 0),
		limit("RLIMIT_FSIZE", 0),
	})
	for name, spoil := range map[string]func(*sandbox){
		"a link that cannot be made": func(s *sandbox) { s.host.system[1].path = "/none/bin" },
		"a file in its place":        func(s *sandbox) { put(t, s.attempt.Dir+"/bundle", "") },
	} {
		s := boxed(t, GVisor, "prog")
		if err := s.prepare(); err != nil {
			t.Fatal(err)
		}
		if spoil(&s); s.command(&e) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// How a command ended is told by the sandbox, and what was to blame by what the kernel counted
// and the command said; where the sandbox tells nothing it is the site's own fault.
func TestWhatWasToBlame(t *testing.T) {
	t.Parallel()
	const memory = "wanted more than its 3.0 MiB of memory"
	const disk = "wanted more than its 5.0 MiB of disk"
	ended := func(code int) supervise.Report {
		return supervise.Report{Cause: grid.CauseExited, Code: code}
	}
	exited := ended(0)
	for name, c := range map[string]struct {
		own            supervise.Report // of the runner
		status, stderr string
		wrong          string
		starved        bool
		want           supervise.Report
	}{
		"well":           {exited, "0", "out of memory", "", false, exited},
		"well, and yet":  {exited, "0", "", "", true, exited},
		"its own end":    {exited, "7", "x", "", false, ended(7)},
		"128":            {exited, "128", "", "", false, ended(128)},
		"no such signal": {exited, "160", "", "", false, ended(160)},
		"a signal": {
			exited, "129", "", "", false,
			supervise.Report{Cause: grid.CauseExited, Code: 129, Text: "killed by signal 1 (hangup)"},
		},
		"the last signal": {
			exited, "159", "", "", false,
			supervise.Report{
				Cause: grid.CauseExited, Code: 159, Text: "killed by signal 31 (bad system call)",
			},
		},
		"a file too large": {
			exited, "153", "", "", false,
			supervise.Report{Cause: grid.CauseDisk, Code: 153, Text: disk + "; it ended with code 153"},
		},
		"a word for it": {
			exited, "1", "dd: File too large", "", false,
			supervise.Report{Cause: grid.CauseDisk, Code: 1, Text: disk + "; it ended with code 1"},
		},
		"another word for it": {
			exited, "1", "file size limit exceeded", "", false,
			supervise.Report{Cause: grid.CauseDisk, Code: 1, Text: disk + "; it ended with code 1"},
		},
		"memory by the kernel": {
			exited, "137", "", "", true,
			supervise.Report{Cause: grid.CauseMemory, Text: memory + "; it ended with code 137"},
		},
		"memory before disk": {
			exited, "2", "Cannot allocate memory; File too large", "", false,
			supervise.Report{Cause: grid.CauseMemory, Text: memory + "; it ended with code 2"},
		},
		"more words": {
			exited, "2", "MemoryError", "", false,
			supervise.Report{Cause: grid.CauseMemory, Text: memory + "; it ended with code 2"},
		},
		"others": {
			exited, "2", "std::bad_alloc", "", false,
			supervise.Report{Cause: grid.CauseMemory, Text: memory + "; it ended with code 2"},
		},
		"and others": {
			exited, "2", "sh: out of memory", "", false,
			supervise.Report{Cause: grid.CauseMemory, Text: memory + "; it ended with code 2"},
		},
		"killed with its sandbox": {
			supervise.Report{Cause: grid.CauseSignal, Code: 9},
			"", "", "", true,
			supervise.Report{Cause: grid.CauseMemory, Text: memory},
		},
		"no sandbox": {
			exited, "", "bwrap: Can't mkdir /home/me: no\nmore", "", false,
			supervise.Report{
				Cause: grid.CauseSandbox,
				Text:  "the sandbox could not be made or was killed: bwrap: Can't mkdir",
			},
		},
		"no sandbox, and no words": {
			supervise.Report{Cause: grid.CauseSignal, Text: "signal: killed"},
			"", "", "", false,
			supervise.Report{
				Cause: grid.CauseSandbox, Text: "the sandbox could not be made or was killed: signal: killed",
			},
		},
		"refused": {
			exited, "", "", "no", false, supervise.Report{Cause: grid.CauseBadWork, Text: "no"},
		},
		"stopped": {
			supervise.Report{Cause: grid.CauseStopped, Text: "why"},
			"0", "", "no", true,
			supervise.Report{Cause: grid.CauseStopped, Text: "why"},
		},
	} {
		s := boxed(t, Bubblewrap)
		s.attempt.OutputPaths = []string{"/out"}
		if err := s.prepare(); err != nil {
			t.Fatal(err)
		}
		put(t, s.attempt.StdoutPath(), "printed")
		put(t, s.attempt.WorkDir()+"/out", "22")
		if c.stderr != "" {
			put(t, s.attempt.StderrPath(), c.stderr)
		}
		if c.status != "" {
			status := `{"child-pid":1}` + "\nx\n" + `{"exit-code":` + c.status + "}\n" + `{"exit-code":9}`
			put(t, statusPath(s.attempt), status)
		}
		e := ending{
			attempt: s.attempt, sandbox: Bubblewrap, wrong: c.wrong, starved: c.starved,
			end: supervise.Ending{Report: c.own, Wall: time.Minute},
		}
		if got := e.report(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		r := e.result()
		if r.Exit.Cause != c.want.Cause || r.Exit.Code != c.want.Code || r.Exit.Text != c.want.Text ||
			r.Exit.Wall != time.Minute || r.Stdout.Bytes != 7 || len(r.Outputs) != 1 ||
			(r.Stderr.Bytes > 0) != (c.stderr != "" && c.want.Cause != grid.CauseSandbox) {
			t.Errorf("%s: the result is %+v", name, r)
		}
	}
}

// gVisor tells a command's end by its own, once it has started the command and unless it failed
// itself.
func TestWhatGVisorTells(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause   grid.ExitCause
		started bool
		log     string
		told    bool
	}{
		"ended":       {grid.CauseExited, true, "", true},
		"with a log":  {grid.CauseExited, true, "all is well", true},
		"failed":      {grid.CauseExited, true, "x FATAL ERROR: y", false},
		"not started": {grid.CauseExited, false, "", false},
		"killed":      {grid.CauseSignal, true, "", false},
	} {
		s := boxed(t, GVisor)
		if c.started {
			put(t, gvisorStarted(s.attempt.Dir), "1")
		}
		if c.log != "" {
			put(t, gvisorLog(s.attempt.Dir), c.log)
		}
		e := ending{attempt: s.attempt, sandbox: GVisor, end: supervise.Ending{
			Report: supervise.Report{Cause: c.cause, Code: 5},
		}}
		if code, told := e.exitCode(); told != c.told || told && code != 5 {
			t.Errorf("%s: %d, %v, want that it is told: %v", name, code, told, c.told)
		}
	}
}

// A group is made in every hierarchy with all its limits, and is gone again when it is empty;
// where one that must hold cannot be set nothing is left of it.
func TestMakingAGroup(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	g := groups{
		{dir: one, controllers: []string{ctlPids}},
		{dir: two, v2: true, freezes: true, controllers: []string{ctlMemory, ctlCPU}},
	}
	made, err := g.add("name", need{memory: 5, processes: 6, milliCPUs: 1, idle: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "directories", made.dirs, []string{one + "/name", two + "/name"})
	same(t, "doors", made.doors(), []string{one + "/name/cgroup.procs", two + "/name/cgroup.procs"})
	if made.freezer != two+"/name" {
		t.Errorf("%q freezes", made.freezer)
	}
	for file, want := range map[string]string{
		one + "/name/pids.max": "6", two + "/name/memory.max": "5", two + "/name/memory.swap.max": "0",
		two + "/name/memory.oom.group": "1", two + "/name/cpu.weight": "10", two + "/name/cpu.idle": "1",
		two + "/name/cpu.max": "1000 100000",
	} {
		if err = os.Chmod(file, 0o600); err != nil {
			t.Error(err)
			continue
		}
		if got := holds(t, file); got != want {
			t.Errorf("%s holds %q, want %q", file, got, want)
		}
	}
	if _, err = g.add("name", need{}); err == nil || !strings.HasPrefix(err.Error(), "make group: ") {
		t.Errorf("made again: %v", err)
	}
	empty := groups{{dir: t.TempDir()}, {dir: t.TempDir()}}
	if made, err = empty.add("name", need{}); err != nil || made.freezer != "" {
		t.Fatal(made, err)
	}
	for range 2 { // what is gone is no error
		if err := made.remove(); err != nil {
			t.Error(err)
		}
	}
	for _, h := range empty {
		if left, err := os.ReadDir(h.dir); err != nil || len(left) != 0 {
			t.Errorf("left %v, %v", left, err)
		}
	}
	broken := append(empty, hierarchy{dir: filepath.Join(one, "none")})
	if _, err := broken.add("other", need{}); err == nil {
		t.Error("made where there is nothing")
	}
	if left, err := os.ReadDir(empty[0].dir); err != nil || len(left) != 0 {
		t.Errorf("left of a group that was not made: %v, %v", left, err)
	}
}

// What an earlier agent left is ended and removed; what is another's is not.
func TestSweepingGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, other := groupName("/r", "/d"), groupName("/other", "/d")
	for _, name := range []string{own, other} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := (groups{{dir: dir}, {dir: dir + "/none"}}).sweep(groupPrefix("/r")); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]bool{own: false, other: true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if own == groupName("/r", "/e") || !strings.HasPrefix(own, groupPrefix("/r")) || len(own) != 29 {
		t.Errorf("a group is called %q", own)
	}
	for version, h := range map[string]hierarchy{
		"control group, version 2": {v2: true, controllers: []string{ctlCPU}},
		"control group, version 1": {controllers: []string{ctlCPU}},
	} {
		for _, g := range []groups{{h}, {{v2: true, controllers: []string{ctlPids}}, h}} {
			if got := g.version(ctlCPU); got != version {
				t.Errorf("%+v: %q, want %q", g, got, version)
			}
		}
	}
}

// The owner is told how each ceiling is enforced here, and each trial wants more than it may.
func TestHowCeilingsAreEnforced(t *testing.T) {
	t.Parallel()
	const looks = "the supervisor looks, and no file gets larger"
	for _, c := range []struct {
		controllers, cores, memory, disk string
		held                             bool
	}{
		{
			"", "the supervisor measures, and lets the command pause",
			"the supervisor looks, and the kernel holds each process", looks, false,
		},
		{
			ctlCPU, "control group, version 2",
			"the supervisor looks, and the kernel holds each process", looks, false,
		},
		{
			ctlMemory, "the supervisor measures, and lets the command pause", "control group, version 2",
			"a file system of its own in memory, which counts as memory", true,
		},
	} {
		h := host{groups: groups{{v2: true, controllers: []string{c.controllers}}}, held: c.held}
		var got []string
		for _, w := range h.walls() {
			got = append(got, fmt.Sprint(w.Ceiling, ": ", w.How, ": ", w.Trial.Limits, w.Trial.Want))
		}
		same(t, "walls", got, []string{
			fmt.Sprint("cores: ", c.cores, ": ", lrm.Limits{MilliCPUs: 250}, grid.ExitCause(0)),
			fmt.Sprint("memory: ", c.memory, ": ",
				lrm.Limits{MemoryBytes: 64 << 20, DiskBytes: 1 << 20}, grid.CauseMemory),
			fmt.Sprint("disk: ", c.disk, ": ", lrm.Limits{DiskBytes: 1 << 20}, grid.CauseDisk),
		})
	}
}

// Commands are not run where the kernel does not hold all that they take, and the owner is told why
// and what to do about it; unless it allows that.
func TestWhatIsNotHeldIsNotRun(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "runs.jsonl")
	unheld := errors.New("unshare failed")
	all := []string{ctlMemory, ctlPids}
	for _, c := range []struct {
		controllers []string
		unheld      error
		why         string
	}{
		{nil, nil, "control groups that hold their memory and their number of processes"},
		{[]string{ctlMemory}, nil, "control groups"},
		{[]string{ctlPids}, nil, "control groups"},
		{all, unheld, "nothing holds what they write: unshare failed"},
	} {
		h := host{groups: groups{{controllers: c.controllers}}}
		err := h.bound(Config{RecordPath: record, Unheld: c.unheld})
		if err == nil || !strings.Contains(err.Error(), c.why) || h.held ||
			!strings.Contains(err.Error(), "siteagent config set commands unbounded") {
			t.Errorf("%v: %v, want that %q and the remedy", c.controllers, err, c.why)
		}
	}
	h := host{groups: groups{{controllers: all}}}
	err := h.bound(Config{RecordPath: record})
	works := scratch.Works(filepath.Dir(record))
	if (err == nil) != (works == nil) || h.held != (err == nil) {
		t.Errorf("%v, though a trial says %v", err, works)
	}
}

// What a command may write counts as its group's memory where it is memory.
func TestFilesInMemoryCount(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		s := sandbox{
			host:    host{held: held, sandbox: Bubblewrap},
			attempt: lrm.Attempt{Limits: lrm.Limits{MemoryBytes: 10, DiskBytes: 3}},
		}
		want := int64(10)
		if held {
			want = 13
		}
		if got := s.need().memory; got != want {
			t.Errorf("held %v: %d bytes of memory, want %d", held, got, want)
		}
	}
}
