package owner

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

const (
	hookEvery  = 10 * time.Second // from an answer to the next question
	hookLimit  = 5 * time.Second  // that the program may take
	hookLinger = time.Second      // for what it left behind and what holds its output open
	hookOutput = 4 << 10          // bytes of its output that are kept
)

// newHook asks a program of the owner's: its absolute path, and arguments.
func newHook() *asker {
	return &asker{
		every: hookEvery,
		ask: func(ctx context.Context, command []string) yield.Said {
			return askProgram(ctx, command, hookLimit).Judge()
		},
	}
}

// askProgram runs a program at the lowest priority, in a process group of its own, and kills all
// of that group when it takes longer than the limit, or when ctx ends.
func askProgram(ctx context.Context, command []string, limit time.Duration) yield.HookAnswer {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	runtime.LockOSThread() // the kernel ends the program should the thread end that started it
	defer runtime.UnlockOSThread()
	out, write, err := os.Pipe()
	if err != nil {
		return yield.HookAnswer{Fault: "it cannot be started: " + err.Error()}
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the owner chose it
	cmd.Stdout, cmd.Dir = write, "/"
	inGroup(cmd)
	err = cmd.Start()
	write.Close()
	if err != nil {
		return yield.HookAnswer{Fault: "it cannot be started: " + err.Error()}
	}
	beLast(cmd.Process.Pid)
	said := make(chan string, 1) // for the one text, whether or not it is waited for
	go func() { said <- beginning(out) }()
	ended := cmd.Wait()
	line := yield.HookLine(rest(out, said, cmd.Process.Pid))
	switch state := cmd.ProcessState; {
	case state != nil && state.Exited():
		return yield.HookAnswer{Ended: true, Code: state.ExitCode(), Line: line}
	case ctx.Err() != nil:
		return yield.HookAnswer{
			Fault: fmt.Sprintf("it did not end within %s and was killed", limit),
		}
	default:
		return yield.HookAnswer{Fault: fmt.Sprintf("it ended by itself, without a code: %v", ended)}
	}
}

// beginning reads a program's output to its end, and returns how it begins.
func beginning(out io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(out, hookOutput)) // what was read counts
	_, _ = io.Copy(io.Discard, out)
	return string(text)
}

// rest waits for the words of a program that has ended. What it left behind in its group and still
// holds its output open is killed.
func rest(out io.Closer, said <-chan string, group int) string {
	linger := time.NewTimer(hookLinger)
	defer linger.Stop()
	select {
	case text := <-said:
		return text
	case <-linger.C:
		killGroup(group)
		_ = out.Close() // one that has left the group may hold it, too
		return <-said
	}
}
