package native_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// living counts the processes whose command line holds the mark.
func living(mark string) int {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0
	}
	count := 0
	for _, name := range files {
		line, err := os.ReadFile(name)
		if err == nil && bytes.Contains(line, []byte(mark)) {
			count++
		}
	}
	return count
}

// running reports whether a command that sleeps twice has come so far, by what it has printed: what
// it writes only its agent may see. Those of gVisor are no processes of this machine.
func running(way string, a lrm.Attempt, mark string) bool {
	said, err := os.Stat(a.StdoutPath())
	return err == nil && said.Size() > 0 && (strings.HasPrefix(way, native.GVisor) || living("sleep\x00"+mark) == 2)
}

// mark is a number of seconds to sleep that no other process of the machine has.
func mark(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("77%d%d", os.Getpid(), time.Now().UnixNano()%1e6)
}

// eachWay runs a test in some of the ways.
func eachWay(t *testing.T, some []string, test func(t *testing.T, adapter lrm.Adapter)) {
	t.Helper()
	for _, way := range some {
		t.Run(way, func(t *testing.T) {
			adapter := need(t, way)
			t.Parallel()
			test(t, adapter)
		})
	}
}

func TestEnds(t *testing.T) {
	_, adapter := here(t)
	tests := []struct {
		name  string
		args  []string
		cause grid.ExitCause
		code  int
		text  string
	}{
		{"exit 7", []string{"sh", "-c", "exit 7"}, grid.CauseExited, 7, ""},
		{"exit 200", []string{"sh", "-c", "exit 200"}, grid.CauseExited, 200, ""},
		{"signal", []string{"sh", "-c", "kill -TERM $$"}, grid.CauseExited, 128 + 15, "terminated"},
		{
			"child killed",
			[]string{"sh", "-c", "sh -c 'kill -KILL $$'; exit $?"},
			grid.CauseExited, 128 + 9, "killed",
		},
		{"not found", []string{"no-such-command"}, grid.CauseExited, 127, ""},
		{"not executable", []string{"/etc/passwd"}, grid.CauseExited, 126, ""},
		{"empty", []string{""}, grid.CauseBadWork, 0, "empty"},
		{"none", nil, grid.CauseBadWork, 0, "empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			exit := lrmtest.Wait(t, lrmtest.Start(t, adapter, attempt(t, tt.args...))).Exit
			if exit.Cause != tt.cause || exit.Code != tt.code || !strings.Contains(exit.Text, tt.text) {
				t.Errorf(
					"exit = %v %d %q, want %v %d %q", exit.Cause, exit.Code, exit.Text, tt.cause, tt.code, tt.text,
				)
			}
		})
	}
}

func TestInputOverSystem(t *testing.T) {
	_, adapter := here(t)
	a := attempt(t, "true")
	a.Inputs = []lrm.Bind{{SandboxPath: "/usr/bin/true", HostPath: guest}}
	if exit := lrmtest.Wait(t, lrmtest.Start(t, adapter, a)).Exit; exit.Cause != grid.CauseBadWork ||
		!strings.Contains(exit.Text, "/usr/bin/true") {
		t.Errorf("exit = %+v, want a refusal that names the path", exit)
	}
}

func TestLoaderVariablesStayInside(t *testing.T) {
	_, adapter := here(t)
	a := attempt(
		t, "sh", "-c", "echo $LD_PRELOAD $PATH $HOME $TMPDIR; env | sort | cut -d= -f1 | tr '\\n' ' '",
	)
	evil := filepath.Join(a.Dir, "evil.so")
	a.Task.Env = []grid.EnvVar{{Name: "LD_PRELOAD", Value: evil}}
	r := lrmtest.Wait(t, lrmtest.Start(t, adapter, a))
	want := "HOME LD_PRELOAD MRS_CKPT_DIR PATH PWD TMPDIR"
	if !strings.Contains(lrmtest.Text(t, r.Stdout), want) {
		t.Errorf("stdout = %q, want the variables %s alone", lrmtest.Text(t, r.Stdout), want)
	}
	status, err := os.ReadFile(filepath.Join(a.Dir, "bwrap.json"))
	if err != nil || !strings.Contains(string(status), "exit-code") {
		t.Errorf("status = %q, %v", status, err)
	}
	if strings.Contains(lrmtest.Text(t, r.Stderr), "bwrap") {
		t.Errorf("stderr = %q: bubblewrap itself was given the variables", lrmtest.Text(t, r.Stderr))
	}
}

