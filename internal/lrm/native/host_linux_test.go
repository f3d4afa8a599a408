package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// program is a shell's script of that name. Tests that run one do not run beside others, which
// may hold it open for a moment when they start something, so that it cannot be run.
func program(t *testing.T, dir, name, script string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// pickyBwrap plays bubblewrap: it refuses the arguments of that list, writes down all of them,
// and else ends as a shell that was told to.
func pickyBwrap(t *testing.T, refuses string) string {
	t.Helper()
	return program(t, t.TempDir(), "bwrap", `printf '%s\n' "$@" > "$0.args"
for a; do case " `+refuses+` " in *" $a "*) echo "no $a " >&2; exit 1;; esac; done; exit 42`)
}

// The strictest sandbox that works is taken; where none does, it is said why the best does not.
func TestTheStrictestSandboxIsTaken(t *testing.T) {
	for refuses, want := range map[string]struct {
		proc, noMore bool
		err          string
	}{
		"":                       {true, true, ""},
		"--disable-userns":       {true, false, ""},
		"/proc":                  {false, true, ""},
		"/proc --disable-userns": {false, false, ""},
		"--dev --disable-userns": {false, false, "no --disable-userns"},
	} {
		var h host
		bwrap := pickyBwrap(t, refuses)
		err := h.tryVariants(t.Context(), bwrap)
		if want.err != "" {
			if err == nil || err.Error() != want.err || h.bwrap != "" {
				t.Errorf("%q refused: %v, %q", refuses, err, h.bwrap)
			}
			continue
		}
		if err != nil || h.bwrap != bwrap || h.proc != want.proc || h.noMoreUsers != want.noMore {
			t.Errorf("%q refused: %v, %+v", refuses, err, h)
		}
	}
	h := host{
		proc: true, system: []systemPath{{path: "/usr", host: "/usr"}, {path: "/bin", link: "x"}},
	}
	bwrap := pickyBwrap(t, "")
	if err := h.try(t.Context(), bwrap, "exit 42"); err != nil {
		t.Fatal(err)
	}
	args := strings.Split(strings.TrimSpace(holds(t, bwrap+".args")), "\n")
	at := slices.Index(args, "--bind")
	dir := args[at+1]
	same(t, "arguments", args, append(h.flags(),
		"--bind", dir, "/", "--ro-bind", "/usr", "/usr", "--symlink", "x", "/bin",
		"--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc", "--remount-ro", "/proc",
		"--", "/bin/sh", "-c", "exit 42"))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || !filepath.IsAbs(dir) {
		t.Errorf("its directory %s is left: %v", dir, err)
	}
}

// A sandbox works if its shell's end is told, and not otherwise.
func TestWhenASandboxWorks(t *testing.T) {
	for script, want := range map[string]string{
		"exit 42": "", "echo x; exit 42": "", "exit 41": "exit status 41",
		"exit 0": "its shell does not tell how it ends", "echo ' why'; exit 1": "why",
		"echo why >&2; exit 0": "why", "[ -z \"$HOME\" ] && exit 42; echo has a home": "",
	} {
		var h host
		text := ""
		if err := h.try(
			t.Context(), program(t, t.TempDir(), "bwrap", script), "exit 42",
		); err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%q: %q, want %q", script, text, want)
		}
	}
	var h host
	if err := h.try(t.Context(), "/none/bwrap", "exit 42"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without bubblewrap: %v", err)
	}
}

