package supervise_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// openFiles are the descriptors of a process, with what is behind them.
func openFiles(t *testing.T, pid int) []string {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil {
			files = append(files, e.Name()+" "+to)
		}
	}
	return files
}

// A supervisor that serves many attempts holds nothing of those that have ended, neither of
// those that ran nor of those that could not be started.
func TestASupervisorKeepsNoFileOfAnAttempt(t *testing.T) {
	t.Parallel()
	b := startByHand(t)
	run := func(s supervise.Spec) {
		b.order(s)
		for b.hear().Exited == nil {
		}
	}
	run(next(t, 1, "exit", "0")) // first all that it needs once is there
	before := openFiles(t, b.cmd.Process.Pid)
	for i, c := range []struct {
		name  string
		spoil func(*supervise.Spec)
	}{
		{"that ran", func(*supervise.Spec) {}},
		{"that reported", func(s *supervise.Spec) { s.Reports = true }},
		{"in a sandbox", func(s *supervise.Spec) {
			s.Enclosure = shell("exit 0")
			s.Enclosure.StatusPath = filepath.Join(s.Dir, "status")
			s.Enclosure.Filter = []byte("f")
		}},
		{"in a sandbox that is not there", func(s *supervise.Spec) {
			s.Enclosure = shell("exit 0")
			s.Enclosure.Program = filepath.Join(s.Dir, "none")
			s.Enclosure.StatusPath = filepath.Join(s.Dir, "status")
		}},
		{"in a sandbox that is no program", func(s *supervise.Spec) {
			s.Enclosure = shell("exit 0")
			s.Enclosure.Program = s.Dir
			s.Enclosure.StatusPath = filepath.Join(s.Dir, "status")
			s.Enclosure.Filter = []byte("f")
		}},
		{"in a sandbox that cannot be bounded", func(s *supervise.Spec) {
			s.Enclosure = shell("exit 0")
			s.Enclosure.Join = []string{filepath.Join(s.Dir, "none", "door")}
			s.Enclosure.Filter = []byte("f")
		}},
		{"whose sandbox tells nobody", func(s *supervise.Spec) {
			s.Enclosure = shell("exit 0")
			s.Enclosure.StatusPath = s.Dir
		}},
		{"at a gate", func(s *supervise.Spec) { s.Enclosure = gated("exit 0") }},
		{"at a gate where nobody is told of", func(s *supervise.Spec) {
			s.Enclosure = gated("exit 0")
			s.Enclosure.Gate.Command = []string{"exit 0"}
		}},
		{"at a gate that cannot be opened", func(s *supervise.Spec) {
			s.Enclosure = gated("exit 0")
			s.Enclosure.Gate.Rlimits = map[int]uint64{99: 1}
		}},
		{"at the gate of what is not there", func(s *supervise.Spec) {
			s.Enclosure = gated("exit 0")
			s.Enclosure.Program = filepath.Join(s.Dir, "none")
		}},
		{"at the gate of what cannot be bounded", func(s *supervise.Spec) {
			s.Enclosure = gated("exit 0")
			s.Enclosure.Join = []string{filepath.Join(s.Dir, "none", "door")}
		}},
		{"without a program", func(s *supervise.Spec) {
			s.Runner = []string{filepath.Join(s.Dir, "none")}
		}},
		{"without output", func(s *supervise.Spec) { s.Stdout = s.Dir }},
		{"without errors", func(s *supervise.Spec) { s.Stderr = s.Dir }},
		{"without a record", func(s *supervise.Spec) { s.RecordPath = s.Dir }},
		{"too late", func(s *supervise.Spec) { s.LeaseUntil = lrm.BootNow() }},
		{"that is looked at", func(s *supervise.Spec) { s.WatchDir = s.Dir }},
		{"of a tree", func(s *supervise.Spec) { s.Tree = true }},
	} {
		s := next(t, grid.Token(i)+2, "exit", "0")
		c.spoil(&s)
		run(s)
		after := openFiles(t, b.cmd.Process.Pid)
		for patience := time.Now().Add(5 * time.Second); len(after) > len(before); {
			if time.Now().After(patience) {
				t.Errorf("after an attempt %s it holds %v, before %v", c.name, after, before)
				before = after
				break
			}
			runtime.Gosched() // what it just lets go of
			after = openFiles(t, b.cmd.Process.Pid)
		}
	}
}
