package supervise

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// atGate is the order for a sandbox played by a shell, which waits at a gate and then says what
// bounds it.
func atGate(t *testing.T, tells string) Spec {
	t.Helper()
	spec := program(t, "cat; exit 9")
	spec.Limits.OutputBytes = 1 << 10
	spec.Enclosure = &Enclosure{
		Program: "/bin/sh", Args: []string{"-c"}, StatusPath: spec.Dir + "/status",
		Command: []string{"echo the shell does it"},
		Gate: &Gate{
			Command: []string{tells + ` >&6; exec 6>&-; head -c 1 <&5; ulimit -n; exit 4`},
			Rlimits: map[int]uint64{unix.RLIMIT_NOFILE: 77},
		},
	}
	return spec
}

// Who waits at a gate begins when it is bounded, and not if it cannot be.
func TestWhoWaitsAtAGate(t *testing.T) {
	t.Parallel()
	if err := CanTrace(); err != nil {
		t.Skip("this kernel, or a container, lets no process trace its child:", err)
	}
	const self = `echo "{ \"child-pid\": $$ }"`
	const lines = `printf '{\n "x": {},\n "child-pid": %d\n}\n' $$`
	const shell = "the shell does it\n"
	as, none := func(*Spec) {}, map[int]uint64{99: 1}
	for name, c := range map[string]struct {
		tells string
		spoil func(*Spec)
		want  string
		code  int
	}{
		"one who tells":      {self, as, "\x0177\n", 4},
		"in many lines":      {lines, as, "\x0177\n", 4},
		"nobody":             {"true", as, "", -1},
		"no process":         {`echo '{"child-pid": 1}'`, as, "", -1},
		"none any more":      {`echo '{"child-pid": 4194304}'`, as, "", -1},
		"no such limit":      {self, func(s *Spec) { s.Enclosure.Gate.Rlimits = none }, "", -1},
		"without a gate":     {self, func(s *Spec) { s.Enclosure.Gate = nil }, shell, 0},
		"left to the runner": {self, func(s *Spec) { s.Enclosure.Program = "/none" }, "", 9},
	} {
		spec := atGate(t, c.tells)
		c.spoil(&spec)
		r, err := startRunner(spec, nil, onDisk)
		if err != nil {
			t.Fatal(name, err)
		}
		end := <-r.ended
		out := printed(t, spec.Stdout)
		if c.code == 9 { // it is told all, and becomes the enclosure's own command
			if end.code != 9 || !strings.Contains(out, `"Command":["echo the shell does it"]`) {
				t.Errorf("%s: %+v, the runner was told %q", name, end, out)
			}
			continue
		}
		if killed := end.signal == int(unix.SIGKILL); end.code != c.code || out != c.want ||
			killed != (c.code == -1) {
			t.Errorf("%s: %+v, it said %q, want %q", name, end, out, c.want)
		}
	}
}

// A gate whose keeper is gone stays shut: no end is read there.
func TestAGateStaysShut(t *testing.T) {
	t.Parallel()
	g, files, err := newGate(nil, []*os.File{nil})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != InfoFD-StatusFD+2 || files[1] != nil || files[2] != nil {
		t.Fatalf("its files are %v", files)
	}
	defer closeAll(files)
	g.close()
	fd := int(files[GateFD-StatusFD+1].Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(fd, make([]byte, 1)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%d bytes are read there, %v; want it to wait", n, err)
	}
}

// An attempt that is stopped while it waits at a gate ends without having begun.
func TestStoppedAtAGate(t *testing.T) {
	t.Parallel()
	if err := CanTrace(); err != nil {
		t.Skip("this kernel, or a container, lets no process trace its child:", err)
	}
	spec := atGate(t, "touch here; sleep 1000")
	r, err := startRunner(spec, nil, onDisk)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for !exists(spec.Dir+"/here") && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	s := &supervisor{spec: spec, runner: r}
	s.kill(grid.CauseStopped, "it is over")
	if end := <-r.ended; end.signal != int(unix.SIGKILL) && end.code == 4 ||
		printed(t, spec.Stdout) != "" {
		t.Errorf("%+v, it said %q", end, printed(t, spec.Stdout))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