// The owner's choice of a sandbox is kept; left the choice bubblewrap comes first. Where there is
// none, the owner learns why, and what to do.
func TestTheChoiceOfASandbox(t *testing.T) {
	dir := t.TempDir()
	works, fails := program(t, dir, "bwrap", "exit 42"), program(t, dir, "bad", "echo broken; exit 1")
	runsc := program(t, dir, "runsc", `[ "$1" = flags ] && echo "-overlay2 x"; exit 0`)
	mute := program(t, dir, "mute", "exit 1")
	plain := program(t, dir, "plain", "exit 0")
	const missing, none = "/none/x", "no commands: "
	const install = "bubblewrap is missing; install the package bubblewrap"
	const namespaces = userNamespaces
	const instead = "commands run under gVisor, because bubblewrap does not work here; " +
		"each takes a quarter of a second longer to start"
	const old = "commands: this gVisor is too old for some of the system's programs: " +
		"ls fails in it; install a newer one"
	for name, c := range map[string]struct {
		sandbox, bwrap, runsc string
		unshare               string // a script; empty = there is none
		want                  string
		flags                 string
		notes                 []string
	}{
		"bubblewrap works":         {Auto, works, runsc, "exit 42", Bubblewrap, "", nil},
		"by its usual name":        {"", "", "", "exit 42", Bubblewrap, "", nil},
		"gVisor, as was asked":     {GVisor, works, runsc, "exit 42", GVisor, "--overlay2=none", nil},
		"gVisor of its usual name": {GVisor, works, "", "exit 42", GVisor, "--overlay2=none", nil},
		"gVisor of another kind":   {GVisor, works, plain, "exit 42", GVisor, "--ignore-cgroups", nil},
		"an old gVisor": {
			GVisor, works, runsc, "echo old; exit 42", GVisor, "--overlay2=none", []string{old},
		},
		"gVisor instead": {Auto, missing, runsc, "exit 42", GVisor, "--overlay2=none", []string{instead}},
		"an old one instead": {
			Auto, fails, runsc, "echo old; exit 42", GVisor, "--overlay2=none", []string{old, instead},
		},
		"bubblewrap alone": {Bubblewrap, missing, runsc, "exit 42", "", "", []string{none + install}},
		"a bubblewrap that fails": {
			Bubblewrap, fails, runsc, "exit 42", "", "",
			[]string{none + "bubblewrap does not work here (broken); " + namespaces},
		},
		"neither is there": {Auto, missing, missing, "exit 42", "", "", []string{none + install}},
		"neither works": {
			Auto, missing, runsc, "echo bad; exit 1", "", "",
			[]string{none + install, "gVisor does not work here either: bad; " + namespaces},
		},
		"no gVisor, as was asked": {
			GVisor, works, missing, "exit 42", "", "",
			[]string{
				none + "gVisor was asked for: runsc is missing; install gVisor: " +
					"executable file not found in $PATH",
			},
		},
		"a gVisor without flags": {
			GVisor, works, mute, "exit 42", "", "",
			[]string{none + "gVisor was asked for: runsc does not tell its flags: exit status 1"},
		},
		"a gVisor without unshare": {
			GVisor, works, runsc, "", "", "",
			[]string{
				none + "gVisor was asked for: unshare is missing; install the package util-linux",
			},
		},
		"a gVisor that says nothing": {
			GVisor, works, runsc, "exit 0", "", "",
			[]string{none + "gVisor was asked for: its shell does not tell how it ends"},
		},
		"a gVisor that fails": {
			GVisor, works, runsc, "exit 3", "", "", []string{none + "gVisor was asked for: exit status 3"},
		},
	} {
		path := t.TempDir()
		for _, name := range []string{works, runsc} {
			if err := os.Symlink(name, filepath.Join(path, filepath.Base(name))); err != nil {
				t.Fatal(err)
			}
		}
		if c.unshare != "" {
			program(t, path, "unshare", c.unshare)
		}
		t.Setenv("PATH", path)
		var h host
		did := h.enclose(t.Context(), Config{Sandbox: c.sandbox, Bwrap: c.bwrap, Runsc: c.runsc})
		if did != (c.want != "") || h.sandbox != c.want || h.works() != did {
			t.Errorf("%s: %v, %+v, want %q", name, did, h, c.want)
		}
		notes := slices.DeleteFunc(slices.Clone(h.notes), func(note string) bool {
			return strings.HasPrefix(note, "commands cannot be saved whole: ")
		})
		if told := len(notes) < len(h.notes); told != (c.want == GVisor) || h.gvisor.saves {
			t.Errorf("%s: that it saves nothing is told: %v", name, told)
		}
		if len(notes) == 0 {
			notes = nil
		}
		same(t, name, notes, c.notes)
		if f := h.gvisor.flags; c.flags != "" && (f[len(f)-1] != c.flags || !h.proc ||
			h.gvisor.unshare != filepath.Join(path, "unshare")) {
			t.Errorf("%s: gVisor is started as %+v", name, h.gvisor)
		}
	}
}