// TestWalls tries each way out with the shell's own means; a try that succeeds
// prints a line.
func TestWalls(t *testing.T) {
	_, adapter := here(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	abstract, err := net.Listen("unix", "@mrs-"+mark(t))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	tests := map[string]string{
		"read the host's files": "cat /etc/shadow /etc/hostname /etc/machine-id " + home +
			"/.profile && echo out",
		"list the host":             "ls -d /root /home /var /sys /run /boot /mnt /opt /srv && echo out",
		"reach the attempt's files": "ls -d /../attempt /../../etc/hostname && echo out",
		"see the host's processes":  "test $(ls -d /proc/[0-9]* | wc -l) -gt 8 && echo out",
		"reach the host by /proc":   "ls /proc/1/root/home && echo out",
		"write to the system": "touch /usr/x /usr/bin/x /etc/ld.so.cache /etc/passwd && echo " +
			"out; echo x > /dev/x && echo out",
		"write to the kernel": "echo x > /proc/sys/kernel/hostname && echo out; " +
			"echo h > /proc/sysrq-trigger && echo out; find /proc/sys -type f -perm -200 2>/dev/null | " +
			"while read -r f; do true 2>/dev/null >> \"$f\" && echo out; done",
		"remount": "mount -o remount,rw /usr && echo out; umount /usr && echo out; " +
			"mount -t tmpfs x /tmp && echo out",
		"make a device": "mknod /tmp/d b 254 0 && echo out; " +
			"mknod /tmp/c c 1 1 && cat /tmp/c && echo out",
		"become root": "cp /bin/sh /tmp/s && chmod u+s /tmp/s && test \"$(/tmp/s -pc 'id " +
			"-u')\" = 0 && echo out; chown 0 /tmp/s && echo out; su -c true && echo out",
		"signal others": fmt.Sprintf("kill -0 %d && echo out", os.Getpid()),
		"more namespaces": "unshare -Urm true && unshare -Urm mount -t tmpfs x /usr && touch " +
			"/usr/x && echo out",
		"a device of the terminal": "echo x > /dev/tty && echo out",
	}
	if _, err := exec.LookPath("bash"); err == nil {
		tests["connect"] = fmt.Sprintf(
			"bash -c 'echo > /dev/tcp/127.0.0.1/%d' && echo out; "+
				"bash -c 'echo > /dev/udp/192.0.2.1/53' && echo out", port,
		)
	}
	if _, err := exec.LookPath("/usr/bin/python3"); err == nil {
		tests["abstract socket"] = fmt.Sprintf("python3 -c 'import socket; "+
			"socket.socket(socket.AF_UNIX).connect(\"\\0%s\")' && echo out",
			strings.TrimPrefix(abstract.Addr().String(), "@"))
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := lrmtest.Wait(t, lrmtest.Start(t, adapter, attempt(t, "sh", "-c", script+"; echo done")))
			if got := lrmtest.Text(t, r.Stdout); !strings.HasSuffix(got, "done\n") ||
				strings.Contains(got, "out\n") {
				t.Errorf("stdout = %q, stderr %q, exit %+v", got, lrmtest.Text(t, r.Stderr), r.Exit)
			}
		})
	}
	for _, name := range []string{"/usr/x", "/usr/bin/x"} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("the host has %s", name)
		}
	}
}

