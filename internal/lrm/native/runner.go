package native

import (
	"encoding/json"
	"fmt"
	"os"
)

// statusFD is the descriptor on which bubblewrap tells how the command ended.
const statusFD = 3

// filterFD is the descriptor from which bubblewrap reads the filter of system calls.
const filterFD = 4

const exitFailed = 1

// job is what the runner is told.
type job struct {
	Program    string         // the sandbox's executable
	Args       []string       // of it
	Join       []string       // files that take the process ID of who joins a group
	StatusPath string         // the file behind statusFD; empty = none
	Filter     []byte         // of system calls, behind filterFD; empty = none
	Rlimits    map[int]uint64 // what the kernel holds each process to, by resource
	Refused    bool           // there is nothing to be run
}

// RunnerMain is the body of the runner's process: it bounds itself as it is told
// on its standard input, and becomes the sandbox. It returns only when it fails,
// with the exit code.
func RunnerMain() int {
	var work job
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox: told no job:", err)
		return exitFailed
	}
	if work.Refused {
		return exitFailed
	}
	if err := become(work); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
	}
	return exitFailed
}