// What gVisor is tried with is gone afterwards.
func TestATrialOfGVisorLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	log := filepath.Join(t.TempDir(), "log")
	g := gvisor{runsc: "/opt/runsc", unshare: program(t, t.TempDir(), "unshare",
		`printf '%s\n' "$@" > `+log+"; pwd >> "+log+"; exit 42")}
	if _, err := g.try(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(holds(t, log)), "\n")
	dir := lines[len(lines)-1]
	same(t, "arguments", lines[:len(lines)-1], g.arguments(dir))
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 || filepath.Dir(dir) != temp {
		t.Errorf("left %v, %v of %s", left, err, dir)
	}
}

// Programs are where this system has them: what is a link there is one in the sandbox.
func TestWhereProgramsAre(t *testing.T) {
	t.Parallel()
	want := []systemPath{{path: "/usr", host: "/usr"}}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(dir); err == nil {
			want = append(want, systemPath{path: dir, link: target})
		} else if _, err := os.Stat(dir); err == nil {
			want = append(want, systemPath{path: dir, host: dir})
		}
	}
	got := systemPaths()
	same(t, "programs", len(got) >= len(want), true)
	for i, p := range want {
		if got[i] != p {
			t.Errorf("%+v, want %+v", got[i], p)
		}
	}
	for _, p := range got[len(want):] {
		if target, err := filepath.EvalSymlinks(p.path); err != nil || p.host != target || p.link != "" ||
			!strings.HasPrefix(p.path, "/etc/") {
			t.Errorf("%+v, %s, %v", p, target, err)
		}
	}
}

// The owner learns what does not hold commands here, and is not told of what does.
func TestWhatTheOwnerIsTold(t *testing.T) {
	t.Parallel()
	const watched = "commands: no control groups; memory, processes and cores are watched up to forty"
	all := []string{ctlMemory, ctlPids, ctlCPU}
	for _, c := range []struct {
		proc        bool
		controllers []string
		want        []string
	}{
		{true, all, nil},
		{true, nil, []string{watched}},
		{false, all, []string{"commands get no /proc: this machine is a container"}},
		{true, all[:1], []string{"commands: control groups bound memory only; run the agent as"}},
		{true, all[1:], []string{"commands: control groups bound processes and cores only; run"}},
	} {
		h := host{proc: c.proc, groups: groups{{controllers: c.controllers}}}
		notes := h.remarks()
		if os.Getuid() == 0 {
			at := slices.IndexFunc(notes, func(n string) bool {
				return strings.HasPrefix(n, "the agent runs as root, ")
			})
			if at < 0 {
				t.Fatalf("root is told %q", notes)
			}
			notes = slices.Delete(notes, at, at+1)
		}
		if !slices.EqualFunc(notes, c.want, strings.HasPrefix) {
			t.Errorf("%+v: %q, want %q", c, notes, c.want)
		}
	}
}