func TestNoCapabilities(t *testing.T) {
	_, adapter := here(t)
	a := attempt(t, "sh", "-c", "id -u; id -G; "+
		"grep -E '^(Cap...|NoNewPrivs)' /proc/self/status | cut -f2 | sort -u | tr '\\n' ' '; "+
		"ls /proc/self/fd | tr '\\n' ' '")
	r := lrmtest.Wait(t, lrmtest.Start(t, adapter, a))
	want := "65534\n65534\n0000000000000000 1 0 1 2 3 "
	if got := lrmtest.Text(t, r.Stdout); got != want {
		t.Errorf("stdout = %q, want %q: nobody, no capability, nothing open", got, want)
	}
}

func TestForkBomb(t *testing.T) {
	eachWay(t, bubblewrapWays(), func(t *testing.T, adapter lrm.Adapter) {
		mark := mark(t)
		a := attempt(
			t, "sh", "-c", "i=0; while [ $i -lt 500 ]; do sleep "+mark+" & i=$((i+1)); done; wait",
		)
		p := lrmtest.Start(t, adapter, a)
		most := 0
		ended := make(chan lrm.Result, 1)
		go func() { ended <- lrmtest.Wait(t, p) }()
		deadline := time.After(3 * time.Second)
		for more := true; more; {
			select {
			case r := <-ended:
				if r.Exit.Cause != grid.CauseBadWork && r.Exit.Cause != grid.CauseExited {
					t.Errorf("exit = %+v", r.Exit)
				}
				more = false
			case <-deadline:
				_ = p.Stop("seen enough")
				<-ended
				more = false
			case <-time.After(20 * time.Millisecond):
				most = max(most, living("sleep\x00"+mark))
			}
		}
		// it takes some looks to notice
		watched := os.Getuid() == 0 && strings.HasSuffix(t.Name(), "without_groups")
		if most > 64 && !watched {
			t.Errorf("%d processes at the same time", most)
		}
		if left := living("sleep\x00" + mark); left != 0 {
			t.Errorf("%d processes are left", left)
		}
	})
}

func TestDaemonEndsWithCommand(t *testing.T) {
	eachWay(t, ways(), func(t *testing.T, adapter lrm.Adapter) {
		mark := mark(t)
		r := lrmtest.Wait(t, lrmtest.Start(t, adapter, attempt(t, "sh", "-c",
			"setsid sh -c 'sleep "+mark+" & sleep "+mark+"' </dev/null >/dev/null 2>&1 & (sh -c 'exit 0' "+
				"& exec sleep 0.1) ; exit 3")))
		if r.Exit.Cause != grid.CauseExited || r.Exit.Code != 3 {
			t.Errorf("exit = %+v", r.Exit)
		}
		if left := living(mark); left != 0 {
			t.Errorf("%d processes outlived their command", left)
		}
	})
}

