//go:build unix

package supervise_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// leavers are attempts of one agent that leave a farewell. Each has a supervisor of its own.
// What the command found in the directory is in the file that is returned.
func leavers(
	t *testing.T, n int, script string,
) (all []*byHand, specs []supervise.Spec, told string) {
	t.Helper()
	dir := t.TempDir()
	told = filepath.Join(t.TempDir(), "told")
	for i := range n {
		s := next(t, grid.Token(i+1), "sleep")
		s.Farewell = &lrm.Farewell{
			Dir: dir, Text: []byte(s.Attempt.String() + "\n"),
			Command: []string{"/bin/sh", "-c", script, told},
		}
		b := startByHand(t)
		b.order(s)
		all, specs = append(all, b), append(specs, s)
	}
	return all, specs, told
}

// tellAll tells what is in the directory, its one argument, and how often it was run.
const tellAll = `for f in "$1"/*; do cat "$f" >>"$0" && rm "$f"; done; echo once >>"$0"`

func TestFarewellAfterTheAgentsDeath(t *testing.T) {
	t.Parallel()
	all, specs, told := leavers(t, 3, tellAll)
	var pids []int
	for _, b := range all {
		pids = append(pids, b.hearEvent(lrm.Started).PID)
	}
	for _, b := range all {
		if err := b.in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range all {
		if err := b.cmd.Wait(); err != nil {
			t.Errorf("supervisor %d: %v", i, err)
		}
		if runs(pids[i]) {
			t.Errorf("process %d still runs", pids[i])
		}
	}
	text, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range specs {
		if n := strings.Count(string(text), s.Attempt.String()+"\n"); n != 1 {
			t.Errorf("%s was told %d times:\n%s", s.Attempt, n, text)
		}
	}
	if runs := strings.Count(string(text), "once"); runs < 1 || runs > 3 {
		t.Errorf("the command ran %d times", runs)
	}
}

// While the agent lives nobody is told, however the attempt ends.
func TestNoFarewellWhileTheAgentLives(t *testing.T) {
	t.Parallel()
	all, specs, told := leavers(t, 2, tellAll)
	for _, b := range all {
		b.hearEvent(lrm.Started)
	}
	all[0].say(specs[0].Attempt, "stop", "done")
	all[0].hearEnd()
	if err := all[1].cmd.Process.Signal(os.Interrupt); err != nil { // it does not care
		t.Fatal(err)
	}
	all[1].say(specs[1].Attempt, "stop", "done")
	all[1].hearEnd()
	if _, err := os.Stat(told); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("somebody was told: %v", err)
	}
	left, err := os.ReadDir(specs[0].Farewell.Dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// The record has the end, and the runner is gone, before anybody is told.
func TestFarewellComesLast(t *testing.T) {
	t.Parallel()
	all, specs, told := leavers(t, 1, `cat "$0.record" >"$0"; rm "$1"/*`)
	pid := all[0].hearEvent(lrm.Started).PID
	if err := os.Symlink(specs[0].RecordPath, told+".record"); err != nil {
		t.Fatal(err)
	}
	if err := all[0].in.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { _, err := os.Stat(told); return err == nil })
	if runs(pid) {
		t.Error("told while the runner was there")
	}
	if err := all[0].cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(told); err != nil || !strings.Contains(string(text), `"ended"`) {
		t.Errorf("told before the end was recorded: %s, %v", text, err)
	}
}
