//go:build unix

package owner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// program is a script of the owner's. The shell reads it: a file that was just written cannot be
// run itself while a process that is being started elsewhere in this one has it open.
func program(t *testing.T, text string, args ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ask")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return append([]string{"/bin/sh", file}, args...)
}

// held makes a pipe of which a script holds the end that is written, and gives its path and a way
// to wait until none of the script's processes is left.
func held(t *testing.T) (path string, released func() error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "held")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() {
		f, err := os.Open(path)
		if err == nil {
			_, err = io.Copy(io.Discard, f)
			err = errors.Join(err, f.Close())
		}
		end <- err
	}()
	return path, func() error {
		select {
		case err := <-end:
			return err
		case <-time.After(time.Minute):
			return errors.New("a process of it still lives")
		}
	}
}

const enoughTime = time.Minute // for a program that is not to be killed

// A program says yes or no by its code, gets its arguments as they are, and is told apart from one
// that does not work.
func TestTheOwnersProgramIsAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       yield.HookAnswer
	}{
		{"shares", "exit 0", yield.HookAnswer{Ended: true}},
		{
			"pauses", "echo blender runs; echo more; exit 1",
			yield.HookAnswer{Ended: true, Code: 1, Line: "blender runs"},
		},
		{
			"arguments", `echo "$#:$1:$2"; exit 1`,
			yield.HookAnswer{Ended: true, Code: 1, Line: "2:a b:$(touch x)"},
		},
		{
			"standard input", "read x && exit 3; exit 1",
			yield.HookAnswer{Ended: true, Code: 1},
		},
		{"another code", "exit 7", yield.HookAnswer{Ended: true, Code: 7}},
		{
			"much output", "yes 0123456789 | head -c 1000000; exit 1",
			yield.HookAnswer{Ended: true, Code: 1, Line: "0123456789"},
		},
		{
			"killed", "kill -TERM $$",
			yield.HookAnswer{Fault: "it ended by itself, without a code: signal: terminated"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			command := program(t, c.text, "a b", "$(touch x)")
			if got := askProgram(t.Context(), command, enoughTime); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	none := filepath.Join(t.TempDir(), "none")
	got := askProgram(t.Context(), []string{none}, enoughTime)
	if got.Ended || !strings.HasPrefix(got.Fault, "it cannot be started: ") ||
		!strings.Contains(got.Fault, fs.ErrNotExist.Error()) && !strings.Contains(got.Fault, none) {
		t.Errorf("of a program that is not there: %+v", got)
	}
}

// One that takes too long is killed with all that it has started.
func TestAProgramThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	path, released := held(t)
	command := program(t, `exec 3>"$1"; sleep 1000 & sleep 1000`, path)
	const limit = 500 * time.Millisecond
	got := askProgram(t.Context(), command, limit)
	if got.Ended || got.Fault != "it did not end within 500ms and was killed" {
		t.Errorf("answer: %+v", got)
	}
	if err := released(); err != nil {
		t.Error(err)
	}
}

// One that leaves something behind that holds its output has answered, and that is killed.
func TestAProgramThatLeavesSomething(t *testing.T) {
	t.Parallel()
	path, released := held(t)
	command := program(t, `exec 3>"$1"; sleep 1000 & echo no; exit 1`, path)
	got := askProgram(t.Context(), command, enoughTime)
	if want := (yield.HookAnswer{Ended: true, Code: 1, Line: "no"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := released(); err != nil {
		t.Error(err)
	}
}

// It runs behind all others.
func TestAProgramRunsAtTheLowestPriority(t *testing.T) {
	t.Parallel()
	command := program(t, `until [ "$(nice)" = 19 ]; do :; done; exit 1`)
	if got := askProgram(t.Context(), command, enoughTime); !got.Ended || got.Code != 1 {
		t.Errorf("%+v", got)
	}
}

// TestASiteAsksItsOwnersProgram lets a program share a machine, pause it, fail, and be given up.
func TestASiteAsksItsOwnersProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := filepath.Join(t.TempDir(), "says")
		say := func(text string) {
			if err := os.WriteFile(says, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		say("exit 1")
		rules, command := yield.DefaultRules(), program(t, `. "$1"`, says)
		w, states := watching(t, Config{Root: t.TempDir(), Rules: rules, Hook: command})
		<-w.Looked() // it has been asked by now
		s := <-states
		if s.Reason != grid.ReasonOwnerBusy || s.Why != "owner.hook: it says no, and not why" {
			t.Errorf("at first: %+v", s)
		}
		say("exit 0")
		if s = <-states; s.Reason != grid.ReasonNone || s.Hook != "" {
			t.Errorf("shared: %+v", s)
		}
		say("echo a film; exit 1")
		began := time.Now()
		s = <-states
		if s.Reason != grid.ReasonOwnerBusy || s.Why != "owner.hook: a film" {
			t.Errorf("paused: %+v", s)
		}
		if took := time.Since(began); took > hookEvery+every {
			t.Errorf("it pauses only after %s", took)
		}
		say("exit 7")
		time.Sleep(hookEvery + every)
		synctest.Wait()
		if s = w.Report().State; s.Reason != grid.ReasonOwnerBusy || s.Hook == "" ||
			!strings.HasSuffix(s.Why, s.Hook) {
			t.Errorf("broken: %+v", s)
		}
		w.Change(Config{Rules: rules})
		if s = <-states; s.Reason != grid.ReasonNone || s.Hook != "" {
			t.Errorf("given up: %+v", s)
		}
		say("exit 1")
		w.Change(Config{Rules: rules, Hook: command})
		if s = <-states; s.Reason != grid.ReasonOwnerBusy {
			t.Errorf("asked again: %+v", s)
		}
	})
}
