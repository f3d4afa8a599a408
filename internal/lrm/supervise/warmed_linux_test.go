package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// A supervisor whose sandbox has been free for a while takes an attempt of another key, which is
// told when it has begun: by then the sandbox is gone. One that has just become free waits for its
// own.
func TestASupervisorLeavesItsSandboxForAnotherKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list, begin := filepath.Join(dir, "launched"), filepath.Join(dir, "begin")
	if err := unix.Mkfifo(begin, 0o600); err != nil {
		t.Fatal(err)
	}
	pool := shellPool("echo >>" + list + `; while read x; do
		[ -z "$next" ] || read go <` + begin + `
		next=1
		echo '{"event":1,"pid":0}'; echo '{"exited":{"cause":1},"again":true,"kept":true}'
	done`)
	pool.warmTime = time.Hour
	left := make(chan string, 3)
	start := func(key string) *process {
		spec := Spec{Attempt: one(), Warm: &Warm{Key: key}}
		p, err := pool.Start(t.Context(), t.TempDir(), spec, Hooks{
			Finish: func(Ending, bool) lrm.Result { return lrm.Result{} },
			Empty:  func() (string, error) { return key, nil },
			Gone:   func(root string) { left <- root },
		})
		if err != nil {
			t.Fatal(err)
		}
		return p.(*process)
	}
	end := func(p *process) {
		if _, err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Vacate()
	}
	supervisors := func() int {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	end(start("a"))
	end(start("b"))
	if n := supervisors(); n != 2 {
		t.Fatalf("%d supervisors, want one for each key at first", n)
	}
	pool.warmTime = 0
	pool.warm[0].c.warmUsed = time.Minute
	third := start("c")
	if c := third.child; c.warmUsed != 0 || c.used < time.Minute {
		t.Errorf("the sandbox of a has used %s, and its supervisor %s before", c.warmUsed, c.used)
	}
	select {
	case root := <-left:
		t.Fatalf("%s is gone before the supervisor has said anything", root)
	default:
	}
	again := func() {
		if err := os.WriteFile(begin, []byte("\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
	again()
	if root := <-left; root != "a" {
		t.Errorf("%s has ended, want the one that was free for longest", root)
	}
	end(third)
	if n := supervisors(); n != 2 || pool.Warmed("a") != nil {
		t.Errorf("%d supervisors, want none for the third key", n)
	}
	// A supervisor that has died leaves its sandbox behind, too.
	dead := pool.warm[0].c
	_ = dead.cmd.Process.Kill()
	await(t, "it has died", func() bool { return hasExited(dead.cmd.Process.Pid) })
	fourth := start("d")
	if root := <-left; root != "b" {
		t.Errorf("%s has ended, want that of the supervisor that died", root)
	}
	again()
	if root := <-left; root != "c" {
		t.Errorf("%s has ended, want that of the next supervisor", root)
	}
	end(fourth)
	pool.Warmed("d").Dismiss()
	if pool.queue.alive != 0 || pool.queue.launching != 0 {
		t.Errorf("%+v is left", pool.queue)
	}
}

// A sandbox between two tasks ends by itself when it hears that none comes; else it is killed.
func TestHowAWarmSandboxEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		killed bool
		end    func(*warm)
	}{
		"it listens":           {"read x <&3; exit 7", false, (*warm).end},
		"it does not":          {"exec sleep 1000", true, (*warm).end},
		"it may be half dead":  {"read x <&3; exit 7", true, (*warm).destroy},
		"it has ended already": {"exit 7", false, (*warm).destroy},
	} {
		w := &warm{dead: make(chan struct{})}
		theirs, err := w.connect()
		if err != nil {
			t.Fatal(err)
		}
		w.cmd = exec.CommandContext(t.Context(), "/bin/sh", "-c", c.script)
		w.cmd.ExtraFiles = theirs[:1]
		asLeader(w.cmd)
		if err := w.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		closeAll(theirs)
		go func() {
			_ = w.cmd.Wait() // how is looked at below
			close(w.dead)
		}()
		if name == "it has ended already" {
			<-w.dead
		}
		c.end(w)
		<-w.dead
		if state := w.cmd.ProcessState; state.Exited() == c.killed {
			t.Errorf("%s: %s", name, state)
		}
	}
	(*warm)(nil).end()
	(*warm)(nil).destroy()
}