// TestFreezeWhole wants that no process of a tree makes a step when the lease is
// over, also one that left the session, and one that continues the others.
func TestFreezeWhole(t *testing.T) {
	eachWay(t, ways(), func(t *testing.T, adapter lrm.Adapter) {
		a := attempt(t, "sh", "-c", `
			for i in 1 2 3; do setsid sh -c 'while :; do echo x >> /work/log; sleep 0.01; done' & done
			setsid sh -c 'trap "" CONT; while :; do kill -CONT -1 2>/dev/null; sleep 0.005; done' &
			wait`)
		p := lrmtest.Start(t, adapter, a)
		log := filepath.Join(a.WorkDir(), "work", "log")
		size := func() int64 {
			info, err := os.Stat(log)
			if err != nil {
				return 0
			}
			return info.Size()
		}
		lrmtest.Until(t, "all write", lrmtest.Patience, func() bool { return size() > 20 })
		if err := p.SetLease(lrm.BootNow()); err != nil {
			t.Fatal(err)
		}
		frozen := false
		for e := range p.Events() {
			if e.Kind == lrm.Frozen {
				frozen = true
				break
			}
		}
		if !frozen {
			t.Fatalf("not frozen: %+v", lrmtest.Wait(t, p).Exit)
		}
		before := size()
		<-time.After(300 * time.Millisecond)
		if after := size(); after != before {
			t.Errorf("wrote %d bytes while frozen", after-before)
		}
		if err := p.SetLease(lrm.BootNow().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		lrmtest.Until(t, "it goes on", lrmtest.Patience, func() bool { return size() > before })
	})
}

func TestAgentKilled(t *testing.T) {
	for _, way := range ways() {
		for _, lease := range []time.Duration{time.Hour, 10 * time.Second} {
			t.Run(way+" "+lease.String(), func(t *testing.T) {
				t.Parallel()
				need(t, way)
				mark := mark(t)
				a := attempt(t, "sh", "-c", "setsid sleep "+mark+" & echo on; sleep "+mark)
				a.LeaseUntil = lrm.BootNow().Add(lease)
				told, err := json.Marshal(a)
				if err != nil {
					t.Fatal(err)
				}
				agent := harness(way).Agent(a.RecordPath)
				agent.Stdin = bytes.NewReader(told)
				if err = agent.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { // else a test that fails leaves all of it running
					_ = agent.Process.Kill()
					_ = agent.Wait()
				})
				lrmtest.Until(t, "it runs", lrmtest.Patience, func() bool { return running(way, a, mark) })
				if lease < time.Hour {
					lrmtest.Until(t, "it is frozen", lrmtest.Patience, func() bool {
						records, wrong := lrm.ReadRecords(a.RecordPath)
						return wrong == nil && len(records) == 2
					})
				}
				_ = agent.Process.Signal(syscall.SIGKILL)
				_ = agent.Wait()
				lrmtest.Until(t, "nothing is left", 2*time.Second, func() bool {
					return living(mark)+living(a.Dir) == 0
				})
				adapter, err := newAdapter(t.Context(), a.RecordPath, way)
				if err != nil {
					t.Fatal(err)
				}
				if err := adapter.Recover(t.Context()); err != nil {
					t.Errorf("Recover: %v", err)
				}
			})
		}
	}
}

// Where no control group holds memory, a command cannot have any that belongs to no process: it
// would be counted for nobody.
func TestMemoryThatBelongsToNobody(t *testing.T) {
	eachWay(t, []string{bubblewrapAlone}, func(t *testing.T, adapter lrm.Adapter) {
		a := attempt(t, guestPath, "ownerless")
		a.Inputs = []lrm.Bind{{SandboxPath: guestPath, HostPath: guest}}
		r := lrmtest.Wait(t, lrmtest.Start(t, adapter, a))
		if got := lrmtest.Text(t, r.Stdout); got != "contained\n" {
			t.Errorf("stdout = %q, stderr %q, exit %+v", got, lrmtest.Text(t, r.Stderr), r.Exit)
		}
	})
}

// TestMemoryOfMany wants that processes cannot take more together than each may.
func TestMemoryOfMany(t *testing.T) {
	if _, err := exec.LookPath("/usr/bin/head"); err != nil {
		t.Skip("the program that takes memory is missing: ", err)
	}
	eachWay(t, bubblewrapWays(), func(t *testing.T, adapter lrm.Adapter) {
		// tail keeps a line without end in memory: 10 times 24 MiB.
		a := attempt(
			t, "sh", "-c",
			"for i in 1 2 3 4 5 6 7 8 9 10; do (head -c 25000000 /dev/zero; "+
				"sleep 4) | tail | cat >/dev/null & done; wait; wait; exit 1",
		)
		r := lrmtest.Wait(t, lrmtest.Start(t, adapter, a))
		if r.Exit.Cause != grid.CauseMemory {
			t.Errorf("exit = %+v, stderr %q", r.Exit, lrmtest.Text(t, r.Stderr))
		}
	})
}
