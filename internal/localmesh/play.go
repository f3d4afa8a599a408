package localmesh

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// Play runs an example until it ends or is interrupted, and then ends the process: 0
// if all was as it should be, 1 if not, 2 for a wrong command line. parse reads the
// command line and says whether more is to be printed; its flag.ErrHelp ends with 0.
// It must be called from main's goroutine before any other is started.
func Play(
	name string, parse func(args []string) (verbose bool, err error),
	run func(context.Context, *Screen) error,
) {
	// Linux ties the agents' lives to the thread that starts them; this one lives
	// as long as the program.
	runtime.LockOSThread()
	verbose, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(
		context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP,
	)
	out := NewScreen(os.Stdout, verbose)
	err = run(ctx, out)
	out.wipe()
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err != nil && interrupted && !errors.Is(err, errLeftover):
		fmt.Fprintf(os.Stderr, "%s: interrupted; everything it started is ended\n", name)
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
