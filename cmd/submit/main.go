// Command submit hands jobs to the mesh through the local agent, watches them and
// fetches what they leave. Standard output carries data only; what is for people
// goes to standard error. Exit codes: see `submit --help`.
//
//	main.go          the program, and its exit codes
//	root.go          the commands and their common flags
//	run.go           submit run
//	map.go           submit map
//	mapping.go       ... its tasks followed to their ends
//	mapsinks.go      ... what they leave written: files that come back, results, the log
//	sbatch.go        submit sbatch
//	job.go           submit job
//	flow.go          ... several jobs of one file
//	plan.go          submit plan
//	reserve.go       submit reserve
//	reservations.go  submit reservations
//	hold.go          submit hold
//	release.go       submit release
//	status.go        submit status
//	list.go          submit list
//	top.go           submit top
//	why.go           submit why
//	describe.go      submit describe
//	domains.go       submit domains
//	events.go        submit events
//	logs.go          submit logs
//	wait.go          submit wait
//	get.go           submit get
//	cancel.go        submit cancel
//	forget.go        submit forget
//	migrate.go       submit migrate
//	sites.go         submit sites
//	sign.go          submit sign, submit verify
//	signkey.go       ... a pair of keys, and its password
//	recover.go       submit recover
//	version.go       submit version
//	submit.go        handing a job over, and following it
//	tes.go           a task of GA4GH TES handed over, and followed
//	placing.go       flags that say where and when
//	upload.go        inputs stored at the agent
//	transfer.go      ... how much of them is
//	follow.go        events of a job as they come
//	progress.go      the line that shows how far it is
//	ending.go        how a job has ended, and its exit code
//	outputs.go       results written to files
//	find.go          jobs and tasks by what a person types
//	task.go          one task in words
//	offers.go        the table of offers
//	complete.go      what a shell completes
//	print.go         tables, JSON and YAML
//	terminal.go      whether there is one, and how wide
//	words.go         small words
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Exit codes. Once a job has started, its own code takes their place.
const (
	exitOK          = 0
	exitOther       = 1
	exitUsage       = 2
	exitNoJob       = 3
	exitNever       = 4
	exitUnreachable = 5
	exitDenied      = 6
	exitTimeout     = 124
	exitOurs        = 125
	exitDetached    = 130
	exitNoReader    = 141 // as of a program that SIGPIPE ended
)

func main() {
	// A reader that has seen enough, as in `submit list | head`, is no error: see output.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole command without the process around it. The context ends at
// the first interrupt.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{in: stdin, out: output{stdout}, err: stderr, env: os.LookupEnv, now: time.Now}
	a.lookAt(stderr)
	_, plain := a.env("NO_COLOR")
	a.color = a.terminal && !plain
	root := a.rootCommand() //nolint:contextcheck // cobra hands the context to the commands
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if a.client != nil {
		a.client.Close()
	}
	return a.report(err)
}

// codeError ends the command with a code. Without a cause nothing is printed.
type codeError struct {
	code  int
	cause error
}

func (e *codeError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *codeError) Unwrap() error { return e.cause }

// usage is an error of the command line itself.
func usage(format string, args ...any) error {
	return &codeError{code: exitUsage, cause: fmt.Errorf(format, args...)}
}

// report prints the error with what to do and gives the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	code := codeOf(err)
	if code == exitNoReader {
		return code
	}
	var own *codeError
	if errors.As(err, &own) && own.cause == nil {
		return code
	}
	a.say("submit: %v", err)
	switch code {
	case exitUnreachable:
		a.say("Start the agent with `siteagent run`, or name another one with --addr or MRS_ADDR.")
	case exitDenied:
		a.say("Give the agent's token in MRS_TOKEN; the agent keeps it in its state directory.")
	case exitNoJob:
		a.say("`submit list` shows the jobs of this agent.")
	}
	return code
}

// codeOf is the exit code that belongs to an error.
func codeOf(err error) int {
	var own *codeError
	var file jobfile.Errors
	switch {
	case errors.Is(err, errOutput) && errors.Is(err, syscall.EPIPE):
		return exitNoReader
	case errors.As(err, &own):
		return own.code
	case errors.Is(err, context.Canceled):
		return exitDetached
	case errors.Is(err, client.ErrUnreachable):
		return exitUnreachable
	case errors.Is(err, view.ErrDenied):
		return exitDenied
	case errors.Is(err, view.ErrNotFound):
		return exitNoJob
	case errors.As(err, &file), errors.Is(err, grid.ErrInvalid):
		return exitUsage
	default:
		return exitOther
	}
}
