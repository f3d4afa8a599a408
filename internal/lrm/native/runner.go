package native

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
)

const exitFailed = 1

// job is the runner's order.
type job struct {
	supervise.Enclosure
	Refused bool // there is nothing to be run
}

// RunnerMain is the body of the runner's process: it bounds itself as it is told
// on its standard input, and becomes the sandbox. It returns only when it fails,
// with the exit code.
func RunnerMain() int {
	if os.Args[len(os.Args)-1] == argKeep {
		return keep()
	}
	var work job
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox: told no job:", err)
		return exitFailed
	}
	if work.Refused {
		return exitFailed
	}
	if err := become(&work.Enclosure); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
	}
	return exitFailed
}
