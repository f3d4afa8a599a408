package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a kernel says of version 1, of version 2 and of both, and in a container.
func TestTheTreesOfAProcess(t *testing.T) {
	t.Parallel()
	const (
		one = "30 1 0:25 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
			"31 30 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"32 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"33 30 0:28 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n" +
			"34 30 0:30 / /sys/fs/cgroup/pids rw shared:1 master:2 - cgroup cgroup rw,pids\n"
		two       = "40 1 0:29 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		beside    = "40 1 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		container = "40 1 0:29 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		oneOwn    = "5:pids:/a\n4:freezer:/f\n3:cpu,cpuacct:/a/b\n2:memory:/\n1:name=systemd:/s\n"
	)
	top := []tree{{"/sys/fs/cgroup", "/sys/fs/cgroup", true}}
	below := []tree{{"/sys/fs/cgroup", "/sys/fs/cgroup/x", true}}
	v1 := []tree{
		{root: "/sys/fs/cgroup/cpu,cpuacct", own: "/sys/fs/cgroup/cpu,cpuacct/a/b"},
		{root: "/sys/fs/cgroup/memory", own: "/sys/fs/cgroup/memory"},
		{root: "/sys/fs/cgroup/pids", own: "/sys/fs/cgroup/pids/a"},
	}
	for name, c := range map[string]struct {
		mounts, own string
		want        []tree
	}{
		"nothing":   {"", "", nil},
		"garbage":   {" - \nx - cgroup2\n1 2 3 4 5 - cgroup2 a b\n", "\n0\n::\n0::x\n", nil},
		"version 1": {one, oneOwn, v1},
		"version 2": {two, "0::/system.slice/x.service\n", []tree{
			{"/sys/fs/cgroup", "/sys/fs/cgroup/system.slice/x.service", true},
		}},
		"both": {one + beside, oneOwn + "0::/u\n", append(
			slices.Clone(v1), tree{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/u", true},
		)},
		"a path with colons": {two, "0::/a:b\n", []tree{
			{"/sys/fs/cgroup", "/sys/fs/cgroup/a:b", true},
		}},
		"mounted twice":        {two + beside, "0::/\n", top},
		"a container":          {container, "0::/docker/abc/x\n", below},
		"a container's root":   {container, "0::/docker/abc\n", top},
		"out of the container": {container, "0::/docker/abcd\n", nil},
		"mounted, not entered": {one, "0::/\n", nil},
	} {
		got := treesOf(c.mounts, c.own)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(tree{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func FuzzTrees(f *testing.F) {
	f.Add("40 1 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a\n")
	f.Fuzz(func(t *testing.T, mounts, own string) {
		for _, tree := range treesOf(mounts, own) {
			in := strings.HasPrefix(tree.own, filepath.Clean(tree.root))
			if !in && !strings.Contains(own, "..") {
				t.Errorf("%+v: the group is not in its tree", tree)
			}
		}
	})
}

// groupFiles writes the files of a made-up group of version 2.
func groupFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Groups are made where they have controllers: in version 2 above a group with processes, which
// may give none; in version 1 in the process's own.
func TestWhereGroupsAreMade(t *testing.T) {
	t.Parallel()
	const offered = "cpuset cpu io memory pids\n"
	type files = map[string]string
	for name, c := range map[string]struct {
		root, slice files
		v1          bool
		want        string // below the root
		enabled     []string
	}{
		"the slice has them": {
			files{},
			files{"cgroup.controllers": offered, subtreeControl: "cpu memory pids\n"},
			false, "slice", nil,
		},
		"the slice may have one more": {
			files{},
			files{
				"cgroup.controllers": offered, subtreeControl: "memory pids\n",
				"cgroup.type": "domain\n", procs: "",
			},
			false, "slice",
			[]string{"cpu"},
		},
		"the slice has processes": {
			files{"cgroup.controllers": offered, subtreeControl: "memory\n", procs: "1\n"},
			files{
				"cgroup.controllers": "memory\n", subtreeControl: "", "cgroup.type": "domain\n",
				procs: "7\n",
			},
			false, "",
			[]string{"cpu", "pids"},
		},
		"nothing is offered": {files{}, files{}, false, "slice/own", nil},
		"hugetlb is offered": {
			files{"cgroup.controllers": "hugetlb\n"},
			files{},
			false, "slice/own", nil,
		},
		"version 1 has no say": {files{}, files{}, true, "slice/own", nil},
	} {
		root := t.TempDir()
		tr := tree{root: root, own: filepath.Join(root, "slice", "own"), v2: !c.v1}
		groupFiles(t, root, c.root)
		groupFiles(t, filepath.Join(root, "slice"), c.slice)
		groupFiles(t, tr.own, files{
			"cgroup.controllers": "", subtreeControl: "", "cgroup.type": "domain\n", procs: "9\n",
		})
		dir, enabled := tr.parent()
		if dir != filepath.Join(root, c.want) || !slices.Equal(enabled, c.enabled) {
			t.Errorf("%s: in %s, with %q", name, dir, enabled)
		}
		if len(c.enabled) > 0 {
			has := wordsOf(filepath.Join(dir, subtreeControl))
			want := strings.Fields("+" + strings.Join(c.enabled, " +"))
			if !slices.Equal(has, want) {
				t.Errorf("%s: it is told %q, want %q", name, has, want)
			}
		}
	}
}

// What is removed are the directories that were made and those in them, and no file.
func TestOnlyGroupsAreRemoved(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	made, other := filepath.Join(top, "made"), filepath.Join(top, "other")
	for _, dir := range []string{filepath.Join(made, "a", "b"), filepath.Join(made, "c"), other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(made, "c", "link")); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	undone := false
	d := &delegation{groups: []string{made}, undo: []func() error{
		func() error { undone = true; return nil },
	}}
	if _, err := d.end(); err == nil || !strings.Contains(err.Error(), made) || !undone {
		t.Errorf("what holds a file is removed: %v; undone: %t", err, undone)
	}
	if err := os.Remove(filepath.Join(made, "c", "link")); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
	if _, err := (&delegation{groups: []string{made}}).end(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(top)
	if err != nil || len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestWhoGetsGroups(t *testing.T) {
	t.Chdir("../..")
	err := run(t.Context(), options{delegate: true}, new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), "-as") {
		t.Errorf("root gets groups: %v", err)
	}
}

// The leaf is the one that the agent itself would make, and looks beside.
func TestTheLeafIsTheAgents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../lrm/native/findgroups.go")
	if err != nil || !bytes.Contains(text, []byte(`ownLeaf = "`+agentLeaf+`"`)) {
		t.Errorf("findgroups.go knows no group %q: %v", agentLeaf, err)
	}
}

// An account can divide its groups; what it leaves running in them is ended and named.
func TestGroupsOfAnAccount(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("root alone can give control groups away")
	}
	to := &account{uid: 65534, gid: 65534, name: "nobody"}
	d, err := delegate(to)
	if errors.Is(err, errNoGroups) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.patience = 200 * time.Millisecond
	made := slices.Clone(d.groups)
	script := `id -u; for g in "$@"; do mkdir $g/own && echo made; done; ` +
		`echo done; exec sleep 1000`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, made...)...)
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = to.dress(cmd, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err = d.start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // else a test that fails leaves all of it
		_ = cmd.Process.Kill()
		_, _ = d.end()
	})
	var got []string
	for lines := bufio.NewScanner(said); lines.Scan() && lines.Text() != "done"; {
		got = append(got, lines.Text())
	}
	want := append([]string{"65534"}, slices.Repeat([]string{"made"}, len(made))...)
	if !slices.Equal(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}
	if in := d.members(); !slices.Equal(in, []int{cmd.Process.Pid}) {
		t.Errorf("in the groups: %v, want %d", in, cmd.Process.Pid)
	}
	reaped := make(chan error, 1)
	go func() { reaped <- cmd.Wait() }()
	strays, err := d.end()
	pid := strconv.Itoa(cmd.Process.Pid)
	if err != nil || len(strays) != 1 || !strings.Contains(strays[0], pid) {
		t.Fatalf("left running: %q, %v", strays, err)
	}
	if err := <-reaped; err == nil {
		t.Error("it was not killed")
	}
	for _, dir := range made {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}
