// Command runner is the runner's process alone, for another architecture.
package main

import (
	"os"

	"github.com/mrsmesh/mrsmesh/internal/lrm/wasm"
)

func main() { os.Exit(wasm.RunnerMain()) }