// A service that is alone in its group makes room in it for those of its attempts; who is not
// alone leaves it as it is.
func TestMakingRoomForGroups(t *testing.T) {
	t.Parallel()
	self := strconv.Itoa(os.Getpid())
	for name, c := range map[string]struct {
		members, offered string
		leaf, asked      bool
	}{
		"alone":            {self + "\n", "cpuset cpu io memory pids\n", true, true},
		"not alone":        {self + "\n1234567\n", "cpu\n", false, true},
		"nothing is there": {self + "\n", "cpuset io\n", false, false},
	} {
		for range 2 { // the second time its own group is there already
			dir := t.TempDir()
			put(t, dir+"/cgroup.procs", c.members)
			put(t, dir+"/cgroup.controllers", c.offered)
			put(t, dir+"/cgroup.subtree_control", "")
			h := hierarchy{dir: dir, v2: true}
			h.enable()
			door := filepath.Join(dir, ownLeaf, "cgroup.procs")
			_ = os.Chmod(door, 0o600)
			if text, err := os.ReadFile(door); (err == nil) != c.leaf || c.leaf && string(text) != self {
				t.Errorf("%s: in its own group is %q, %v", name, text, err)
			}
			if got := holds(t, dir+"/cgroup.subtree_control"); (got != "") != c.asked ||
				c.asked && !strings.HasPrefix(got, "+") {
				t.Errorf("%s: asked for %q", name, got)
			}
		}
	}
	h := hierarchy{dir: t.TempDir(), controllers: []string{ctlCPU}}
	h.enable() // no group at all
	same(t, "controllers", h.controllers, []string{ctlCPU})
	if (&hierarchy{dir: filepath.Join(t.TempDir(), "none")}).try(t.Context()) {
		t.Error("a group was made where there is nothing")
	}
	for dir, want := range map[string]bool{t.TempDir(): true, "/bin/sh": false, "/none": false} {
		if isDir(dir) != want {
			t.Errorf("%s is a directory: %v", dir, !want)
		}
	}
}

// What is wrong with a configuration is named.
func TestWhatIsWrongWithAConfiguration(t *testing.T) {
	t.Parallel()
	good, err := DefaultConfig("/state")
	if err != nil || good.Validate() != nil {
		t.Fatal(err, good.Validate())
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "configuration", good, Config{
		Supervisor: []string{self, "__supervise"}, Runner: []string{self, "__run-command"},
		RecordPath: "/state/runs.jsonl",
	})
	for _, c := range []struct {
		spoil func(*Config)
		want  string
	}{
		{func(c *Config) { c.Processes, c.Sandbox = 1, GVisor }, ""},
		{func(c *Config) { c.Supervisor = nil }, "native: supervisor and runner: want commands"},
		{func(c *Config) { c.Processes = -1 }, "native: processes: want at least 0"},
		{
			func(c *Config) { c.Sandbox = "x" },
			`native: sandbox: want auto, bubblewrap or gvisor, have "x"`,
		},
		{func(c *Config) { c.RecordPath = "x" }, "native: record path: want an absolute path"},
	} {
		bad, text := good, ""
		c.spoil(&bad)
		if err := bad.Validate(); err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%q, want %q", text, c.want)
		}
	}
	good.Runner = nil
	if _, err := New(t.Context(), good); err == nil {
		t.Error("an adapter of a configuration that is wrong")
	}
}

// An adapter whose sandbox works says so, and one whose sandbox does not starts nothing.
func TestWhatTheAdapterOffers(t *testing.T) {
	config, err := DefaultConfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config.NoGroups, config.Unbounded, config.Sandbox = true, true, Bubblewrap
	config.Bwrap = pickyBwrap(t, "/proc")
	a, err := New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	s := a.Probe(t.Context())
	if len(s.Kinds) != 1 || !s.Freeze || len(s.Walls) != 3 || a.config.Processes != 256 ||
		!strings.HasPrefix(s.Notes[0], "commands get no /proc") || len(a.host.system) == 0 {
		t.Errorf("%+v, %+v", s, a.host)
	}
	config.Processes = 3
	if a, err = New(t.Context(), config); err != nil || a.config.Processes != 3 {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err = a.Start(t.Context(), lrm.Attempt{}); !errors.Is(err, lrm.ErrAttempt) {
		t.Errorf("started nothing: %v", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if a, err = New(late, config); err != nil || a.host.works() || len(a.host.notes) != 1 {
		t.Errorf("too late: %+v, %v", a, err)
	}
}
