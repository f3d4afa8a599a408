package supervise_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// gated is a shell that plays a sandbox: it tells who waits, waits at the gate, and then runs
// the script.
func gated(script string) *supervise.Enclosure {
	return &supervise.Enclosure{
		Program: "/bin/sh", Args: []string{"-c"}, Command: []string{"exit 8"},
		Gate: &supervise.Gate{
			Command: []string{
				`echo "{\"child-pid\": $$}" >&6; exec 6>&-; head -c 1 <&5; ` + script,
			},
			Rlimits: map[int]uint64{unix.RLIMIT_CORE: 0},
		},
	}
}

// bubblewrapAtGate is a real sandbox that waits at its gate forever, because it tells nobody who
// does. Its command would leave the file begun.
func bubblewrapAtGate(t *testing.T, s supervise.Spec) *supervise.Enclosure {
	t.Helper()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("bubblewrap is not installed")
	}
	args := []string{
		"--die-with-parent", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/",
		"--bind", s.Dir, s.Dir,
	}
	if out, err := exec.CommandContext(
		t.Context(), bwrap, append(args, "--", "/bin/true")...,
	).CombinedOutput(); err != nil {
		t.Skipf("bubblewrap does not work here: %v: %s", err, out)
	}
	return &supervise.Enclosure{
		Program: bwrap, Args: append(args, "--json-status-fd", "3"),
		StatusPath: filepath.Join(s.Dir, "status"),
		Gate: &supervise.Gate{Command: []string{
			"--block-fd", "5", "--", "/bin/sh", "-c", "echo > " + filepath.Join(s.Dir, "begun"),
		}},
	}
}

const parentField = 4 // of /proc/PID/stat

// insider is the process that will become a sandbox's command, 0 while that is not known.
func insider(t *testing.T, s supervise.Spec) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "status"))
	if err != nil || !strings.Contains(string(text), "\n") {
		return 0
	}
	var told struct {
		Child int `json:"child-pid"`
	}
	if err := json.Unmarshal([]byte(strings.SplitN(string(text), "\n", 2)[0]), &told); err != nil {
		t.Fatal(err)
	}
	return told.Child
}

// A command whose supervisor dies, or is told to stop, while it waits at its gate never begins,
// and nothing of its sandbox is left when its end is told.
func TestNothingBeginsWithoutItsSupervisor(t *testing.T) {
	t.Parallel()
	canTrace(t)
	for name, c := range map[string]struct {
		finish func(p lrm.Process, supervisor int) error
		cause  grid.ExitCause
	}{
		"it dies": {
			func(_ lrm.Process, supervisor int) error {
				return syscall.Kill(supervisor, syscall.SIGKILL)
			}, grid.CauseSandbox,
		},
		"it is told to stop": {
			func(p lrm.Process, _ int) error { return p.Stop("enough") }, grid.CauseStopped,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec(t, "exit", "9")
			s.Tree = true
			s.Enclosure = bubblewrapAtGate(t, s)
			p, wait := attempt(t, realPool(t), s)
			expect(t, p, lrm.Started)
			until(t, func() bool { return insider(t, s) != 0 })
			waits := insider(t, s)
			sandbox := statField(t, waits, parentField)
			supervisor := statField(t, sandbox, parentField)
			if err := c.finish(p, supervisor); err != nil {
				t.Fatal(err)
			}
			if end := wait(); end.Cause != c.cause {
				t.Errorf("ending = %+v", end)
			}
			if runs(sandbox) || runs(waits) {
				t.Error("its sandbox is left")
			}
			if _, err := os.Stat(filepath.Join(s.Dir, "begun")); err == nil {
				t.Error("the command began")
			}
		})
	}
}

// What waits at a gate when its supervisor has died, and does not die with it, waits on. Only a
// byte lets it go.
func TestAGateOutlivesItsSupervisor(t *testing.T) {
	t.Parallel()
	canTrace(t)
	s := spec(t, "exit", "9")
	begun, told := filepath.Join(s.Dir, "begun"), filepath.Join(s.Dir, "pid")
	s.Enclosure = gated("")
	s.Enclosure.Gate.Command = []string{
		`setsid sh -c 'printf $$ > pid; head -c 1 <&5; echo > begun' & wait`,
	}
	b := startByHand(t)
	b.order(s)
	leader := b.hearEvent(lrm.Started).PID
	until(t, func() bool { return toldPID(t, told) != 0 })
	waits := toldPID(t, told)
	t.Cleanup(func() { _ = syscall.Kill(-waits, syscall.SIGKILL) })
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return !runs(leader) })
	if _, err := os.Stat(begun); err == nil || !runs(waits) {
		t.Fatal("it went on when its supervisor died")
	}
	gate, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", waits, supervise.GateFD), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	if _, err := gate.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
}
