package native

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCandidates(t *testing.T) {
	const hybrid = `30 1 0:25 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
32 30 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:28 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
34 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`
	tests := []struct {
		name, mounts, own string
		want              groups
	}{
		{"nothing", "", "", nil},
		{"garbage", "x\n- -\n", ":::\nx\n", nil},
		{
			"version 2", "40 30 0:29 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
			"0::/user.slice/mrs.service\n",
			groups{{dir: "/sys/fs/cgroup/user.slice/mrs.service", v2: true}},
		},
		{"hybrid", hybrid, "3:cpu,cpuacct:/a\n2:memory:/docker/abc/job\n1:freezer:/\n0::/\n", groups{
			{dir: "/sys/fs/cgroup/cpu/a", controllers: []string{"cpu"}},
			{dir: "/sys/fs/cgroup/memory/job", controllers: []string{"memory"}},
			{dir: "/sys/fs/cgroup/unified", v2: true},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			diff := cmp.Diff(tt.want, candidates(tt.mounts, tt.own), cmp.AllowUnexported(hierarchy{}))
			if diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	n := need{memory: 1 << 20, processes: 64, milliCPUs: 1500}
	all := []string{ctlMemory, ctlPids, ctlCPU}
	tests := []struct {
		name string
		h    hierarchy
		want map[string]string
	}{
		{"freezer only", hierarchy{v2: true}, map[string]string{}},
		{"version 2", hierarchy{v2: true, controllers: all}, map[string]string{
			"memory.max": "1048576", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "64",
			"cpu.weight": lowWeight, "cpu.idle": "0", "cpu.max": "150000 100000",
		}},
		{"version 1", hierarchy{controllers: all}, map[string]string{
			"memory.limit_in_bytes": "1048576", "memory.memsw.limit_in_bytes": "1048576", "pids.max": "64",
			"cpu.shares": lowShares, "cpu.idle": "0", "cpu.cfs_period_us": "100000",
			"cpu.cfs_quota_us": "150000",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make(map[string]string)
			for _, s := range tt.h.settings(n) {
				got[s.file] = s.value
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	unbounded := (&hierarchy{v2: true, controllers: all}).settings(need{memory: 1, processes: 1})
	if slices.ContainsFunc(unbounded, func(s setting) bool { return s.file == "cpu.max" }) {
		t.Error("cores are bounded for a task that asks for none")
	}
}

func TestStarved(t *testing.T) {
	for name, tt := range map[string]struct {
		file, text string
		want       bool
	}{
		"none":         {"memory.events", "low 0\noom 0\noom_kill 0\n", false},
		"version 2":    {"memory.events", "oom 1\noom_kill 3\n", true},
		"version 1":    {"memory.oom_control", "under_oom 0\noom_kill 1\n", true},
		"no such file": {"other", "oom_kill 1\n", false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := (group{dirs: []string{dir}}).starved(); got != tt.want {
			t.Errorf("%s: starved = %v, want %v", name, got, tt.want)
		}
	}
}
