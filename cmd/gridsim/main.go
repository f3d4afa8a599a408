// Command gridsim runs experiments: it puts the project's own machines through
// workloads and prints what came of it. Standard output carries results only; what is
// for people goes to standard error. See gridsim --help.
//
//	main.go       the process: signals, exit codes
//	root.go       gridsim, its help and its mistakes
//	play.go       gridsim play
//	replay.go     gridsim replay
//	views.go      ... what both show, and into which files
//	run.go        gridsim run, gridsim list
//	claims.go     ... what was expected, and what came
//	blocks.go     ... over a second block of seeds
//	cases.go      ... the tables of experiments with several cases
//	sweep.go      gridsim sweep
//	replications.go ... the flags of both
//	figures.go    ... where figures go
//	meter.go      ... how far they are, and how long the rest takes
//	settings.go   ... and of those whose sites fail in several settings
//	swf.go        gridsim swf
//	checkpoints.go gridsim checkpoints
//	odds.go       gridsim odds
//	calibrate.go  gridsim calibrate
//	workload.go   gridsim workload
//	fit.go        ... fit
//	output.go     the form of a result: text, JSON and others
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

// Exit codes.
const (
	exitOK    = 0
	exitOther = 1
	exitUsage = 2
)

// heapGrowth is by how many percent the heap grows before it is collected.
const heapGrowth = 400

// largeHeap is the memory in bytes from which on it is collected earlier than that.
const largeHeap = 3 << 30

func main() {
	if os.Getenv("GOGC") == "" { // runs live for seconds: a larger heap costs less than collecting it
		debug.SetGCPercent(heapGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(largeHeap)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole command without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot() //nolint:contextcheck // cobra hands the context to the commands
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "gridsim: %v\n", err)
	if errors.Is(err, eval.ErrUsage) {
		return exitUsage
	}
	return exitOther
}
